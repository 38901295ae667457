//! Verification: runs the decisions of a recorded history again, with no effect at all, and says whether they are the same.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use uuid::Uuid;

use crate::activity::Call;
use crate::context::{Child, Context, Received, Stop};
use crate::describe::{difference, in_full};
use crate::event::{Cause, Event, EventKind};
use crate::failure::Failure;
use crate::id::RunId;
use crate::payload::Payload;
use crate::replay::{Answer, Command, Diverged, Replay, Step};
use crate::store::StoreError;
use crate::workflow::{Ending, Workflow, Workflows};

/// Runs the decisions of a whole history again. `Ok(Some(_))` is the first difference.
///
/// # Errors
/// If the history does not begin with `RunStarted`, or names a workflow that this program does not have.
pub fn verify(workflows: &Workflows, run: &RunId, history: &[Event]) -> Result<Option<Diverged>, StoreError> {
    let mut rest = history;
    while let Some((first, after)) = rest.split_first() {
        let EventKind::RunStarted { workflow: name, input, .. } = &first.kind else {
            let record = format!("run {run}, position {}", first.position);
            return Err(StoreError::Damaged { record, reason: "a segment must begin with RunStarted".into() });
        };
        let workflow = workflows
            .find(name)
            .ok_or_else(|| StoreError::Unusable(format!("no workflow `{name}` in this program")))?;
        let length = after.iter().take_while(|event| !matches!(event.kind, EventKind::RunStarted { .. })).count();
        let (segment, next) = after.split_at(length);
        if let Some(diverged) = segment_differs(&*workflow, run, input, segment, next.first()) {
            return Ok(Some(diverged));
        }
        rest = next;
    }
    Ok(None)
}

fn segment_differs(
    workflow: &dyn Workflow,
    run: &RunId,
    input: &Payload,
    segment: &[Event],
    next: Option<&Event>,
) -> Option<Diverged> {
    let recorded_end = segment
        .iter()
        .find(|event| event.kind.outcome().is_some())
        .or(next.filter(|event| matches!(event.kind, EventKind::RunStarted { cause: Cause::ContinuedAsNew, .. })));
    let replay = Replay::new(segment.iter().cloned());
    let mut context =
        Recording { run: run.clone(), replay, has_ended: recorded_end.is_some(), asked: None, diverged: None };
    let ending = workflow.run(&mut context, input.clone()).now_or_never();
    if let Some(diverged) = context.diverged {
        return Some(diverged);
    }
    if was_terminated(segment) {
        return None;
    }
    let asked = match (ending, context.asked) {
        (Some(ending), _) => {
            if let Err(diverged) = context.replay.step(&Command::End { how: shown_ending(&ending).0 }) {
                return Some(*diverged);
            }
            let (_, shown) = shown_ending(&ending);
            shown
        }
        (None, Some(asked)) => asked,
        (None, None) => "wait for something outside of the context, which no workflow may".into(),
    };
    let end = recorded_end?;
    let recorded = shown_recorded_end(&end.kind);
    let differs = recorded != asked;
    let (recorded, asked) = difference(&recorded, &asked);
    differs.then_some(Diverged { position: end.position, recorded, asked })
}

/// Whether somebody ended the run without asking the workflow: what it would have done next does not count.
fn was_terminated(segment: &[Event]) -> bool {
    let end = segment.iter().rev().map(|event| &event.kind).take(2).collect::<Vec<_>>();
    matches!(end.as_slice(), [EventKind::RunCancelled, EventKind::RunPaused(_)])
}

fn shown_ending(ending: &Result<Ending, Stop>) -> (&'static str, String) {
    match ending {
        Ok(Ending::Complete(output)) => ("completed", format!("complete with {}", output.preview(usize::MAX))),
        Ok(Ending::ContinueAsNew(input)) => {
            ("continued as new", format!("continue as new with {}", input.preview(usize::MAX)))
        }
        Err(Stop::Cancelled) => ("cancelled", "end as cancelled".into()),
        Err(stop) => ("failed", format!("fail: {stop}")),
    }
}

