//! One life of a run: the port over replay and the log. It ends when the run ends, leaves memory, or cannot go on; what
//! counts is in the log.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::activity::Call;
use crate::context::{Child, Context, Received, Stop};
use crate::describe::describe;
use crate::event::{Cause, Event, EventKind, Message, MessageBody, Outcome};
use crate::failure::Failure;
use crate::id::{Position, RunId, Slot};
use crate::payload::Payload;
use crate::replay::{Answer, Command, Progress, Replay, Step};
use crate::runtime::Shared;
use crate::store::{Birth, Commit, Delivery, StoreError};
use crate::summary::{Status, Summary};
use crate::workflow::Ending;

use super::attempt::later;
use super::inbox::Inbox;
use super::write::Unwritten;

/// Why a life ends before its run does.
#[derive(Debug, Clone)]
pub(crate) enum Retirement {
    /// The run waits, and need not do so in memory.
    Suspended(Option<DateTime<Utc>>),
    /// The engine stops.
    Stopping,
    /// The run is over, without its workflow having been asked.
    Terminated,
}

/// One life of a run.
pub(crate) struct Life {
    pub(super) run: RunId,
    pub(super) shared: Arc<Shared>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) replay: Replay,
    pub(super) summary: Summary,
    pub(super) next: Position,
    /// What goes with the next commit.
    pub(super) unwritten: Unwritten,
    pub(super) paused: bool,
    /// Whether this life has found out that an outcome is unknown, and waits for a person.
    pub(super) parked: bool,
    broken: Option<Stop>,
    retire: mpsc::UnboundedSender<Retirement>,
    /// Where attempts put the progress that is to be recorded.
    pub(super) records: mpsc::UnboundedSender<(Slot, Payload)>,
    pub(super) progress: mpsc::UnboundedReceiver<(Slot, Payload)>,
}

impl Life {
    /// A life at the start of the last segment of a run's history; with the input of that segment.
    pub(crate) async fn begin(
        shared: Arc<Shared>,
        run: RunId,
        inbox: Arc<Inbox>,
        retire: mpsc::UnboundedSender<Retirement>,
    ) -> Result<(Self, Payload), StoreError> {
        inbox.take_unread();
        let summary = shared.store.summary(&run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let events = shared.store.read(&run, summary.origin).await?;
        for message in shared.store.mailbox(&run).await? {
            inbox.push(message);
        }
        Self::over(shared, run, inbox, retire, summary, events)
    }

    /// The first life of a run that was just born: its history is its birth, and its mail is handed over.
    pub(crate) fn first(
        shared: Arc<Shared>,
        birth: Birth,
        inbox: Arc<Inbox>,
        retire: mpsc::UnboundedSender<Retirement>,
    ) -> Result<(Self, Payload), StoreError> {
        let Birth { run, event, summary } = birth;
        Self::over(shared, run, inbox, retire, summary, vec![event])
    }

    fn over(
        shared: Arc<Shared>,
        run: RunId,
        inbox: Arc<Inbox>,
        retire: mpsc::UnboundedSender<Retirement>,
        summary: Summary,
        events: Vec<Event>,
    ) -> Result<(Self, Payload), StoreError> {
        let mut events = events.into_iter();
        let Some(Event { position, kind: EventKind::RunStarted { input, .. }, .. }) = events.next() else {
            let record = format!("run {run}, position {}", summary.origin);
            return Err(StoreError::Damaged { record, reason: "a segment must begin with RunStarted".into() });
        };
        let next = position + 1 + events.len() as u64;
        let paused = matches!(summary.status, Status::Paused(_));
        let replay = Replay::new(events);
        let (records, progress) = mpsc::unbounded_channel();
        let life = Self {
            run,
            shared,
            inbox,
            replay,
            summary,
            next,
            unwritten: Unwritten::default(),
            paused,
            parked: false,
            broken: None,
            retire,
            records,
            progress,
        };
        Ok((life, input))
    }

    /// Whether the run was over before this life began.
    pub(crate) fn is_over(&self) -> bool {
        self.summary.status.is_terminal()
    }

    /// The workflow that decides.
    pub(crate) fn workflow(&self) -> &str {
        &self.summary.workflow
    }

    /// Records how the workflow ended. `true`: the run goes on as a new segment.
    pub(crate) async fn end(&mut self, ending: Result<Ending, Stop>) -> Result<bool, Stop> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let how = match &ending {
            Ok(Ending::Complete(_)) => "completed",
            Ok(Ending::ContinueAsNew(_)) => "continued as new",
            Err(Stop::Failed(_)) => "failed",
            Err(Stop::Cancelled) => "cancelled",
            Err(other) => return Err(other.clone()),
        };
        self.replay.step(&Command::End { how })?;
        let kind = match ending {
            Ok(Ending::Complete(output)) => EventKind::RunCompleted { output },
            Ok(Ending::ContinueAsNew(input)) => {
                let kind = self.beginning(input, Cause::ContinuedAsNew);
                self.commit(vec![kind], |_| ()).await?;
                return Ok(true);
            }
            Err(Stop::Failed(failure)) => EventKind::RunFailed { failure },
            Err(_) => EventKind::RunCancelled,
        };
        let outcome = kind.outcome().expect("these events end a run");
        let told = self.told_parent(outcome);
        self.commit(vec![kind], |commit| commit.deliveries.extend(told)).await?;
        Ok(false)
    }

