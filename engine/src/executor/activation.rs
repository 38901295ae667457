//! One activation of a run: its `Context`, over replay and the log. It ends when the run ends,
//! leaves memory, or is stuck; all durable state is in the log.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use crate::command::Command;
use crate::context::Stop;
use crate::event::{Cause, Event, EventKind, Message, MessageBody, Outcome};
use crate::id::{Position, RunId, Slot};
use crate::payload::Payload;
use crate::replay::Replay;
use crate::segment_end::SegmentEnd;
use crate::store::{Creation, Delivery, StoreError};
use crate::summary::{Status, Summary};
use crate::workflow::Ending;

use super::inbox::Inbox;
use super::shared::Shared;
use super::unwritten::Unwritten;

/// Why an activation ends before its run does.
#[derive(Debug, Clone)]
pub(crate) enum Retirement {
    /// The run waits and may leave memory.
    Suspended(Option<DateTime<Utc>>),
    /// The engine is stopping.
    Stopping,
    /// The run was terminated without running its workflow again.
    Terminated,
}

/// One activation of a run.
pub(crate) struct Activation {
    pub(super) run: RunId,
    pub(super) shared: Arc<Shared>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) replay: Replay,
    pub(super) summary: Summary,
    pub(super) next: Position,
    /// Events for the next commit.
    pub(super) unwritten: Unwritten,
    /// Whether this activation has parked the run: an unknown outcome waits for a person.
    pub(super) parked: bool,
    pub(super) broken: Option<Stop>,
    retire: mpsc::UnboundedSender<Retirement>,
    /// Receives the progress of attempts, for the history.
    pub(super) records: mpsc::UnboundedSender<(Slot, Payload)>,
    pub(super) progress: mpsc::UnboundedReceiver<(Slot, Payload)>,
}

