//! Projections of histories and published values, shared by all views, files and pages.

mod audit;
mod project;
mod run;
mod session;
mod state;

pub use audit::{Action, AuditEntry, MailboxEntry};
pub use project::ProjectView;
pub use run::{
    ActivityCounts, Candidate, CheckRun, FailureClass, LastFailure, RunView, Segment, SegmentCause,
    Tested, Waits,
};
pub use session::{Session, SessionState, Step};
pub use state::State;
