//! Repairs the findings of a check, through the writer thread.

use std::collections::BTreeMap;
use std::path::PathBuf;

use longhaul_engine::store::Commit;
use longhaul_engine::{Event, EventLog, Position, RunId, StoreError, Summary};

use super::{Remedy, quarantine};
use crate::codec::Encoder;
use crate::key;
use crate::record::Entry;
use crate::record::Write;
use crate::sled_store::SledStore;
use crate::snapshot::Records;
use crate::write_batch::{Answer, Precondition, WriteBatch};

impl SledStore {
    /// Applies a repair; `false`: there was none, or the run has changed since the check.
    pub(super) async fn mend(
        &self,
        remedy: &Remedy,
        records: &BTreeMap<RunId, Records>,
        quarantined: &mut Vec<PathBuf>,
    ) -> Result<bool, StoreError> {
        match self.apply(remedy, records, quarantined).await {
            Err(StoreError::Conflict { .. }) => Ok(false),
            result => result,
        }
    }

    async fn apply(
        &self,
        remedy: &Remedy,
        records: &BTreeMap<RunId, Records>,
        quarantined: &mut Vec<PathBuf>,
    ) -> Result<bool, StoreError> {
        match remedy {
            Remedy::Rewrite => return Ok(false),
            Remedy::MoveStray(entry) => {
                // A batch needs a run; this one has no precondition on it.
                let batch = WriteBatch::empty(RunId::new("stray").expect("this is an id"));
                quarantined.push(self.move_out(batch, &[], std::slice::from_ref(entry)).await?);
            }
            Remedy::Summarise(run, summary) => {
                let mut encoder = Encoder::default();
                let (mut batch, answer) = on_what_was_seen(run, records);
                batch.writes.push(encoder.summary(run, summary)?);
                batch.terminal = Some(summary.status.is_terminal());
                self.write(batch, encoder, answer).await?;
            }
            Remedy::Publish(run, values) => {
                let mut encoder = Encoder::default();
                let (mut batch, answer) = on_what_was_seen(run, records);
                for (name, value) in values {
                    batch.writes.push(encoder.published(run, name, value)?);
                }
                self.write(batch, encoder, answer).await?;
            }
            Remedy::Begin(run, start) => {
                let summary = Summary::begin(start);
                self.commit(Commit { summary, ..Commit::of(run.clone(), vec![start.clone()]) })
                    .await?;
            }
            Remedy::Deliver(delivery) => {
                return Ok(self.deliver(delivery.clone()).await?.is_some());
            }
            Remedy::MoveRecords(run, entries) => {
                let batch = on_what_was_seen(run, records);
                quarantined.push(self.move_out(batch, &[], entries).await?);
            }
            Remedy::MoveRun(run, events) => {
                let (mut batch, answer) = WriteBatch::empty(run.clone());
                batch.precondition = Precondition::RemovedAt(end(run, records));
                quarantined
                    .push(self.move_out((batch, answer), events, &all_of(records.get(run))).await?);
            }
        }
        Ok(true)
    }

    /// Removes records from the log after they are stored in a file.
    async fn move_out(
        &self,
        (mut batch, answer): (Box<WriteBatch>, Answer),
        events: &[Event],
        entries: &[Entry],
    ) -> Result<PathBuf, StoreError> {
        let file = quarantine::keep(&self.shared.directory, &batch.run, events, entries)?;
        batch.writes = entries.iter().map(|(key, _)| -> Write { (key.clone(), None) }).collect();
        let moved = self.write(batch, Encoder::default(), answer).await;
        if matches!(moved, Err(StoreError::Conflict { .. })) {
            let _ = std::fs::remove_file(&file);
        }
        moved.map(|_| file)
    }
}

/// A batch that is refused if the run has changed since: the repair follows from the history that
/// was read.
fn on_what_was_seen(run: &RunId, records: &BTreeMap<RunId, Records>) -> (Box<WriteBatch>, Answer) {
    let (mut batch, answer) = WriteBatch::empty(run.clone());
    batch.precondition = Precondition::EndsAt(end(run, records));
    (batch, answer)
}

fn end(run: &RunId, records: &BTreeMap<RunId, Records>) -> Position {
    let last = records.get(run).and_then(|records| records.events.last());
    last.and_then(|(key, _)| key::number_of(key)).map_or(0, |position| position + 1)
}

fn all_of(records: Option<&Records>) -> Vec<Entry> {
    let Some(Records { events, mail, published, summary }) = records else { return Vec::new() };
    events.iter().chain(mail).chain(published).chain(summary).cloned().collect()
}
