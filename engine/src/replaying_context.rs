//! The replaying implementation of [`Context`]: each command returns its recorded answer, or is
//! performed by its host. Execution and verification share this code.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::activity::Call;
use crate::command::{
    Calls, Command, DrawUuid, MarkVersion, Publish, ReadClock, Receive, SendCancel, SendSignal,
    Sleep, StartChild, TryReceive,
};
use crate::context::{Child, Context, Filter, Received, Stop};
use crate::diverged::Diverged;
use crate::event::RequestedBy;
use crate::failure::Failure;
use crate::fault::EngineFault;
use crate::id::{RunId, Slot};
use crate::payload::Payload;
use crate::replay::{Replay, Step};

/// Performs a command that has no recorded answer.
pub(crate) trait Performer<C: Command> {
    /// Performs the command with this number, from where its record ends.
    fn perform(
        &mut self,
        number: u32,
        command: C,
        progress: Option<C::Progress>,
    ) -> impl Future<Output = Result<C::Answer, Stop>> + Send;
}

/// The state and hooks that the commands need.
pub(crate) trait Host: Send {
    fn run(&self) -> &RunId;

    fn replay(&self) -> &Replay;

    fn replay_mut(&mut self) -> &mut Replay;

    /// Called before each command.
    fn admit(&mut self) -> impl Future<Output = Result<(), Stop>> + Send;

    /// Reports that the workflow diverged from its history.
    fn diverged(&mut self, diverged: Box<Diverged>) -> Stop;
}

/// A host that can perform every command.
pub(crate) trait CommandHost:
    Host
    + Performer<Calls>
    + Performer<StartChild>
    + Performer<Receive>
    + Performer<TryReceive>
    + Performer<SendSignal>
    + Performer<SendCancel>
    + Performer<Sleep>
    + Performer<ReadClock>
    + Performer<DrawUuid>
    + Performer<MarkVersion>
    + Performer<Publish>
{
}

/// The recorded answer of a command, or its performance.
async fn answer<C: Command, H: Host + Performer<C>>(
    host: &mut H,
    command: C,
) -> Result<C::Answer, Stop> {
    host.admit().await?;
    match host.replay_mut().step(&command) {
        Ok(Step::Recorded(answer)) => Ok(answer),
        Ok(Step::Cancelled) => Err(Stop::Cancelled),
        Ok(Step::Perform { number, progress }) => host.perform(number, command, progress).await,
        Err(diverged) => Err(host.diverged(diverged)),
    }
}

#[async_trait]
impl<H: CommandHost> Context for H {
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
            1..=Slot::MAX_CALLS => answer(self, Calls(calls)).await,
            count => Err(EngineFault::TooManyCalls(count).into()),
        }
    }

    async fn start(&mut self, child: Child) -> Result<(), Stop> {
        answer(self, StartChild(child)).await
    }

    async fn receive(
        &mut self,
        filter: &Filter,
        timeout: Option<Duration>,
    ) -> Result<Option<Received>, Stop> {
        answer(self, Receive { filter: filter.clone(), timeout }).await
    }

    async fn try_receive(&mut self, filter: &Filter) -> Result<Option<Received>, Stop> {
        answer(self, TryReceive { filter: filter.clone() }).await
    }

    async fn send(&mut self, to: RunId, name: &str, payload: Payload) -> Result<(), Stop> {
        answer(self, SendSignal { to, name: name.into(), payload }).await
    }

    async fn cancel(&mut self, run: RunId, request: RequestedBy) -> Result<(), Stop> {
        answer(self, SendCancel { to: run, request }).await
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Stop> {
        answer(self, Sleep(duration)).await
    }

    async fn now(&mut self) -> Result<DateTime<Utc>, Stop> {
        answer(self, ReadClock).await
    }

    async fn uuid(&mut self) -> Result<Uuid, Stop> {
        answer(self, DrawUuid).await
    }

    async fn version(&mut self, change: &str, latest: u32) -> Result<u32, Stop> {
        let mark = MarkVersion { change: change.into(), latest };
        if let Some(known) = self.replay_mut().known_version(&mark) {
            return Ok(known);
        }
        let version = answer(self, mark).await?;
        self.replay_mut().marked(change, version);
        Ok(version)
    }

    async fn publish(&mut self, key: &str, value: Payload) -> Result<(), Stop> {
        answer(self, Publish { key: key.into(), value }).await
    }
}
