//! Rates and latencies, and the ceilings: the same writes to the disk and to sled without an
//! engine.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// Steps of a run.
pub(super) const STEPS: usize = 10;
/// Records of a run: its beginning, its steps, its end.
const RECORDS: usize = STEPS + 2;

/// The writes that measure a ceiling.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// How many runs take turns.
    pub(super) writers: usize,
    /// Records per sync.
    pub(super) group: usize,
    /// Bytes of a record with its key.
    pub(super) record: usize,
}

/// One round of a measurement.
#[derive(Debug)]
pub(super) struct Round {
    /// Steps per second.
    pub(super) per_second: f64,
    /// The latency of each step or group, ascending.
    latencies: Vec<Duration>,
}

impl Round {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(super) fn new(steps: usize, elapsed: Duration, mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        Self { per_second: steps as f64 / elapsed.as_secs_f64(), latencies }
    }
}

/// Steps over all rounds.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Rate {
    /// The median of the rounds.
    pub(super) steps_per_second: f64,
    /// The median latency of a step, or of a group in a ceiling, in microseconds.
    pub(super) p50_us: f64,
    /// The latency that 99 of 100 stay within, in microseconds.
    pub(super) p99_us: f64,
}

impl Rate {
    pub(super) fn of(rounds: &[Round]) -> Self {
        let mut all: Vec<Duration> =
            rounds.iter().flat_map(|round| &round.latencies).copied().collect();
        all.sort_unstable();
        Self {
            steps_per_second: median(rounds.iter().map(|round| round.per_second)),
            p50_us: percentile(&all, 50),
            p99_us: percentile(&all, 99),
        }
    }
}

/// A ceiling over all rounds, and how the engine compares with it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Ceiling {
    #[serde(flatten)]
    pub(super) rate: Rate,
    /// The rate of the engine divided by this rate; the median of the rounds.
    pub(super) ratio: f64,
    /// The median latency of a step divided by that of a group; the median of the rounds.
    pub(super) p50_ratio: f64,
}

impl Ceiling {
    pub(super) fn of(engine: &[Round], ceiling: &[Round]) -> Self {
        let pairs = || engine.iter().zip(ceiling);
        Self {
            rate: Rate::of(ceiling),
            ratio: median(pairs().map(|(engine, ceiling)| engine.per_second / ceiling.per_second)),
            p50_ratio: median(pairs().map(|(engine, ceiling)| {
                percentile(&engine.latencies, 50) / percentile(&ceiling.latencies, 50)
            })),
        }
    }
}

/// The percentile in microseconds; zero without latencies.
pub(super) fn percentile(ascending: &[Duration], percent: usize) -> f64 {
    let last = ascending.len().saturating_sub(1);
    let at = (ascending.len() * percent / 100).min(last);
    ascending.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e6)
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Appends to a plain file, one `fdatasync` per group.
pub(super) fn file(directory: &Path, load: Load, time: Duration) -> Result<Round> {
    let mut file =
        File::create(directory.join("plain")).context("cannot create a file to measure with")?;
    let group = vec![0x55; load.record * load.group];
    repeat(load, time, |_| {
        file.write_all(&group)?;
        Ok(file.sync_data()?)
    })
}

/// Writes batches to sled and syncs its file after each, with the settings and the kind of keys of
/// the event log.
pub(super) fn sled(directory: &Path, load: Load, time: Duration) -> Result<Round> {
    let path = directory.join("sled");
    let config = sled::Config::new().path(&path).flush_every_ms(None).mode(sled::Mode::LowSpace);
    let db = config.cache_capacity(64 * 1024 * 1024).open()?;
    let file = File::options().write(true).open(path.join("db"))?;
    file.sync_all()?;
    // Each writer starts at a different position of its run, as after a while.
    let mut writers: VecDeque<Writer> =
        (0..load.writers).map(|slot| Writer { slot, position: slot % RECORDS }).collect();
    repeat(load, time, |content| {
        let mut batch = sled::Batch::default();
        for _ in 0..load.group {
            let Some(mut writer) = writers.pop_front() else { continue };
            let key = writer.next_key();
            let value = vec![content; load.record.saturating_sub(key.len())];
            batch.insert(key, value);
            writers.push_back(writer);
        }
        db.apply_batch(batch)?;
        db.flush()?;
        Ok(file.sync_data()?)
    })
}

/// Writes groups for a time.
fn repeat(load: Load, time: Duration, mut group: impl FnMut(u8) -> Result<()>) -> Result<Round> {
    let mut latencies = Vec::new();
    let begun = Instant::now();
    let mut content = 0_u8;
    while begun.elapsed() < time {
        let before = Instant::now();
        group(content)?;
        latencies.push(before.elapsed());
        content = content.wrapping_add(1);
    }
    // Of each run's records, only those of its steps count.
    let steps = latencies.len() * load.group * STEPS / RECORDS;
    Ok(Round::new(steps, begun.elapsed(), latencies))
}

/// Writes one run after the other, each with as many events as a run of the engine.
struct Writer {
    slot: usize,
    /// Records written so far.
    position: usize,
}

impl Writer {
    fn next_key(&mut self) -> Vec<u8> {
        let mut key = format!("ebench/{}/{}\0", self.slot, self.position / RECORDS).into_bytes();
        key.extend_from_slice(&((self.position % RECORDS) as u64).to_be_bytes());
        self.position += 1;
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_medians_and_percentiles_of_all_rounds() {
        let round = |per_second| {
            Round::new(
                per_second,
                Duration::from_secs(1),
                (1..=100).rev().map(Duration::from_micros).collect(),
            )
        };
        let rate = Rate::of(&[round(3), round(1), round(2)]);
        let rounded = (rate.steps_per_second.round(), rate.p50_us.round(), rate.p99_us.round());
        assert_eq!(rounded, (2.0, 51.0, 100.0));
    }
}
