//! Opening a long log and continuing its active runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use chrono::Utc;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use longhaul_engine::event::Cause;
use longhaul_engine::store::{Commit, Delivery};
use longhaul_engine::{
    Activity, Context, ContextExt, Ending, Event, EventKind, EventLog, Filter, MessageBody,
    Options, Payload, RunId, Slot, Stop, Summary, Workflow, Workflows,
};
use longhaul_storage::SledStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::workload::{self, Echo};
use super::{Part, machine};

const WORKFLOW: &str = "bench.long";

/// Runs in the log; one in ten is active.
const RUNS: usize = 10_000;

/// Events of each.
const EVENTS: usize = 100;

/// How long to wait for the runs to continue.
const PATIENCE: Duration = Duration::from_mins(5);

/// A long log, opened.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Opening {
    /// Events in the log.
    pub(super) events: usize,
    /// Runs in the log.
    pub(super) runs: usize,
    /// Runs that have not ended.
    pub(super) active: u32,
    /// The size of the log on the disk.
    pub(super) log_bytes: u64,
    /// Whether the page cache of the log was dropped first.
    pub(super) cold: bool,
    #[serde(flatten)]
    pub(super) resumed: Resumed,
}

/// Figures of the process that opened the log.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Resumed {
    /// Until the log was open.
    pub(super) store_seconds: f64,
    /// Until the next step of each active run was durable.
    pub(super) total_seconds: f64,
    /// Peak memory of the process.
    pub(super) peak_bytes: u64,
}

/// The next command of a run after its recorded steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Next {
    Step,
    Message,
    Nothing,
}

impl Next {
    fn of(run: usize) -> Self {
        match run % 20 {
            0 => Self::Step,
            10 => Self::Message,
            _ => Self::Nothing,
        }
    }

    /// The number of recorded steps, so that the history has [`EVENTS`] events.
    fn steps(self) -> usize {
        if self == Self::Step { EVENTS - 1 } else { EVENTS - 2 }
    }
}

struct LongHistory(Arc<Semaphore>);

#[async_trait]
impl Workflow for LongHistory {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let next: Next = input.read()?;
        for number in 0..next.steps() {
            context.call::<Echo>(workload::text(number)).await?;
        }
        match next {
            Next::Step => drop(context.call::<Echo>(workload::text(next.steps())).await?),
            Next::Message => drop(context.receive(&Filter::any(), None).await?),
            Next::Nothing => return Ok(Ending::Complete(Payload::null())),
        }
        self.0.add_permits(1);
        context.receive(&Filter::any(), None).await?;
        Ok(Ending::Complete(Payload::null()))
    }
}

/// Writes a log and opens it in a new process.
pub(super) async fn measure(directory: &Path, scale: usize) -> Result<Opening> {
    let runs = RUNS / scale;
    let store = workload::store(directory).await?;
    write(&store, runs).await?;
    let events = store.statistics().events;
    tokio::task::spawn_blocking(move || drop(store)).await?;
    let log = directory.join("log").join("db");
    let log_bytes =
        log.metadata().with_context(|| format!("cannot look at {}", log.display()))?.len();
    let cold = machine::forget_cached(&log)?;
    let active = u32::try_from((0..runs).filter(|run| Next::of(*run) != Next::Nothing).count())?;
    let resumed = Part::Open { directory: directory.to_owned(), active }.measure().await?;
    std::fs::remove_dir_all(directory)?;
    Ok(Opening { events: usize::try_from(events)?, runs, active, log_bytes, cold, resumed })
}

/// Writes whole histories, as the engine would have written them.
async fn write(store: &SledStore, runs: usize) -> Result<()> {
    let commits = (0..runs)
        .map(|number| async move { anyhow::Ok(store.commit(history(number)?).await.map(drop)?) });
    stream::iter(commits).buffer_unordered(64).try_collect::<()>().await?;
    let receivers = (0..runs).filter(|number| Next::of(*number) == Next::Message);
    let messages = receivers.map(|number| async move {
        let body = MessageBody::signal("go", Payload::null());
        let delivery = Delivery { to: name(number)?, at: Utc::now(), body };
        anyhow::Ok(store.deliver(delivery).await.map(drop)?)
    });
    stream::iter(messages).buffer_unordered(64).try_collect::<()>().await
}

fn name(number: usize) -> Result<RunId> {
    Ok(RunId::new(format!("bench/{number:05}"))?)
}

fn history(number: usize) -> Result<Commit> {
    let next = Next::of(number);
    let begin = EventKind::RunStarted {
        workflow: WORKFLOW.into(),
        input: Payload::of(&next),
        parent: None,
        labels: [].into(),
        cause: Cause::Started,
    };
    let mut kinds = vec![begin];
    for (command, step) in (0..next.steps()).enumerate() {
        let text = Payload::of(&workload::text(step));
        kinds.push(EventKind::ActivityCompleted {
            slot: Slot::only(u32::try_from(command)?),
            name: Echo::NAME.into(),
            input: text.clone(),
            attempt: 1,
            output: text,
        });
    }
    match next {
        Next::Step => {}
        Next::Message => {
            kinds.push(EventKind::MessageAwaited {
                command: u32::try_from(next.steps())?,
                deadline: None,
            });
        }
        Next::Nothing => kinds.push(EventKind::RunCompleted { output: Payload::null() }),
    }
    let at = Utc::now();
    let events: Vec<_> =
        (0..).zip(kinds).map(|(position, kind)| Event { position, at, kind }).collect();
    let mut summary = Summary::begin(&events[0]).context("a history begins with RunStarted")?;
    for event in &events[1..] {
        summary.apply(event);
    }
    Ok(Commit { summary: Some(summary), ..Commit::of(name(number)?, events) })
}

/// In the child: opens the log and waits for the next step of all active runs.
pub(super) async fn resume(directory: &Path, active: u32) -> Result<Resumed> {
    let begun = Instant::now();
    let store = workload::store(directory).await?;
    let opened = begun.elapsed();
    let resumed = Arc::new(Semaphore::new(0));
    let workflows = Workflows::new().with(WORKFLOW, LongHistory(Arc::clone(&resumed)));
    let engine = workload::engine(&store, workflows, Options::default()).await?;
    if tokio::time::timeout(PATIENCE, resumed.acquire_many(active)).await.is_err() {
        bail!(
            "only {} of {active} runs continued; stuck: {:?}",
            resumed.available_permits(),
            engine.stuck()
        );
    }
    let total = begun.elapsed();
    let peak_bytes = machine::memory()?.peak;
    engine.stop().await;
    Ok(Resumed {
        store_seconds: opened.as_secs_f64(),
        total_seconds: total.as_secs_f64(),
        peak_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_history_has_as_many_events() {
        for number in 0..20 {
            assert_eq!(history(number).unwrap().events.len(), EVENTS);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn runs_of_a_written_log_go_on() {
        let directory = tempfile::tempdir().unwrap();
        let store = workload::store(directory.path()).await.unwrap();
        write(&store, 40).await.unwrap();
        drop(store);
        let resumed = resume(directory.path(), 4).await.unwrap();
        assert!(resumed.total_seconds >= resumed.store_seconds);
    }
}