    fn beginning(&self, input: Payload, cause: Cause) -> EventKind {
        EventKind::RunStarted {
            workflow: self.summary.workflow.clone(),
            input,
            parent: self.summary.parent.clone(),
            labels: self.summary.labels.clone(),
            cause,
        }
    }

    /// What the run that started this one is told.
    pub(super) fn told_parent(&self, outcome: Outcome) -> Option<Delivery> {
        self.summary.parent.clone().map(|parent| self.child_ended(parent, self.run.clone(), outcome))
    }

    fn child_ended(&self, parent: RunId, run: RunId, outcome: Outcome) -> Delivery {
        Delivery { to: parent, at: self.shared.clock.now(), body: MessageBody::ChildEnded { run, outcome } }
    }

    pub(super) fn broken_by(&mut self, stop: Stop) -> Stop {
        self.broken = Some(stop.clone());
        stop
    }

    /// Ends this life without ending the run. Never returns: whoever drives the life drops it.
    pub(super) async fn retire(&self, retirement: Retirement) -> ! {
        let _ = self.retire.send(retirement);
        std::future::pending().await
    }

    /// Holds a command against the history; before it is performed, orders are followed.
    async fn enter(&mut self, command: &Command) -> Result<Step, Stop> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if self.shared.is_stopping() {
            self.retire(Retirement::Stopping).await;
        }
        let step = match self.replay.step(command) {
            Ok(step) => step,
            Err(diverged) => return Err(self.broken_by(diverged.into())),
        };
        match &step {
            Step::Recorded(Answer::Cancelled) => return Err(Stop::Cancelled),
            Step::Perform(number, Progress::New) if !matches!(command, Command::Version { .. }) => {
                self.follow_orders(*number, command).await?;
            }
            _ => {}
        }
        Ok(step)
    }

    /// Pauses, resumes or cancels, as the mailbox says.
    pub(super) async fn follow_orders(&mut self, number: u32, asked: &Command) -> Result<(), Stop> {
        loop {
            if self.paused {
                self.inbox.look();
            }
            self.obey_terminate().await?;
            let Some(Message { seq, body, .. }) = self.inbox.first_order() else {
                if !self.paused {
                    return Ok(());
                }
                self.wait(None).await;
                continue;
            };
            let (kind, cancelled) = match body {
                MessageBody::Pause(request) => (EventKind::RunPaused(request), false),
                MessageBody::Resume(request) => (EventKind::RunResumed(request), false),
                MessageBody::Cancel(request) => {
                    (EventKind::CancelDelivered { command: number, asked: describe(asked), request }, true)
                }
                _ => return Ok(()),
            };
            self.paused = matches!(kind, EventKind::RunPaused(_));
            self.commit_taking(seq, vec![kind]).await?;
            if cancelled {
                return Err(Stop::Cancelled);
            }
        }
    }

    /// A command that is done as soon as it is recorded.
    async fn simple(
        &mut self,
        command: Command,
        event: impl FnOnce(u32, Command) -> EventKind + Send,
        rest: impl FnOnce(&mut Commit) + Send,
    ) -> Result<Option<Answer>, Stop> {
        match self.enter(&command).await? {
            Step::Recorded(answer) => Ok(Some(answer)),
            Step::Perform(number, _) => {
                self.commit(vec![event(number, command)], rest).await?;
                Ok(None)
            }
        }
    }

    /// Reads the mailbox in the store, if something may be there that was not handed over.
    pub(super) async fn read_mail(&mut self) -> Result<(), Stop> {
        if !self.inbox.take_unread() {
            return Ok(());
        }
        match self.shared.store.mailbox(&self.run).await {
            Ok(mail) => mail.into_iter().for_each(|message| self.inbox.push(message)),
            Err(error) => return Err(self.broken_by(error.into())),
        }
        Ok(())
    }

    async fn take_message(&mut self, number: u32) -> Result<Option<Received>, Stop> {
        let Some(message) = self.inbox.first_message() else { return Ok(None) };
        self.write_taken(number, message.clone()).await?;
        Ok(Received::from_message(message))
    }
}

