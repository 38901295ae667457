//! Verification: replays a recorded history without effects and reports the first difference.

use futures_util::FutureExt;

use crate::command::Command;
use crate::context::Stop;
use crate::describe::difference;
use crate::diverged::Diverged;
use crate::event::{Cause, Event, EventKind};
use crate::id::RunId;
use crate::payload::Payload;
use crate::replay::Replay;
use crate::replaying_context::{CommandHost, Host, Performer};
use crate::segment_end::SegmentEnd;
use crate::store::StoreError;
use crate::workflow::{Workflow, Workflows};

/// Replays a whole history. `Ok(Some(_))` is the first difference.
///
/// # Errors
/// If the history does not begin with `RunStarted`, or names an unknown workflow.
pub fn verify(
    workflows: &Workflows,
    run: &RunId,
    history: &[Event],
) -> Result<Option<Diverged>, StoreError> {
    let mut rest = history;
    while let Some((first, after)) = rest.split_first() {
        let EventKind::RunStarted { workflow: name, input, .. } = &first.kind else {
            let record = format!("run {run}, position {}", first.position);
            return Err(StoreError::Damaged {
                record,
                reason: "a segment must begin with RunStarted".into(),
            });
        };
        let workflow = workflows
            .find(name)
            .ok_or_else(|| StoreError::Unusable(format!("no workflow `{name}` in this program")))?;
        let length = after
            .iter()
            .take_while(|event| !matches!(event.kind, EventKind::RunStarted { .. }))
            .count();
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
    let recorded_end =
        segment.iter().find(|event| event.kind.outcome().is_some()).or(next.filter(|event| {
            matches!(event.kind, EventKind::RunStarted { cause: Cause::ContinuedAsNew, .. })
        }));
    let replay = Replay::new(segment.iter().cloned(), recorded_end.is_some());
    let mut context = Recording { run: run.clone(), replay, next: None, diverged: None };
    let ending = workflow.run(&mut context, input.clone()).now_or_never();
    if let Some(diverged) = context.diverged {
        return Some(diverged);
    }
    // Terminated: the next command of the workflow does not count.
    if recorded_end.is_some_and(|end| matches!(end.kind, EventKind::RunTerminated(_))) {
        return None;
    }
    let recorded = recorded_end.and_then(|end| SegmentEnd::recorded(&end.kind));
    let asked = match (ending, context.next) {
        (Some(ending), _) => match SegmentEnd::of(ending) {
            Ok(asked) => {
                if let Err(diverged) = context.replay.end(asked.how()) {
                    return Some(*diverged);
                }
                if recorded.as_ref() == Some(&asked) {
                    return None;
                }
                asked.to_string()
            }
            Err(stop) => format!("stop: {stop}"),
        },
        (None, Some(command)) => command,
        (None, None) => "wait for something outside of the context, which no workflow may".into(),
    };
    let end = recorded_end?;
    let recorded = recorded.map_or_else(|| end.kind.name().to_owned(), |end| end.to_string());
    let (recorded, asked) = difference(&recorded, &asked);
    Some(Diverged { position: end.position, recorded, asked })
}

/// A host that performs nothing: at the end of the record it waits forever.
struct Recording {
    run: RunId,
    replay: Replay,
    /// The command after the end of the record.
    next: Option<String>,
    diverged: Option<Diverged>,
}

impl Host for Recording {
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
        Ok(())
    }

    fn diverged(&mut self, diverged: Box<Diverged>) -> Stop {
        self.diverged = Some((*diverged).clone());
        diverged.into()
    }
}

impl CommandHost for Recording {}

impl<C: Command> Performer<C> for Recording {
    async fn perform(
        &mut self,
        _number: u32,
        command: C,
        _progress: Option<C::Progress>,
    ) -> Result<C::Answer, Stop> {
        self.next = Some(command.text());
        std::future::pending().await
    }
}
