//! Performing requests: in the process that owns the log, for the socket, and on a log at rest. The
//! handlers of requests are in the modules of their subjects; the service knows none of them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use crate::refused::refusal;
use crate::request::{Encoded, Request, RequestError, Response};
use crate::service::Service;

/// The handler of a request.
pub trait Perform: Request {
    /// Performs the request.
    fn perform(
        self,
        service: Arc<Service>,
    ) -> impl Future<Output = Result<Self::Response, RequestError>> + Send;
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
impl<R: Perform> AnyRequest for R {
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
        Response::of(Perform::perform(*self, service).await)
    }
}

impl Service {
    /// Performs a request from the socket and passes the response on, unless the process is
    /// shutting down.
    pub(crate) async fn handle<T>(
        self: &Arc<Self>,
        request: Box<dyn AnyRequest>,
        hand_on: impl AsyncFnOnce(Encoded) -> T,
    ) -> T {
        let _answering = self.answering.read().await;
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        let response =
            if is_closed { Response::Closing } else { request.perform(Arc::clone(self)).await };
        hand_on(response).await
    }

    /// Performs a request of this process, unless a session started the command.
    pub(crate) async fn perform_here<R: Perform>(
        self: &Arc<Self>,
        request: R,
    ) -> Result<R::Response, RequestError> {
        let own = std::process::id().cast_signed();
        if let Some(refusal) = refusal(request.command(), Some(own), self.log.directory()) {
            return Err(refusal.error());
        }
        // Boxed: the futures of all callers hold it.
        let response = Box::pin(request.perform(Arc::clone(self))).await;
        if self.engine.is_none() {
            self.release_work_trees().await;
        }
        response
    }
}

/// Implements [`Request`] and [`Perform`] for a type: its name on the wire, its response, its
/// command if it changes something, and its handler.
macro_rules! request {
    (
        $request:ty, $name:literal -> $response:ty $(, command: $command:expr)?,
        |$self:ident, $service:ident| $perform:expr
    ) => {
        impl $crate::request::Request for $request {
            const NAME: &'static str = $name;
            type Response = $response;

            $(fn command(&$self) -> Option<&'static str> {
                $command
            })?
        }

        impl $crate::perform::Perform for $request {
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