#[async_trait]
impl Context for Life {
    fn run(&self) -> &RunId {
        &self.run
    }

    fn commands(&self) -> u32 {
        self.replay.commands()
    }

    async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        let command = Command::Call(calls);
        let (number, progress) = match self.enter(&command).await? {
            Step::Recorded(Answer::Results(results)) => return Ok(results),
            Step::Recorded(_) => return Ok(Vec::new()),
            Step::Perform(number, progress) => (number, progress),
        };
        let states = match progress {
            Progress::Calls(states) => Some(states),
            _ => None,
        };
        self.perform_calls(number, &command, states).await
    }

    async fn start(&mut self, child: Child) -> Result<(), Stop> {
        let command = Command::Start(child.clone());
        let Step::Perform(number, _) = self.enter(&command).await? else { return Ok(()) };
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
        // Joining a run that is over already: its outcome is known, and nobody else will send it.
        let ended = self.shared.outcome(&child.run).await.map_err(|error| self.broken_by(error.into()))?;
        let told = ended.map(|outcome| self.child_ended(self.run.clone(), child.run.clone(), outcome));
        let kind = EventKind::ChildStarted {
            command: number,
            run: child.run.clone(),
            workflow: child.workflow.into(),
            input: child.input,
        };
        self.commit(vec![kind], |commit| {
            commit.births.push(Birth { run: child.run, event, summary });
            commit.deliveries.extend(told);
        })
        .await
    }

    async fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Received>, Stop> {
        let command = Command::Receive { timeout };
        let (number, deadline) = match self.enter(&command).await? {
            Step::Recorded(Answer::Message(message)) => return Ok(message),
            Step::Recorded(_) => return Ok(None),
            Step::Perform(number, Progress::Waiting(deadline)) => (number, deadline),
            Step::Perform(number, _) => {
                if let Some(received) = self.take_message(number).await? {
                    return Ok(Some(received));
                }
                let deadline = timeout.map(|timeout| later(self.shared.clock.now(), timeout));
                self.commit(vec![EventKind::MessageAwaited { command: number, deadline }], |_| ()).await?;
                (number, deadline)
            }
        };
        loop {
            self.inbox.look();
            self.follow_orders(number, &command).await?;
            if let Some(received) = self.take_message(number).await? {
                return Ok(Some(received));
            }
            if deadline.is_some_and(|deadline| self.shared.clock.now() >= deadline) {
                self.commit(vec![EventKind::MessageReceived { command: number, message: None }], |_| ()).await?;
                return Ok(None);
            }
            self.wait(deadline).await;
        }
    }

    async fn try_receive(&mut self) -> Result<Option<Received>, Stop> {
        let number = match self.enter(&Command::TryReceive).await? {
            Step::Recorded(Answer::Message(message)) => return Ok(message),
            Step::Recorded(_) => return Ok(None),
            Step::Perform(number, _) => number,
        };
        if let Some(received) = self.take_message(number).await? {
            return Ok(Some(received));
        }
        self.write_later(EventKind::MessageReceived { command: number, message: None }).await?;
        Ok(None)
    }

    async fn send(&mut self, to: RunId, name: &str, payload: Payload) -> Result<(), Stop> {
        let body = MessageBody::sent(name, &payload, &self.run);
        let delivery = Delivery { to: to.clone(), at: self.shared.clock.now(), body };
        let command = Command::Send { to: to.clone(), name: name.into(), payload: payload.clone() };
        let name = name.to_owned();
        let event = |command, _| EventKind::SignalSent { command, to, name, payload };
        self.simple(command, event, |commit| commit.deliveries.push(delivery)).await.map(drop)
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Stop> {
        let command = Command::Sleep(duration);
        let (number, fire_at) = match self.enter(&command).await? {
            Step::Perform(number, Progress::Waiting(Some(fire_at))) => (number, fire_at),
            Step::Recorded(_) => return Ok(()),
            Step::Perform(number, _) => {
                let fire_at = later(self.shared.clock.now(), duration);
                self.commit(vec![EventKind::TimerStarted { command: number, fire_at }], |_| ()).await?;
                (number, fire_at)
            }
        };
        while self.shared.clock.now() < fire_at {
            self.inbox.look();
            self.follow_orders(number, &command).await?;
            self.wait(Some(fire_at)).await;
        }
        self.commit(vec![EventKind::TimerFired { command: number }], |_| ()).await
    }

    async fn now(&mut self) -> Result<DateTime<Utc>, Stop> {
        match self.enter(&Command::Now).await? {
            Step::Recorded(Answer::Time(at)) => Ok(at),
            Step::Recorded(_) => Ok(DateTime::default()),
            Step::Perform(number, _) => {
                let mut at = self.shared.clock.now();
                let take = |commit: &mut Commit| at = commit.events.last().map_or(at, |event| event.at);
                self.commit(vec![EventKind::TimeRead { command: number }], take).await?;
                Ok(at)
            }
        }
    }

    async fn uuid(&mut self) -> Result<Uuid, Stop> {
        let uuid = Uuid::now_v7();
        let event = |command, _| EventKind::UuidDrawn { command, uuid };
        match self.simple(Command::Uuid, event, |_| ()).await? {
            Some(Answer::Uuid(recorded)) => Ok(recorded),
            _ => Ok(uuid),
        }
    }

    async fn version(&mut self, change: &str, latest: u32) -> Result<u32, Stop> {
        let command = Command::Version { change: change.into(), latest };
        let event = |command, _| EventKind::VersionMarked { command, change: change.into(), version: latest };
        if let Some(Answer::Version(recorded)) = self.simple(command, event, |_| ()).await? {
            return Ok(recorded);
        }
        self.replay.marked(change, latest);
        Ok(latest)
    }

    async fn publish(&mut self, key: &str, value: Payload) -> Result<(), Stop> {
        let command = Command::Publish { key: key.into(), value: value.clone() };
        match self.enter(&command).await? {
            Step::Recorded(_) => Ok(()),
            Step::Perform(number, _) => self.write_published(number, key, value).await,
        }
    }
}
