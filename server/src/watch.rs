//! Subscriptions: the response of a request is sent again after each change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};
use tokio::task::AbortHandle;

use longhaul_engine::{Change, Engine};

use crate::client::Client;
use crate::error::{Error, Gone, Result};
use crate::perform::{AnyRequest, Perform};
use crate::request::{Encoded, Request, Response};
use crate::service::Service;
use crate::socket::Stream;

/// The least time between two responses.
const GATHER: Duration = Duration::from_millis(200);
/// The time between two responses, in times of that which a response takes: a large project costs
/// at most a tenth of a core for each subscriber.
const PAUSE: u32 = 10;

/// The request is repeated after this time without a change of a run: some responses depend on the
/// time, on files or on the limits of this process, which announce nothing.
const SLOW: Duration = Duration::from_secs(2);

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
            Response::Done(encoded) => {
                Ok(Some(serde_json::from_str(encoded.get()).map_err(Gone::Unreadable)?))
            }
            Response::Error(error) => Err(Error::Request(error)),
            Response::Closing => Err(Gone::NotSent.into()),
            Response::End => Ok(None),
        }
    }
}

impl Client {
    /// Subscribes to a read request. If the owner of the log exits, the subscription ends with an
    /// error.
    pub async fn watch<R: Perform>(&self, request: R) -> Result<Watch<R>> {
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
    responses: mpsc::Receiver<Encoded>,
    task: AbortHandle,
}

impl Repeated {
    pub(crate) fn begin(service: Arc<Service>, request: Box<dyn AnyRequest>) -> Self {
        let (sender, responses) = mpsc::channel(1);
        let task = tokio::spawn(repeat(service, request, sender)).abort_handle();
        Self { responses, task }
    }

    /// The next response that differs from the previous one.
    pub(crate) async fn next(&mut self) -> Option<Encoded> {
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
    responses: mpsc::Sender<Encoded>,
) {
    // Subscribe before the first response, so that no later event is missed.
    let mut changes = service.engine.as_ref().map(Engine::changes);
    let mut last: Option<Box<RawValue>> = None;
    loop {
        let begun = Instant::now();
        let response = request.again().perform(Arc::clone(&service)).await;
        let took = begun.elapsed();
        let Response::Done(encoded) = response else {
            let _ = responses.send(response).await;
            return;
        };
        let is_new = last.as_ref().is_none_or(|last| last.get() != encoded.get());
        if is_new && responses.send(Response::Done(encoded.clone())).await.is_err() {
            return;
        }
        last = Some(encoded);
        let Some(changes) = &mut changes else {
            let _ = responses.send(Response::End).await;
            return;
        };
        tokio::time::sleep(GATHER.max(took * PAUSE)).await;
        if !wait(changes).await {
            return;
        }
    }
}

/// Waits for a change with a timeout; `false` if there will be none.
async fn wait(changes: &mut broadcast::Receiver<Arc<Change>>) -> bool {
    let first = tokio::time::timeout(SLOW, changes.recv()).await;
    // Skip queued changes: one response covers them all.
    while matches!(changes.try_recv(), Ok(_) | Err(TryRecvError::Lagged(_))) {}
    !matches!(first, Ok(Err(RecvError::Closed)))
}
