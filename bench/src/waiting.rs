//! The memory of runs that wait.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use async_trait::async_trait;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use longhaul_engine::{
    Context, Ending, Engine, Filter, Options, Payload, Stop, Workflow, Workflows,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::machine::Memory;
use super::{Part, machine, workload};

const WORKFLOW: &str = "bench.waiting";
const RUNS: usize = 10_000;

/// How long to wait until all runs wait.
const PATIENCE: Duration = Duration::from_mins(5);

/// Waiting runs, with the default limits and without.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Waiting {
    /// The number of runs.
    pub(super) runs: usize,
    /// With the default limits, under which most of them leave memory.
    pub(super) usual: ProcessFigures,
    /// With all of them in memory.
    pub(super) resident: ProcessFigures,
}

/// Figures of the process that holds the runs.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct ProcessFigures {
    /// Runs in memory.
    pub(super) lives: usize,
    /// Memory of the process before they were started.
    pub(super) before_bytes: u64,
    /// Its memory when all of them waited.
    pub(super) after_bytes: u64,
    /// Its peak memory.
    pub(super) peak_bytes: u64,
}

impl ProcessFigures {
    /// The figures now; then stops the engine.
    pub(super) async fn at_end_of(engine: &Engine, before: &Memory) -> Result<Self> {
        let lives = engine.resident_runs();
        let after = machine::memory()?;
        engine.stop().await;
        Ok(Self {
            lives,
            before_bytes: before.resident,
            after_bytes: after.resident,
            peak_bytes: after.peak,
        })
    }
}

/// Waits for a message that does not come.
struct Wait;

#[async_trait]
impl Workflow for Wait {
    async fn run(&self, context: &mut dyn Context, _input: Payload) -> Result<Ending, Stop> {
        context.receive(&Filter::any(), None).await?;
        Ok(Ending::Complete(Payload::null()))
    }
}

pub(super) async fn measure(directory: &Path, scale: usize) -> Result<Waiting> {
    let runs = RUNS / scale;
    let held = async |resident| {
        let directory = directory.join(format!("waiting-{resident}"));
        let held = Part::Waiting { directory: directory.clone(), runs, resident }.measure().await?;
        std::fs::remove_dir_all(&directory)?;
        anyhow::Ok(held)
    };
    Ok(Waiting { runs, usual: held(false).await?, resident: held(true).await? })
}

/// In the child: starts the runs and measures when all of them wait durably.
pub(super) async fn hold(directory: &Path, runs: usize, resident: bool) -> Result<ProcessFigures> {
    let store = workload::store(directory).await?;
    let options = if resident {
        Options { resident_waiting: runs, idle: PATIENCE, ..Options::default() }
    } else {
        Options::default()
    };
    let limit = options.resident_waiting;
    let engine = workload::engine(&store, Workflows::new().with(WORKFLOW, Wait), options).await?;
    let before = machine::memory()?;
    let starts = (0..runs).map(|number| {
        let engine = engine.clone();
        async move {
            let input = Payload::of(&workload::text(number));
            engine.start(workload::new_run(format!("bench/{number:05}"), WORKFLOW, input)?).await?;
            anyhow::Ok(())
        }
    });
    stream::iter(starts).buffer_unordered(256).try_collect::<()>().await?;
    let begun = Instant::now();
    // Each has two events then: RunStarted and MessageAwaited.
    let waiting =
        || store.statistics().events >= 2 * runs as u64 && engine.resident_runs() <= limit;
    while !waiting() {
        if begun.elapsed() > PATIENCE {
            bail!("the runs do not reach their wait; stuck: {:?}", engine.stuck());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ProcessFigures::at_end_of(&engine, &before).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn runs_come_to_wait_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let held = hold(directory.path(), 50, true).await.unwrap();
        assert_eq!(held.lives, 50);
    }
}
