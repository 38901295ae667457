//! Import and export of whole runs, and pruning of histories: only on request, never by the engine.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use longhaul_engine::{EventLog, MessageSeq, RunId, RunReader, StoreError};

use crate::codec::Encoder;
use crate::error::{ReadError, blocking, catch_damage};
use crate::key::{self, epoch_of, last_seq_of};
use crate::record::Write;
use crate::run_record::{self, RunRecord};
use crate::sled_store::SledStore;
use crate::snapshot::Scope;
use crate::write_batch::{Precondition, WriteBatch};

/// The highest message number accepted from another log: 2^24 owners, more than a log reaches.
const HIGHEST_SEQ: MessageSeq = 1 << 56;

/// A log from which runs can be exported, and into which they can be imported.
#[async_trait]
pub trait Archive: EventLog {
    /// Imports a run that this log does not have, durably and atomically. Its messages keep their
    /// numbers, and later messages of this log get higher ones.
    async fn import(&self, record: RunRecord) -> Result<(), StoreError>;

    /// Prunes the history of a finished run to its last event, which records the outcome. The run
    /// stays listed, and starting its id again still joins it. Returns the number of removed
    /// events.
    async fn prune(&self, run: &RunId, at: DateTime<Utc>) -> Result<u64, StoreError>;

    /// The full record of a run at one moment.
    async fn export(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;
}

/// Checks that positions have no gaps, the summary matches the events, and message numbers are in
/// order.
pub(crate) fn check(record: &RunRecord) -> Result<(), StoreError> {
    let refused = |reason: &str| {
        Err(StoreError::Unusable(format!("run {} cannot be imported: {reason}", record.run)))
    };
    let Some(first) = record.events.first() else { return refused("it has no events") };
    if record
        .events
        .iter()
        .zip(first.position..)
        .any(|(event, expected)| event.position != expected)
    {
        return refused("its events have gaps or are out of order");
    }
    let fits = if first.position == 0 {
        run_record::fold(&record.events).as_ref() == Some(&record.summary)
    } else {
        record.summary.pruned.map(|pruned| pruned.events) == Some(first.position)
    };
    if !fits {
        return refused("its summary is not that of its events");
    }
    if !record.mailbox.is_sorted_by(|one, next| one.seq < next.seq) {
        return refused("its messages are not in order");
    }
    if record.mailbox.last().is_some_and(|message| message.seq > HIGHEST_SEQ) {
        return refused("a message number is too large");
    }
    if record.published.keys().any(|name| name.len() > key::LONGEST_NAME) {
        return refused("the name of a published value is too long");
    }
    Ok(())
}

pub(crate) fn exists(run: &RunId) -> StoreError {
    StoreError::Unusable(format!("run {run} exists already"))
}

pub(crate) fn not_over(run: &RunId) -> StoreError {
    StoreError::Unusable(format!(
        "run {run} is not over: only the histories of runs that are over can be pruned"
    ))
}

#[async_trait]
impl Archive for SledStore {
    async fn import(&self, record: RunRecord) -> Result<(), StoreError> {
        check(&record)?;
        let mut encoder = Encoder::default();
        let (mut batch, answer) = WriteBatch::empty(record.run.clone());
        batch.precondition = Precondition::IsNew;
        fill(&mut batch, &record, &mut encoder)?;
        if let Some(seq) = batch.highest_seq {
            // The next owner continues the numbering: none of its messages may precede these.
            let epoch = epoch_of(seq);
            if epoch > self.epoch() {
                batch.writes.push(crate::directory::owner_record(epoch)?);
            }
        }
        batch.bytes = batch.size();
        self.write(batch, encoder, answer).await.map(drop)
    }

    async fn prune(&self, run: &RunId, at: DateTime<Utc>) -> Result<u64, StoreError> {
        let summary =
            self.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        if !summary.status.is_terminal() {
            return Err(not_over(run));
        }
        let Keys { events, messages } = self.keys_of(run).await?;
        let Some((last, before)) = events.split_last().filter(|(_, before)| !before.is_empty())
        else {
            return Ok(0);
        };
        let kept = key::required_number_of(last)?;
        let mut encoder = Encoder::default();
        let (mut batch, answer) = WriteBatch::empty(run.clone());
        batch.precondition = Precondition::IsOverAt(kept + 1);
        batch
            .writes
            .extend(before.iter().chain(&messages).map(|key| -> Write { (key.clone(), None) }));
        batch.writes.push(crate::directory::pruned_record()?);
        batch.writes.push(encoder.summary(run, &run_record::pruned(summary, kept, at))?);
        batch.bytes = batch.size();
        self.write(batch, encoder, answer).await?;
        Ok(before.len() as u64)
    }

    async fn export(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let snapshot = self.snapshot(Scope::Run(run.clone())).await?;
        blocking(move || snapshot.iter().next().map(|(_, record)| record).transpose()).await
    }
}

/// The keys of a run's events and messages.
struct Keys {
    events: Vec<sled::IVec>,
    messages: Vec<sled::IVec>,
}

impl SledStore {
    /// Continues the message numbers after those of an earlier state of this log, whose last owner
    /// had this epoch.
    pub async fn follow_on(&self, epoch: u64) -> Result<(), StoreError> {
        if epoch <= self.epoch() {
            return Ok(());
        }
        if epoch > epoch_of(HIGHEST_SEQ) {
            return Err(StoreError::Unusable(format!("the owner number {epoch} is too large")));
        }
        let (mut batch, answer) = WriteBatch::empty(RunId::new("owner").expect("this is an id"));
        batch.writes.push(crate::directory::owner_record(epoch)?);
        batch.highest_seq = Some(last_seq_of(epoch));
        self.write(batch, Encoder::default(), answer).await.map(drop)
    }

    async fn keys_of(&self, run: &RunId) -> Result<Keys, StoreError> {
        let shared = std::sync::Arc::clone(&self.shared);
        let run = run.clone();
        blocking(move || {
            let keys = |kind| {
                let keys = shared.reader.db.scan_prefix(key::of_run(kind, &run)).keys();
                keys.collect::<Result<Vec<_>, _>>().map_err(ReadError::from)
            };
            catch_damage(|| Ok(Keys { events: keys(key::EVENT)?, messages: keys(key::MESSAGE)? }))
                .map_err(StoreError::from)
        })
        .await
    }
}

/// The records of a whole run.
fn fill(
    batch: &mut WriteBatch,
    record: &RunRecord,
    encoder: &mut Encoder,
) -> Result<(), StoreError> {
    let run = &record.run;
    for event in &record.events {
        batch.writes.push(encoder.event(run, event)?);
    }
    batch.count = record.events.last().map_or(0, |last| last.position + 1);
    batch.terminal = Some(record.summary.status.is_terminal());
    batch.writes.push(encoder.summary(run, &record.summary)?);
    for message in &record.mailbox {
        batch.writes.push(encoder.message(run, message)?);
    }
    batch.highest_seq = record.mailbox.last().map(|message| message.seq);
    for (name, value) in &record.published {
        batch.writes.push(encoder.published(run, name, value)?);
    }
    Ok(())
}
