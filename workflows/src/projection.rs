//! What histories and published values amount to: folded once, for every view, file and page.

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
