//! Requests to the service, each with its response type.

use longhaul_engine::{Failure, FailureKind, RunId, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A request to the service over an open log: its name, its response and its command. A client
/// needs no more; [`Perform`](crate::perform::Perform) is the other side.
pub trait Request: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name on the wire.
    const NAME: &'static str;
    /// The type of the response.
    type Response: Serialize + DeserializeOwned + Send + 'static;

    /// The command that makes this change. `None` for a read, which may be repeated.
    fn command(&self) -> Option<&'static str> {
        None
    }
}

/// A name that matches no run, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The name as given.
    pub name: String,
    /// Why it does not resolve.
    pub why: Unresolved,
    /// The candidates.
    pub meant: Vec<String>,
}

/// Why a name does not resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unresolved {
    /// There is no match.
    Nothing,
    /// There are several matches.
    Several,
    /// The feature has no run yet.
    NoRun,
    /// There is no such project.
    NoProject,
}

/// Why a request was not performed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum RequestError {
    /// The log has no such run.
    #[error("the log knows no project or run `{run}`")]
    UnknownRun {
        /// The run that was named.
        run: RunId,
    },
    /// A name matches no run, or several.
    #[error("`{}` names no run or feature, or several", .0.name)]
    UnknownName(Unknown),
    /// There is nothing to do.
    #[error("{reason}")]
    AlreadyDone {
        /// The current state.
        reason: String,
    },
    /// A person must act first.
    #[error("{reason}")]
    Held {
        /// The required action.
        reason: String,
    },
    /// The code of this version decides differently from the recorded history.
    #[error("{reason}")]
    Diverged {
        /// The position, and the recorded event.
        reason: String,
    },
    /// The request is invalid in the current state.
    #[error("{reason}")]
    Refused {
        /// The reason and the remedy.
        reason: String,
    },
    /// The log, the disk or git failed.
    #[error("{reason}")]
    Failed {
        /// The failed operation.
        reason: String,
    },
}

impl RequestError {
    pub(crate) fn refused(reason: impl std::fmt::Display) -> Self {
        Self::Refused { reason: reason.to_string() }
    }

    pub(crate) fn held(reason: impl std::fmt::Display) -> Self {
        Self::Held { reason: reason.to_string() }
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownRun(run) => Self::UnknownRun { run },
            error => Self::Failed { reason: error.to_string() },
        }
    }
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Terminal => Self::Refused { reason: failure.message },
            _ => Self::Failed { reason: failure.message },
        }
    }
}

/// A request in its wire format.
#[derive(Serialize)]
pub(crate) struct Outgoing<'a, R> {
    request: &'static str,
    body: &'a R,
    /// Whether the client subscribes: the response is sent again after each change.
    watch: bool,
}

impl<'a, R: Request> Outgoing<'a, R> {
    pub(crate) fn once(body: &'a R) -> Self {
        Self { request: R::NAME, body, watch: false }
    }

    pub(crate) fn watched(body: &'a R) -> Self {
        Self { request: R::NAME, body, watch: true }
    }
}

/// A response in its wire format.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Response<T> {
    Done(T),
    Error(RequestError),
    /// The request was not accepted: the process is exiting.
    Closing,
    /// A subscription has ended.
    End,
}

/// A response whose content is encoded. A status of 60,000 features takes a tenth of the memory of
/// its tree of values.
pub(crate) type Encoded = Response<Box<RawValue>>;

impl Encoded {
    /// Encodes the response.
    pub(crate) fn of<T: Serialize>(result: Result<T, RequestError>) -> Self {
        match result {
            Ok(response) => match to_raw_value(&response) {
                Ok(encoded) => Self::Done(encoded),
                Err(error) => Self::Error(RequestError::Failed { reason: error.to_string() }),
            },
            Err(error) => Self::Error(error),
        }
    }
}
