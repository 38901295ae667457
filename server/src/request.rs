//! Requests to the service, each with its response type.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_engine::{Failure, FailureKind, RunId, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::service::Service;
use crate::views::Unknown;

/// A request to the service over an open log.
///
/// The same code performs it in the process that owns the log, through the socket, and on a log at
/// rest.
pub trait Request: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name on the wire.
    const NAME: &'static str;
    /// The type of the response.
    type Response: Serialize + DeserializeOwned + Send + 'static;

    /// The command that makes this change. `None` for a read, which may be repeated.
    fn command(&self) -> Option<&'static str> {
        None
    }

    /// Performs the request.
    fn perform(
        self,
        service: Arc<Service>,
    ) -> impl Future<Output = Result<Self::Response, RequestError>> + Send;
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
    #[error("the log knows no run or feature `{}`", .0.name)]
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

/// An incoming request before its type is known.
#[derive(Deserialize)]
pub(crate) struct Incoming<'a> {
    request: String,
    #[serde(borrow)]
    body: &'a RawValue,
    #[serde(default)]
    pub(crate) watch: bool,
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

/// A request of any type.
#[async_trait]
pub(crate) trait AnyRequest: Send + Sync {
    /// The name on the wire.
    fn name(&self) -> &'static str;
    fn command(&self) -> Option<&'static str>;
    /// A copy of the request.
    fn again(&self) -> Box<dyn AnyRequest>;
    async fn perform(self: Box<Self>, service: Arc<Service>) -> Encoded;
}

#[async_trait]
impl<R: Request> AnyRequest for R {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn command(&self) -> Option<&'static str> {
        Request::command(self)
    }

    fn again(&self) -> Box<dyn AnyRequest> {
        Box::new(self.clone())
    }

    async fn perform(self: Box<Self>, service: Arc<Service>) -> Encoded {
        Response::of(Request::perform(*self, service).await)
    }
}

/// Implements [`Request`] for a type: its name on the wire, its response, its command if it changes
/// something, and its handler.
macro_rules! request {
    ($request:ty, $name:literal -> $response:ty $(, command: $command:expr)?, |$self:ident, $service:ident| $perform:expr) => {
        impl $crate::request::Request for $request {
            const NAME: &'static str = $name;
            type Response = $response;

            $(fn command(&$self) -> Option<&'static str> {
                $command
            })?

            async fn perform(
                $self,
                $service: std::sync::Arc<$crate::service::Service>,
            ) -> Result<$response, $crate::request::RequestError> {
                $perform
            }
        }
    };
}
pub(crate) use request;

/// The registry of the requests that the socket accepts.
macro_rules! requests {
    ($($request:ty,)*) => {
        impl Incoming<'_> {
            /// Decodes a request; the error says why it is unreadable.
            pub(crate) fn read(&self) -> Result<Box<dyn AnyRequest>, String> {
                let body = self.body.get();
                match self.request.as_str() {
                    $(<$request as Request>::NAME => match serde_json::from_str::<$request>(body) {
                        Ok(request) => Ok(Box::new(request)),
                        Err(error) => Err(error.to_string()),
                    },)*
                    unknown => Err(format!("there is no request `{unknown}`")),
                }
            }
        }
    };
}

requests! {
    crate::batches::BatchStatus,
    crate::batches::SubmitBatch,
    crate::due::ShowDue,
    crate::maintenance::Check,
    crate::maintenance::Export,
    crate::maintenance::Import,
    crate::maintenance::InspectPages,
    crate::maintenance::Prune,
    crate::maintenance::Unfinished,
    crate::open::SetLimits,
    crate::questions::AnswerQuestion,
    crate::rewind::Fork,
    crate::rewind::ListCheckpoints,
    crate::rewind::RollBack,
    crate::rewind::TakeCheckpoint,
    crate::service::Begin,
    crate::service::ProjectStatus,
    crate::service::Reconcile,
    crate::service::SendSignal,
    crate::steering::Steer,
    crate::stuck::StuckRuns,
    crate::views::activity::ShowActivity,
    crate::views::Describe,
    crate::views::FindProject,
    crate::views::FindRun,
    crate::views::Graph,
    crate::views::Overview,
    crate::views::Tree,
    crate::views::Why,
    crate::views::ShowHandoff,
    crate::views::ShowSession,
    crate::views::history::ShowHistory,
    crate::views::ListRuns,
    crate::views::session::list::ListSessions,
    crate::views::session::transcript::Transcript,
    crate::views::usage::ShowUsage,
}
