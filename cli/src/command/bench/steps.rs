//! Steps per second, and how long one takes.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use futures_util::future::try_join_all;
use longhaul_engine::{Context, ContextExt, Ending, Engine, Options, Payload, Stop, Workflow, Workflows};
use longhaul_storage::Statistics;
use tokio::sync::Notify;

use super::ceiling::{self, Ceiling, Load, Measured};
use super::place;
use super::report::Steps;
use super::samples::{Latencies, median};
use super::workload::{self, Echo};

/// How many runs are in flight.
pub(super) const IN_FLIGHT: [usize; 3] = [1, 16, 256];

/// Steps of a run.
pub(super) const STEPS: usize = 10;

const WORKFLOW: &str = "bench.steps";

/// How long a round takes, and what comes before it counts. Many short rounds, for a machine is not as fast in one second
/// as in the next, and the ratios are those of neighbouring seconds.
#[derive(Debug, Clone, Copy)]
struct Times {
    rounds: usize,
    warm_up: Duration,
    steps: Duration,
    ceiling: Duration,
}

impl Times {
    fn of(quick: bool) -> Self {
        Self {
            rounds: if quick { 1 } else { 9 },
            warm_up: Duration::from_millis(200),
            steps: Duration::from_millis(800),
            ceiling: Duration::from_millis(500),
        }
    }
}

/// Ten steps, one after the other.
struct Sequence {
    slots: Arc<[Notify]>,
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
        self.slots[slot].notify_one();
        Ok(Ending::Complete(Payload::null()))
    }
}

/// What a round of steps came to.
struct Round {
    per_second: f64,
    latencies: Latencies,
    statistics: Statistics,
}

/// Rounds of steps, each with its ceilings.
pub(super) async fn measure(directory: &Path, in_flight: usize, quick: bool) -> Result<Steps> {
    let times = Times::of(quick);
    let mut rounds = Vec::new();
    for number in 0..times.rounds {
        let directory = directory.join(format!("steps-{in_flight}-{number}"));
        let round = steps(&directory, in_flight, times).await?;
        let load = load(in_flight, &round.statistics);
        let at = directory.clone();
        let ceilings = tokio::task::spawn_blocking(move || {
            anyhow::Ok((ceiling::file(&at, load, times.ceiling)?, ceiling::sled(&at, load, times.ceiling)?))
        });
        let (file, sled) = ceilings.await??;
        place::remove(&directory)?;
        rounds.push((round, file, sled));
    }
    Ok(summed(in_flight, rounds))
}

/// Keeps runs in flight for a time, and takes the steps that ended after the warm-up.
async fn steps(directory: &Path, in_flight: usize, times: Times) -> Result<Round> {
    let store = workload::store(directory).await?;
    let slots: Arc<[Notify]> = (0..in_flight).map(|_| Notify::new()).collect();
    let samples: Arc<Mutex<Vec<Sample>>> = Arc::default();
    let sequence = Sequence { slots: Arc::clone(&slots), samples: Arc::clone(&samples) };
    let engine = workload::engine(&store, Workflows::new().with(WORKFLOW, sequence), Options::default()).await?;
    let begin = Instant::now() + times.warm_up;
    let end = begin + times.steps;
    try_join_all((0..in_flight).map(|slot| {
        let (engine, slots) = (engine.clone(), Arc::clone(&slots));
        let work = tokio::spawn(async move { keep_running(&engine, slot, &slots[slot], end).await });
        async { work.await? }
    }))
    .await?;
    let statistics = store.statistics();
    engine.stop().await;

    let mut latencies = Latencies::default();
    let samples = std::mem::take(&mut *samples.lock().unwrap_or_else(PoisonError::into_inner));
    for sample in samples.iter().filter(|sample| (begin..end).contains(&sample.ended)) {
        latencies.add(sample.took);
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let per_second = latencies.count() as f64 / times.steps.as_secs_f64();
    Ok(Round { per_second, latencies, statistics })
}

/// One run after the other, until the time is over.
async fn keep_running(engine: &Engine, slot: usize, ended: &Notify, end: Instant) -> Result<()> {
    for number in 0_u64.. {
        if Instant::now() >= end {
            break;
        }
        let input = Payload::of(&slot);
        engine.start(workload::new_run(format!("bench/{slot}/{number}"), WORKFLOW, input)?).await?;
        ended.notified().await;
    }
    Ok(())
}

/// Groups of as many records, each as long, as the engine has just written.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn load(in_flight: usize, statistics: &Statistics) -> Load {
    let record = statistics.bytes / statistics.commits.max(1);
    Load { writers: in_flight, group: (statistics.mean_group().round() as usize).max(1), record: record as usize }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn summed(in_flight: usize, rounds: Vec<(Round, Measured, Measured)>) -> Steps {
    let over = |figure: &dyn Fn(&mut (Round, Measured, Measured)) -> f64, rounds: &mut [_]| {
        median(rounds.iter_mut().map(figure).collect::<Vec<_>>())
    };
    let mut rounds = rounds;
    let rounds_here = rounds.as_mut_slice();
    let mut steps = Steps {
        in_flight,
        steps_per_second: over(&|(steps, ..)| steps.per_second, rounds_here),
        mean_group: over(&|(steps, ..)| steps.statistics.mean_group(), rounds_here),
        record_bytes: over(
            &|(steps, ..)| steps.statistics.bytes as f64 / steps.statistics.commits.max(1) as f64,
            rounds_here,
        ),
        of_file: over(&|(steps, file, _)| steps.per_second / file.per_second, rounds_here),
        of_sled: over(&|(steps, _, sled)| steps.per_second / sled.per_second, rounds_here),
        p50_of_file: over(
            &|(steps, file, _)| steps.latencies.percentile(50) / file.latencies.percentile(50),
            rounds_here,
        ),
        p50_of_sled: over(
            &|(steps, _, sled)| steps.latencies.percentile(50) / sled.latencies.percentile(50),
            rounds_here,
        ),
        ..Steps::default()
    };
    let (mut all, mut files, mut sleds) = (Latencies::default(), Vec::new(), Vec::new());
    for (round, file, sled) in rounds {
        all.append(round.latencies);
        files.push(file);
        sleds.push(sled);
    }
    steps.p50_us = all.percentile(50);
    steps.p99_us = all.percentile(99);
    steps.file = Ceiling::of(files);
    steps.sled = Ceiling::of(sleds);
    steps
}
