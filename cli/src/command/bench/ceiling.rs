//! The ceilings: what the disk, and sled, give without an engine.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Serialize;

use super::samples::{Latencies, median};
use super::steps::STEPS;

/// Records of a run: its beginning, its steps, its end.
const RECORDS: usize = STEPS + 2;

/// What is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// How many runs take turns.
    pub(super) writers: usize,
    /// Records to a sync.
    pub(super) group: usize,
    /// Bytes of a record with its key.
    pub(super) record: usize,
}

/// A ceiling in one round.
pub(super) struct Measured {
    /// Steps.
    pub(super) per_second: f64,
    /// Of one group.
    pub(super) latencies: Latencies,
}

/// A ceiling over all rounds.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Ceiling {
    pub(super) steps_per_second: f64,
    /// The latency of a group that half of them stay within, in microseconds.
    pub(super) p50_us: f64,
    /// The latency that 99 of 100 stay within, in microseconds.
    pub(super) p99_us: f64,
}

impl Ceiling {
    pub(super) fn of(rounds: Vec<Measured>) -> Self {
        let steps_per_second = median(rounds.iter().map(|round| round.per_second));
        let mut all = Latencies::default();
        for round in rounds {
            all.append(round.latencies);
        }
        Self { steps_per_second, p50_us: all.percentile(50), p99_us: all.percentile(99) }
    }
}

/// Appends to a plain file, one `fdatasync` to a group.
pub(super) fn file(directory: &Path, load: Load, time: Duration) -> Result<Measured> {
    let mut file = File::create(directory.join("plain")).context("cannot create a file to measure with")?;
    let group = vec![0x55; load.record * load.group];
    repeat(load, time, |_| {
        file.write_all(&group)?;
        Ok(file.sync_data()?)
    })
}

/// Writes batches to sled and syncs its file after each, with the settings and the kind of keys of the event log.
pub(super) fn sled(directory: &Path, load: Load, time: Duration) -> Result<Measured> {
    let path = directory.join("sled");
    let config = sled::Config::new().path(&path).flush_every_ms(None).mode(sled::Mode::LowSpace);
    let db = config.cache_capacity(64 * 1024 * 1024).open()?;
    let file = File::options().write(true).open(path.join("db"))?;
    file.sync_all()?;
    let mut writers: VecDeque<Writer> = (0..load.writers).map(Writer::new).collect();
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
fn repeat(load: Load, time: Duration, mut group: impl FnMut(u8) -> Result<()>) -> Result<Measured> {
    let mut latencies = Latencies::default();
    let begun = Instant::now();
    let mut content = 0_u8;
    while begun.elapsed() < time {
        let before = Instant::now();
        group(content)?;
        latencies.add(before.elapsed());
        content = content.wrapping_add(1);
    }
    let steps = latencies.count() * load.group * STEPS / RECORDS;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let per_second = steps as f64 / begun.elapsed().as_secs_f64();
    Ok(Measured { per_second, latencies })
}

/// One run after the other, each with as many events as those of the engine.
struct Writer {
    slot: usize,
    run: usize,
    position: u64,
}

impl Writer {
    /// Writers begin at different places of their runs, as they come to be after a while.
    fn new(slot: usize) -> Self {
        Self { slot, run: 0, position: (slot % RECORDS) as u64 }
    }

    fn next_key(&mut self) -> Vec<u8> {
        let mut key = format!("ebench/{}/{}\0", self.slot, self.run).into_bytes();
        key.extend_from_slice(&self.position.to_be_bytes());
        self.position += 1;
        if self.position == RECORDS as u64 {
            self.position = 0;
            self.run += 1;
        }
        key
    }
}
