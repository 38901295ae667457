//! Failures of an engine that are not those of its store.

use crate::id::{RunId, Slot};

/// A failure of an engine that is not one of its store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineFault {
    /// The program has no such workflow.
    #[error("no workflow `{0}` in this program")]
    UnknownWorkflow(String),
    /// The program has no handler for the activity.
    #[error("no handler for the activity `{0}` in this program")]
    UnknownActivity(String),
    /// The code of the workflow panicked.
    #[error("the workflow of run {0} panicked; this is a bug; its history is unchanged")]
    Panicked(RunId),
    /// A command has more calls than a slot can number.
    #[error("{0} calls in one command, at most {max} are possible; split them up", max = Slot::MAX_CALLS)]
    TooManyCalls(usize),
    /// An engine returned another number of results than calls.
    #[error("{results} results for {calls} calls")]
    WrongResults {
        /// The calls of the command.
        calls: usize,
        /// The results that the engine returned.
        results: usize,
    },
}
