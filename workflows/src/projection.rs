//! Projections of histories and published values, shared by all views, files and pages.

mod audit;
mod conversation;
mod project;
mod run;
mod session;
mod state;
mod transcript;

pub use crate::project::ProjectView;
pub use audit::{Action, ActionKind, AuditEntry, MailboxEntry};
pub use conversation::{ModelUse, Sealing, SessionView};
pub use run::{
    ActivityCounts, Candidate, CheckRun, CurrentWait, FailureClass, LastFailure, LastTested,
    RunView, Segment, SegmentCause,
};
pub use session::{Session, SessionCondition, SessionState, Step};
pub use state::{ProjectState, State};
pub use transcript::{TranscriptContent, TranscriptEntry};
