//! Performs commands against the log. Calls of activities are in [`super::calls`].

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::command::{
    CallState, Calls, DrawUuid, MarkVersion, Publish, ReadClock, Receive, SendCancel, SendSignal,
    Sleep, StartChild, TryReceive,
};
use crate::context::{Filter, Received, Stop};
use crate::diverged::Diverged;
use crate::event::{Cause, Event, EventKind};
use crate::failure::Failure;
use crate::id::RunId;
use crate::payload::Payload;
use crate::replay::Replay;
use crate::replaying_context::{CommandHost, Host, Performer};
use crate::store::{Commit, Creation};
use crate::summary::{Status, Summary};

use super::activation::{Activation, Retirement};
use super::attempt::later;

impl Host for Activation {
    fn run(&self) -> &RunId {
        &self.run
    }

    fn replay(&self) -> &Replay {
        &self.replay
    }

    fn replay_mut(&mut self) -> &mut Replay {
        &mut self.replay
    }

    async fn admit(&mut self) -> Result<(), Stop> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if self.shared.is_stopping() {
            self.retire(Retirement::Stopping).await;
        }
        Ok(())
    }

    fn diverged(&mut self, diverged: Box<Diverged>) -> Stop {
        self.broken_by(diverged.into())
    }
}

impl CommandHost for Activation {}

impl Activation {
    /// The oldest message that the filter takes; its removal is part of the next commit.
    async fn take_message(
        &mut self,
        number: u32,
        filter: &Filter,
    ) -> Result<Option<Received>, Stop> {
        let Some((message, received)) = self.inbox.first_message(filter) else { return Ok(None) };
        self.write_taken(number, message).await?;
        Ok(Some(received))
    }

    /// Records a wait again that a pause interrupted: until then, the resumed run counts as
    /// running.
    async fn record_wait(&mut self, wait: impl Fn() -> EventKind) -> Result<(), Stop> {
        if self.summary.status == Status::Running {
            self.commit(vec![wait()], |_| ()).await?;
        }
        Ok(())
    }
}

impl Performer<Calls> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        calls: Calls,
        progress: Option<Vec<CallState>>,
    ) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        self.perform_calls(number, &calls, progress).await
    }
}

impl Performer<StartChild> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: StartChild,
        _progress: Option<()>,
    ) -> Result<(), Stop> {
        self.wait_while_paused(number, &command).await?;
        let child = command.0;
        let at = self.shared.clock.now();
        let mut labels = self.summary.labels.clone();
        labels.extend(child.labels);
        let kind = EventKind::RunStarted {
            workflow: child.workflow.into(),
            input: child.input.clone(),
            parent: Some(self.run.clone()),
            labels,
            cause: Cause::Started,
        };
        let event = Event { position: 0, at, kind };
        let summary = Summary::begin(&event).expect("the event is a RunStarted");
        let deliveries =
            self.joined(&child.run).await.map_err(|error| self.broken_by(error.into()))?;
        let kind = EventKind::ChildStarted {
            command: number,
            run: child.run.clone(),
            workflow: child.workflow.into(),
            input: child.input,
        };
        self.commit(vec![kind], |commit| {
            commit.creations.push(Creation { run: child.run, event, summary });
            commit.deliveries.extend(deliveries);
        })
        .await
    }
}

impl Performer<Receive> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: Receive,
        progress: Option<Option<DateTime<Utc>>>,
    ) -> Result<Option<Received>, Stop> {
        let deadline = if let Some(deadline) = progress {
            deadline
        } else {
            self.wait_while_paused(number, &command).await?;
            if let Some(received) = self.take_message(number, &command.filter).await? {
                return Ok(Some(received));
            }
            let deadline = command.timeout.map(|timeout| later(self.shared.clock.now(), timeout));
            self.commit(vec![EventKind::MessageAwaited { command: number, deadline }], |_| ())
                .await?;
            deadline
        };
        let awaited = || EventKind::MessageAwaited { command: number, deadline };
        loop {
            self.inbox.look();
            self.wait_while_paused(number, &command).await?;
            if let Some(received) = self.take_message(number, &command.filter).await? {
                return Ok(Some(received));
            }
            if deadline.is_some_and(|deadline| self.shared.clock.now() >= deadline) {
                self.commit(
                    vec![EventKind::MessageReceived { command: number, message: None }],
                    |_| (),
                )
                .await?;
                return Ok(None);
            }
            self.record_wait(awaited).await?;
            self.wait(deadline).await;
        }
    }
}

