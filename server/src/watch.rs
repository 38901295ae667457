//! Subscriptions: the response of a request is sent again after each change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use longhaul_engine::{Engine, Recorded};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::request::{AnyRequest, Request, Response};
use crate::service::Service;
use crate::socket::{Gone, Stream};

/// The least time between two responses.
const GATHER: Duration = Duration::from_millis(200);
/// The time between two responses, in times of that which a response takes: a large project costs
/// at most a tenth of a core for each subscriber.
const PAUSE: u32 = 10;
/// The request is repeated after this time without an event, because messages and stuck runs leave
/// none.
const SLOW: Duration = Duration::from_secs(1);

/// The responses of a subscription.
pub struct Watch<R: Request> {
    source: Source,
    request: std::marker::PhantomData<fn() -> R>,
}

enum Source {
    Local(Repeated),
    Remote(Stream),
}

impl<R: Request> Watch<R> {
    /// The next response; `None` after the last one, because no process runs the log.
    pub async fn next(&mut self) -> Result<Option<R::Response>> {
        let response = match &mut self.source {
            Source::Local(repeated) => repeated.next().await.unwrap_or(Response::End),
            Source::Remote(stream) => stream.next().await?,
        };
        match response {
            Response::Done(value) => {
                Ok(Some(serde_json::from_value(value).map_err(Gone::Strange)?))
            }
            Response::Error(error) => Err(Error::Request(error)),
            Response::Closing => Err(Gone::Before.into()),
            Response::End => Ok(None),
        }
    }
}

impl Client {
    /// Subscribes to a read request. If the owner of the log exits, the subscription ends with an
    /// error.
    pub async fn watch<R: Request>(&self, request: R) -> Result<Watch<R>> {
        let source = match self {
            Self::Remote(remote) => Source::Remote(remote.watch(&request).await?),
            Self::Local(service) => {
                Source::Local(Repeated::begin(Arc::clone(service), Box::new(request)))
            }
        };
        Ok(Watch { source, request: std::marker::PhantomData })
    }
}

/// A request that is repeated after each recorded event.
pub(crate) struct Repeated {
    responses: mpsc::Receiver<Response<Value>>,
    task: AbortHandle,
}

impl Repeated {
    pub(crate) fn begin(service: Arc<Service>, request: Box<dyn AnyRequest>) -> Self {
        let (sender, responses) = mpsc::channel(1);
        let task = tokio::spawn(repeat(service, request, sender)).abort_handle();
        Self { responses, task }
    }

    /// The next response that differs from the previous one.
    pub(crate) async fn next(&mut self) -> Option<Response<Value>> {
        self.responses.recv().await
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends with an error when the receiver is gone, or when no process runs the log.
async fn repeat(
    service: Arc<Service>,
    request: Box<dyn AnyRequest>,
    responses: mpsc::Sender<Response<Value>>,
) {
    // Subscribe before the first response, so that no later event is missed.
    let mut recorded = service.engine.as_ref().map(Engine::recorded);
    let mut last = None;
    loop {
        let begun = Instant::now();
        let response = request.again().perform(Arc::clone(&service)).await;
        let took = begun.elapsed();
        let is_last = !matches!(response, Response::Done(_));
        if last.as_ref() != Some(&response) && responses.send(response.clone()).await.is_err()
            || is_last
        {
            return;
        }
        last = Some(response);
        let Some(recorded) = &mut recorded else {
            let _ = responses.send(Response::End).await;
            return;
        };
        tokio::time::sleep(GATHER.max(took * PAUSE)).await;
        if !wait(recorded).await {
            return;
        }
    }
}

/// Waits for an event with a timeout; `false` if there will be none.
async fn wait(recorded: &mut tokio::sync::broadcast::Receiver<Arc<Recorded>>) -> bool {
    let first = tokio::time::timeout(SLOW, recorded.recv()).await;
    // Skip queued events: one response covers them all.
    while matches!(recorded.try_recv(), Ok(_) | Err(TryRecvError::Lagged(_))) {}
    !matches!(first, Ok(Err(RecvError::Closed)))
}
