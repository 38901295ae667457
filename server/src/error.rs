//! The error of this crate.

use std::fmt::Display;
use std::io;

use longhaul_engine::StoreError;

use crate::request::{Request, RequestError};

/// Why a request could not be sent. A refusal by the service is part of its response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request or its environment is wrong. The message says what to correct.
    #[error("{0}")]
    Usage(String),
    /// A file, a socket or git failed on this machine.
    #[error("{0}")]
    Operational(String),
    /// An operation on a file or a socket failed.
    #[error("{context}")]
    Io {
        /// The operation that failed, and where.
        context: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The log failed.
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Store(StoreError),
    /// The service refused the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The owner of the log ended, or did not respond.
    #[error(transparent)]
    Gone(#[from] Gone),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The remedy for a log that failed.
fn remedy(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unopenable { .. } => {
            "; restore it from a backup (`longhaul restore FILE --data-dir NEW`), or have \
             `longhaul check --repair` make a log of what can be read"
        }
        StoreError::Damaged { .. } => {
            "; `longhaul check` lists the losses, and `longhaul check --repair` rebuilds the log"
        }
        _ => "",
    }
}

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether another process owns the log.
    pub fn is_owned(&self) -> bool {
        matches!(self, Self::Store(StoreError::Owned { .. }))
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    pub(crate) fn operational(message: impl Display) -> Self {
        Self::Operational(message.to_string())
    }

    /// Adds the failed operation to an error of the operating system.
    pub(crate) fn io(context: impl Display) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { context: context.to_string(), source }
    }
}

/// The owner exited without a response.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// It exited before it accepted the request.
    #[error("the process that runs this log ended before it took this up: ask again")]
    NotSent,
    /// It exited between the request and the response.
    #[error(
        "the process that runs this log ended before it answered: look whether this was done \
         before you ask again"
    )]
    Interrupted,
    /// It sends no keep-alive.
    #[error("process {process} runs this log and does not answer for {seconds} seconds: {ADVICE}")]
    TimedOut {
        /// Its process id.
        process: String,
        /// Seconds without a keep-alive.
        seconds: u64,
    },
    /// Its response is unreadable.
    #[error(
        "the process that runs this log, perhaps another version, gave an answer that cannot be \
         read: {0}"
    )]
    Unreadable(serde_json::Error),
}

impl Gone {
    /// Whether the request can be sent to the next owner.
    pub(crate) fn allows(&self, again: &impl Request) -> bool {
        match self {
            Self::NotSent => true,
            Self::Interrupted => again.command().is_none(),
            Self::TimedOut { .. } | Self::Unreadable(_) => false,
        }
    }
}

/// Advice to the user about a silent owner.
pub(crate) const ADVICE: &str = "inspect or end that process; LONGHAUL_WAIT=SECONDS waits longer";