fn shown_recorded_end(kind: &EventKind) -> String {
    match kind {
        EventKind::RunCompleted { output } => format!("complete with {}", output.preview(usize::MAX)),
        EventKind::RunFailed { failure } => format!("fail: {failure}"),
        EventKind::RunCancelled => "end as cancelled".into(),
        EventKind::RunStarted { input, .. } => format!("continue as new with {}", input.preview(usize::MAX)),
        other => other.name().into(),
    }
}

/// A context that answers from a history and never performs anything: where the record ends, it waits for ever.
struct Recording {
    run: RunId,
    replay: Replay,
    /// Whether the end of the run is recorded, too.
    has_ended: bool,
    asked: Option<String>,
    diverged: Option<Diverged>,
}

impl Recording {
    async fn answer(&mut self, command: Command) -> Result<Answer, Stop> {
        match self.replay.step(&command) {
            Ok(Step::Recorded(Answer::Cancelled)) => Err(Stop::Cancelled),
            Ok(Step::Recorded(answer)) => Ok(answer),
            // Who ended without a mark had come past the change before there was one.
            Ok(Step::Perform(..)) if self.has_ended && matches!(command, Command::Version { .. }) => {
                Ok(Answer::Version(0))
            }
            Ok(Step::Perform(..)) => {
                self.asked = Some(in_full(&command));
                std::future::pending().await
            }
            Err(diverged) => {
                self.diverged = Some((*diverged).clone());
                Err(diverged.into())
            }
        }
    }
}

#[async_trait]
impl Context for Recording {
    fn run(&self) -> &RunId {
        &self.run
    }

    fn commands(&self) -> u32 {
        self.replay.commands()
    }

    async fn call_all(&mut self, calls: Vec<Call>) -> Result<Vec<Result<Payload, Failure>>, Stop> {
        match self.answer(Command::Call(calls)).await? {
            Answer::Results(results) => Ok(results),
            _ => Ok(Vec::new()),
        }
    }

    async fn start(&mut self, child: Child) -> Result<(), Stop> {
        self.answer(Command::Start(child)).await.map(drop)
    }

    async fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Received>, Stop> {
        match self.answer(Command::Receive { timeout }).await? {
            Answer::Message(message) => Ok(message),
            _ => Ok(None),
        }
    }

    async fn try_receive(&mut self) -> Result<Option<Received>, Stop> {
        match self.answer(Command::TryReceive).await? {
            Answer::Message(message) => Ok(message),
            _ => Ok(None),
        }
    }

    async fn send(&mut self, to: RunId, name: &str, payload: Payload) -> Result<(), Stop> {
        self.answer(Command::Send { to, name: name.into(), payload }).await.map(drop)
    }

    async fn sleep(&mut self, duration: Duration) -> Result<(), Stop> {
        self.answer(Command::Sleep(duration)).await.map(drop)
    }

    async fn now(&mut self) -> Result<DateTime<Utc>, Stop> {
        match self.answer(Command::Now).await? {
            Answer::Time(at) => Ok(at),
            _ => Ok(DateTime::default()),
        }
    }

    async fn uuid(&mut self) -> Result<Uuid, Stop> {
        match self.answer(Command::Uuid).await? {
            Answer::Uuid(uuid) => Ok(uuid),
            _ => Ok(Uuid::nil()),
        }
    }

    async fn version(&mut self, change: &str, latest: u32) -> Result<u32, Stop> {
        match self.answer(Command::Version { change: change.into(), latest }).await? {
            Answer::Version(version) => Ok(version),
            _ => Ok(latest),
        }
    }

    async fn publish(&mut self, key: &str, value: Payload) -> Result<(), Stop> {
        self.answer(Command::Publish { key: key.into(), value }).await.map(drop)
    }
}