impl Performer<TryReceive> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: TryReceive,
        _progress: Option<()>,
    ) -> Result<Option<Received>, Stop> {
        self.wait_while_paused(number, &command).await?;
        if let Some(received) = self.take_message(number, &command.filter).await? {
            return Ok(Some(received));
        }
        self.write_later(EventKind::MessageReceived { command: number, message: None }).await?;
        Ok(None)
    }
}

impl Performer<SendSignal> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: SendSignal,
        _progress: Option<()>,
    ) -> Result<(), Stop> {
        self.wait_while_paused(number, &command).await?;
        let SendSignal { to, name, payload } = command;
        self.commit_sent(EventKind::SignalSent { command: number, to, name, payload }).await
    }
}

impl Performer<SendCancel> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: SendCancel,
        _progress: Option<()>,
    ) -> Result<(), Stop> {
        self.wait_while_paused(number, &command).await?;
        let SendCancel { to, request } = command;
        self.commit_sent(EventKind::CancelSent { command: number, to, request }).await
    }
}

impl Performer<Sleep> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: Sleep,
        progress: Option<DateTime<Utc>>,
    ) -> Result<(), Stop> {
        let fire_at = if let Some(fire_at) = progress {
            fire_at
        } else {
            self.wait_while_paused(number, &command).await?;
            let fire_at = later(self.shared.clock.now(), command.0);
            self.commit(vec![EventKind::TimerStarted { command: number, fire_at }], |_| ()).await?;
            fire_at
        };
        while self.shared.clock.now() < fire_at {
            self.inbox.look();
            self.wait_while_paused(number, &command).await?;
            self.record_wait(|| EventKind::TimerStarted { command: number, fire_at }).await?;
            self.wait(Some(fire_at)).await;
        }
        self.commit(vec![EventKind::TimerFired { command: number }], |_| ()).await
    }
}

impl Performer<ReadClock> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: ReadClock,
        _progress: Option<()>,
    ) -> Result<DateTime<Utc>, Stop> {
        self.wait_while_paused(number, &command).await?;
        let mut at = self.shared.clock.now();
        let take = |commit: &mut Commit| at = commit.events.last().map_or(at, |event| event.at);
        self.commit(vec![EventKind::TimeRead { command: number }], take).await?;
        Ok(at)
    }
}

impl Performer<DrawUuid> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: DrawUuid,
        _progress: Option<()>,
    ) -> Result<Uuid, Stop> {
        self.wait_while_paused(number, &command).await?;
        let uuid = Uuid::now_v7();
        self.commit(vec![EventKind::UuidDrawn { command: number, uuid }], |_| ()).await?;
        Ok(uuid)
    }
}

impl Performer<MarkVersion> for Activation {
    /// Marks the version at once: a version concerns the code, so a pause or a cancellation applies
    /// to the next command.
    async fn perform(
        &mut self,
        number: u32,
        command: MarkVersion,
        _progress: Option<()>,
    ) -> Result<u32, Stop> {
        let MarkVersion { change, latest } = command;
        self.commit(
            vec![EventKind::VersionMarked { command: number, change, version: latest }],
            |_| (),
        )
        .await?;
        Ok(latest)
    }
}

impl Performer<Publish> for Activation {
    async fn perform(
        &mut self,
        number: u32,
        command: Publish,
        _progress: Option<()>,
    ) -> Result<(), Stop> {
        self.wait_while_paused(number, &command).await?;
        self.write_published(number, &command.key, command.value).await
    }
}
