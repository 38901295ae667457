//! Steps per second, and how long one takes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use futures_util::future::try_join_all;
use longhaul_engine::{
    Context, ContextExt, Ending, Engine, Options, Payload, Stop, Workflow, Workflows,
};
use longhaul_storage::Statistics;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Notify;

use super::ceiling::{self, Ceiling, Load, Rate, Round, STEPS, median};
use super::workload::{self, Echo};

/// How many runs are in flight.
pub(super) const IN_FLIGHT: [usize; 3] = [1, 16, 256];

const WORKFLOW: &str = "bench.steps";

/// Many short rounds: the speed of a machine varies from second to second, and each ratio compares
/// neighbouring seconds.
const ROUNDS: usize = 9;
const WARM_UP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(800);
const CEILING: Duration = Duration::from_millis(500);

/// Steps with a number of runs in flight.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Steps {
    /// Runs in flight.
    pub(super) in_flight: usize,
    #[serde(flatten)]
    pub(super) rate: Rate,
    /// Mean number of commits per sync.
    pub(super) mean_group: f64,
    /// Mean size of a record.
    pub(super) record_bytes: f64,
    /// The same writes to a plain file.
    pub(super) file: Ceiling,
    /// The same writes to sled alone.
    pub(super) sled: Ceiling,
}

/// Runs [`STEPS`] steps, one after the other.
struct Sequence {
    ended: Arc<[Notify]>,
    samples: Arc<Mutex<Vec<Sample>>>,
}

#[derive(Clone, Copy)]
struct Sample {
    ended: Instant,
    took: Duration,
}

#[async_trait]
impl Workflow for Sequence {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let slot: usize = input.read()?;
        let mut samples = Vec::with_capacity(STEPS);
        for number in 0..STEPS {
            let begun = Instant::now();
            context.call::<Echo>(workload::text(number)).await?;
            let ended = Instant::now();
            samples.push(Sample { ended, took: ended - begun });
        }
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).extend(samples);
        self.ended[slot].notify_one();
        Ok(Ending::Complete(Payload::null()))
    }
}

/// Measures rounds of steps, each with its ceilings.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "small positive numbers"
)]
pub(super) async fn measure(directory: &Path, in_flight: usize, quick: bool) -> Result<Steps> {
    let mut steps = Steps { in_flight, ..Steps::default() };
    let mut groups = Vec::new();
    let mut records = Vec::new();
    let mut engines = Vec::new();
    let mut files = Vec::new();
    let mut sleds = Vec::new();
    for number in 0..if quick { 1 } else { ROUNDS } {
        let directory = directory.join(format!("steps-{in_flight}-{number}"));
        let (round, statistics) = round(&directory, in_flight).await?;
        engines.push(round);
        groups.push(statistics.mean_group());
        let record = statistics.bytes / statistics.commits.max(1);
        records.push(record as f64);
        let group = (statistics.mean_group().round() as usize).max(1);
        let load = Load { writers: in_flight, group, record: record as usize };
        let at = directory.clone();
        let ceilings = tokio::task::spawn_blocking(move || {
            anyhow::Ok((ceiling::file(&at, load, CEILING)?, ceiling::sled(&at, load, CEILING)?))
        });
        let (file, sled) = ceilings.await??;
        files.push(file);
        sleds.push(sled);
        std::fs::remove_dir_all(&directory)?;
    }
    steps.rate = Rate::of(&engines);
    steps.mean_group = median(groups.into_iter());
    steps.record_bytes = median(records.into_iter());
    steps.file = Ceiling::of(&engines, &files);
    steps.sled = Ceiling::of(&engines, &sleds);
    Ok(steps)
}

/// Keeps runs in flight for a time and takes the steps that ended after the warm-up.
async fn round(directory: &Path, in_flight: usize) -> Result<(Round, Statistics)> {
    let store = workload::store(directory).await?;
    let ended: Arc<[Notify]> = (0..in_flight).map(|_| Notify::new()).collect();
    let samples: Arc<Mutex<Vec<Sample>>> = Arc::default();
    let sequence = Sequence { ended: Arc::clone(&ended), samples: Arc::clone(&samples) };
    let engine =
        workload::engine(&store, Workflows::new().with(WORKFLOW, sequence), Options::default())
            .await?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + MEASURED;
    try_join_all((0..in_flight).map(|slot| {
        let engine = engine.clone();
        let ended = Arc::clone(&ended);
        let work =
            tokio::spawn(async move { keep_running(&engine, slot, &ended[slot], end).await });
        async { work.await? }
    }))
    .await?;
    let statistics = store.statistics();
    engine.stop().await;
    let samples = std::mem::take(&mut *samples.lock().unwrap_or_else(PoisonError::into_inner));
    let measured = samples.iter().filter(|sample| (begin..end).contains(&sample.ended));
    let latencies: Vec<Duration> = measured.map(|sample| sample.took).collect();
    Ok((Round::new(latencies.len(), MEASURED, latencies), statistics))
}

/// Starts one run after the other until the time is over.
async fn keep_running(engine: &Engine, slot: usize, ended: &Notify, end: Instant) -> Result<()> {
    let mut number = 0_u64;
    while Instant::now() < end {
        engine
            .start(workload::new_run(
                format!("bench/{slot}/{number}"),
                WORKFLOW,
                Payload::of(&slot),
            )?)
            .await?;
        ended.notified().await;
        number += 1;
    }
    Ok(())
}
