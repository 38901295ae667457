//! The supervisor's final report to its owner: one line of JSON on its standard error.

use serde::{Deserialize, Serialize};

/// The whole message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub(super) ending: Ending,
    /// Whether the program was still running when it was asked to stop.
    pub(super) stopped: bool,
    /// Processes that could not be ended.
    pub(super) left: Vec<i32>,
}

/// The exit status of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub(super) enum Ending {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    /// It never ran. Distinct from a program that exits with 127.
    NotStarted {
        errno: Option<i32>,
        error: String,
    },
    /// Its sandbox was not set up, so it never ran.
    NotConfined {
        error: String,
    },
}

impl Ending {
    /// The program was not started.
    pub(super) fn not_started(error: &std::io::Error) -> Self {
        Self::NotStarted { errno: error.raw_os_error(), error: error.to_string() }
    }
}
