//! What workflow code may ask of the world: the contracts of all activities. Their handlers are in `activities`.
//!
//! A contract's name is in every history that used it: it is never given to something else.

mod agent;
mod back;
mod checks;
mod claim;
mod feedback;
mod git;
mod outside;
mod project;

pub use agent::{RunSession, SessionEnding, SessionInput, SessionReason, SessionReport};
pub use back::{RollBack, RollBackInput, WentBack};
pub use checks::{
    CheckBase, ChecksInput, ChecksReport, Evidence, HeldOut, RunChecks, RunSetup, SetupInput, SetupReport,
};
pub use claim::{CheckOutTip, TipInput, TipTree};
pub use feedback::{Behind, Feedback, Problem};
pub use git::{
    CloseInput, CloseWorktree, Follow, FollowInput, Land, LandInput, Landed, MergeCandidate, MergeInput, MergeStyle,
    Merged, OpenInput, OpenWorktree, RefreshConflict, RefreshInput, RefreshWorktree, Refreshed, Seal, SealInput,
    Sealed, Tampering, Worktree,
};
pub use outside::OutsideChange;
pub use project::{LoadBacklog, LoadInput, LoadedBacklog, ProjectRef};
