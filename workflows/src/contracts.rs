//! The contracts of all activities, through which workflow code reaches the world. Their handlers
//! are in `activities`.
//!
//! The name of a contract is in every history that used it, so from the first release on it is
//! never reused.

/// Declares an activity: its name in histories, its input and output, its policy.
macro_rules! activity {
    ($(#[$doc:meta])* $name:ident = $wire:literal: $input:ty => $output:ty, |$of:ident| $policy:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl longhaul_engine::Activity for $name {
            const NAME: &'static str = $wire;
            type Input = $input;
            type Output = $output;

            fn policy($of: &Self::Input) -> longhaul_engine::Policy {
                $policy
            }
        }
    };
    ($(#[$doc:meta])* $name:ident = $wire:literal: $input:ty => $output:ty, $policy:expr) => {
        activity!($(#[$doc])* $name = $wire: $input => $output, |_input| $policy);
    };
}

mod agent;
mod back;
mod checks;
mod claim;
mod driven;
mod feedback;
mod git;
mod model;
mod outside;
mod project;
mod session;
mod tool;

pub use agent::{ReadUse, RunSession, SessionEnding, SessionInput, SessionReason, SessionReport};
pub use back::{RollBack, RollBackInput, RolledBack};
pub use checks::{
    ChecksInput, ChecksReport, Evidence, HeldOut, Precheck, RunChecks, RunSetup, SetupInput,
    SetupReport, UnmetNeed,
};
pub use claim::{CheckOutTip, TipInput, TipTree};
pub use driven::{AgentFacts, AgentOutcome, AgentProgress, WindowUse};
pub use feedback::{Feedback, Problem, TargetConflict};
pub use git::{
    CloseInput, CloseWorktree, Follow, FollowInput, Land, LandInput, Landed, LandedWork, LeftOut,
    MergeCandidate, MergeInput, Merged, OpenInput, OpenWorktree, PassMark, RefreshConflict,
    RefreshInput, RefreshWorktree, Refreshed, Seal, SealInput, SealStep, Sealed, StepTree,
    Tampering, Worktree,
};
pub use model::{
    Block, CallModel, McpTool, Message, ModelAnswer, ModelCall, ModelStop, ToolCall, ToolSpec,
    Usage,
};
pub use outside::OutsideChange;
pub use project::{LoadBacklog, LoadInput, LoadedBacklog, ProjectRef};
pub use session::{
    BeginInput, BeginSession, EndInput, EndSession, Handoff, PromptTexts, SessionBegin, SessionEnd,
    Summary,
};
pub use tool::{HookEvent, HookInput, HookOutcome, RunHook, ToolOutcome, ToolUse, UseTool};

use std::time::Duration;

use longhaul_engine::Policy;

pub use crate::settings::MergeStyle;

/// The policy of activities that run a few git commands.
fn git_policy() -> Policy {
    Policy { start_to_close: Duration::from_mins(5), ..Policy::idempotent() }
}