impl Activation {
    /// An activation at the start of the last segment of a run's history; returns the input of that
    /// segment.
    pub(crate) async fn begin(
        shared: Arc<Shared>,
        run: RunId,
        inbox: Arc<Inbox>,
        retire: mpsc::UnboundedSender<Retirement>,
    ) -> Result<(Self, Payload), StoreError> {
        inbox.take_unread();
        let summary =
            shared.store.summary(&run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let events = shared.store.read(&run, summary.origin).await?;
        for message in shared.store.mailbox(&run).await? {
            inbox.push(message);
        }
        Self::new(shared, run, inbox, retire, summary, events)
    }

    /// The first activation of a run that was just created: its history is its creation, and its
    /// mailbox is passed in.
    pub(crate) fn of_new_run(
        shared: Arc<Shared>,
        creation: Creation,
        inbox: Arc<Inbox>,
        retire: mpsc::UnboundedSender<Retirement>,
    ) -> Result<(Self, Payload), StoreError> {
        let Creation { run, event, summary } = creation;
        Self::new(shared, run, inbox, retire, summary, vec![event])
    }

    fn new(
        shared: Arc<Shared>,
        run: RunId,
        inbox: Arc<Inbox>,
        retire: mpsc::UnboundedSender<Retirement>,
        summary: Summary,
        events: Vec<Event>,
    ) -> Result<(Self, Payload), StoreError> {
        let mut events = events.into_iter();
        let Some(Event { position, kind: EventKind::RunStarted { input, .. }, .. }) = events.next()
        else {
            let record = format!("run {run}, position {}", summary.origin);
            return Err(StoreError::Damaged {
                record,
                reason: "a segment must begin with RunStarted".into(),
            });
        };
        let next = position + 1 + events.len() as u64;
        let is_cancel = |event: &Event| matches!(event.kind, EventKind::CancelDelivered { .. });
        inbox.set_cancelled(events.as_slice().iter().any(is_cancel));
        let replay = Replay::new(events, false);
        let (records, progress) = mpsc::unbounded_channel();
        let activation = Self {
            run,
            shared,
            inbox,
            replay,
            summary,
            next,
            unwritten: Unwritten::default(),
            parked: false,
            broken: None,
            retire,
            records,
            progress,
        };
        Ok((activation, input))
    }

    /// Whether the run was over before this activation began.
    pub(crate) fn is_over(&self) -> bool {
        self.summary.status.is_terminal()
    }

    /// The workflow that decides.
    pub(crate) fn workflow(&self) -> &str {
        &self.summary.workflow
    }

    /// Records the end of the workflow. `true`: the run continues as a new segment.
    pub(crate) async fn end(&mut self, ending: Result<Ending, Stop>) -> Result<bool, Stop> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let end = SegmentEnd::of(ending)?;
        self.replay.end(end.how())?;
        let kind = match end {
            SegmentEnd::Completed(output) => EventKind::RunCompleted { output },
            SegmentEnd::ContinuedAsNew(input) => {
                let kind = self.beginning(input, Cause::ContinuedAsNew);
                self.commit(vec![kind], |_| ()).await?;
                return Ok(true);
            }
            SegmentEnd::Failed(failure) => EventKind::RunFailed { failure },
            SegmentEnd::Cancelled => EventKind::RunCancelled,
        };
        let outcome = kind.outcome().expect("these events end a run");
        let delivery = self.parent_delivery(outcome);
        self.commit(vec![kind], |commit| commit.deliveries.extend(delivery)).await?;
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

    /// Delivers the outcome of this run to its parent.
    pub(super) fn parent_delivery(&self, outcome: Outcome) -> Option<Delivery> {
        self.summary
            .parent
            .clone()
            .map(|parent| self.child_ended(parent, self.run.clone(), outcome))
    }

    pub(super) fn child_ended(&self, parent: RunId, run: RunId, outcome: Outcome) -> Delivery {
        Delivery {
            to: parent,
            at: self.shared.clock.now(),
            body: MessageBody::ChildEnded { run, outcome },
        }
    }

    pub(super) fn broken_by(&mut self, stop: Stop) -> Stop {
        self.broken = Some(stop.clone());
        stop
    }

    /// Ends this activation without ending the run. Never returns: the driver drops it.
    pub(super) async fn retire(&self, retirement: Retirement) -> ! {
        let _ = self.retire.send(retirement);
        std::future::pending().await
    }

    /// Whether the run is paused, so that no command may be performed. Only the log decides: a
    /// pause outlives this process.
    pub(super) fn is_paused(&self) -> bool {
        matches!(self.summary.status, Status::Paused(_))
    }

    /// Applies pauses, resumptions and cancellations from the mailbox; returns when the run is not
    /// paused.
    pub(super) async fn wait_while_paused(
        &mut self,
        number: u32,
        command: &impl Command,
    ) -> Result<(), Stop> {
        loop {
            if self.is_paused() {
                self.inbox.look();
            }
            self.apply_control_messages(number, command).await?;
            if !self.is_paused() {
                return Ok(());
            }
            self.wait(None).await;
        }
    }

    /// Applies all control messages of the mailbox in order.
    pub(super) async fn apply_control_messages(
        &mut self,
        number: u32,
        command: &impl Command,
    ) -> Result<(), Stop> {
        self.terminate_if_requested().await?;
        while let Some(Message { seq, body, .. }) = self.inbox.first_control_message() {
            let (kind, cancelled) = match body {
                MessageBody::Pause(request) => (EventKind::RunPaused(request), false),
                MessageBody::Resume(request) => (EventKind::RunResumed(request), false),
                MessageBody::Cancel(request) => (
                    EventKind::CancelDelivered {
                        command: number,
                        digest: command.digest(),
                        request,
                    },
                    true,
                ),
                _ => return Ok(()),
            };
            self.commit_taking(seq, vec![kind]).await?;
            if cancelled {
                self.inbox.set_cancelled(true);
                return Err(Stop::Cancelled);
            }
        }
        Ok(())
    }

    /// Reads the mailbox from the store, if it may hold messages that were not passed in memory.
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
}
