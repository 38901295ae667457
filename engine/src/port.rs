//! The port over a history: every verb of [`Context`] returns its recorded answer, or is performed
//! by its host. Execution and verification share this code.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::activity::Call;
use crate::context::{Child, Context, Filter, Received, Stop};
use crate::diverged::Diverged;
use crate::failure::Failure;
use crate::id::{RunId, Slot};
use crate::payload::Payload;
use crate::replay::{Replay, Step};
use crate::store::StoreError;
use crate::verb::{
    Calls, DrawUuid, MarkVersion, Publish, ReadClock, Receive, SendSignal, Sleep, StartChild,
    TryReceive, Verb,
};

/// Performs a verb that has no recorded answer.
pub(crate) trait Performer<V: Verb> {
    /// Performs the command with this number, from where its record ends.
    fn perform(
        &mut self,
        number: u32,
        verb: V,
        progress: Option<V::Progress>,
    ) -> impl Future<Output = Result<V::Answer, Stop>> + Send;
}

/// The state and hooks that the verbs of the port need.
pub(crate) trait Host: Send {
    fn run(&self) -> &RunId;

    fn replay(&self) -> &Replay;

    fn replay_mut(&mut self) -> &mut Replay;

    /// Called before each command.
    fn admit(&mut self) -> impl Future<Output = Result<(), Stop>> + Send;

    /// Reports that the workflow diverged from its history.
    fn diverged(&mut self, diverged: Box<Diverged>) -> Stop;
}

/// A host that can perform every verb.
pub(crate) trait Verbs:
    Host
    + Performer<Calls>
    + Performer<StartChild>
    + Performer<Receive>
    + Performer<TryReceive>
    + Performer<SendSignal>
    + Performer<Sleep>
    + Performer<ReadClock>
    + Performer<DrawUuid>
    + Performer<MarkVersion>
    + Performer<Publish>
{
}

/// The recorded answer of a command, or its performance.
async fn command<V: Verb, H: Host + Performer<V>>(
    host: &mut H,
    verb: V,
) -> Result<V::Answer, Stop> {
    host.admit().await?;
    match host.replay_mut().step(&verb) {
        Ok(Step::Recorded(answer)) => Ok(answer),
        Ok(Step::Cancelled) => Err(Stop::Cancelled),
        Ok(Step::Perform { number, progress }) => host.perform(number, verb, progress).await,
        Err(diverged) => Err(host.diverged(diverged)),
    }
}

#[async_trait]
impl<H: Verbs> Context for H {
    fn run(&self) -> &RunId {
        Host::run(self)
    }

    fn commands(&self) -> u32 {
        self.replay().commands()
    }

    async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        match calls.len() {
            // An empty group would record nothing.
            0 => Ok(Vec::new()),
            1..=Slot::MAX_CALLS => command(self, Calls(calls)).await,
            count => {
                Err(StoreError::Unusable(format!("{count} calls in one command; split them up"))
                    .into())
            }
        }
    }

    async fn start(&mut self, child: Child) -> Result<(), Stop> {
        command(self, StartChild(child)).await
    }

    async fn receive(
        &mut self,
        filter: &Filter,
        timeout: Option<Duration>,
    ) -> Result<Option<Received>, Stop> {
        command(self, Receive { filter: filter.clone(), timeout }).await
    }

    async fn try_receive(&mut self, filter: &Filter) -> Result<Option<Received>, Stop> {
        command(self, TryReceive { filter: filter.clone() }).await
    }

    async fn send(&mut self, to: RunId, name: &str, payload: Payload) -> Result<(), Stop> {
        command(self, SendSignal { to, name: name.into(), payload }).await
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Stop> {
        command(self, Sleep(duration)).await
    }

    async fn now(&mut self) -> Result<DateTime<Utc>, Stop> {
        command(self, ReadClock).await
    }

    async fn uuid(&mut self) -> Result<Uuid, Stop> {
        command(self, DrawUuid).await
    }

    async fn version(&mut self, change: &str, latest: u32) -> Result<u32, Stop> {
        let mark = MarkVersion { change: change.into(), latest };
        if let Some(known) = self.replay_mut().known_version(&mark) {
            return Ok(known);
        }
        let version = command(self, mark).await?;
        self.replay_mut().marked(change, version);
        Ok(version)
    }

    async fn publish(&mut self, key: &str, value: Payload) -> Result<(), Stop> {
        command(self, Publish { key: key.into(), value }).await
    }
}
