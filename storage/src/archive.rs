//! Carrying whole runs in and out of a log, and letting go of histories: what the engine never does
//! by itself.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use longhaul_engine::{EventLog, MessageSeq, RunId, RunReader, StoreError};

use crate::codec::Encoder;
use crate::error::{ReadError, blocking, catch_damage};
use crate::key;
use crate::record::Write;
use crate::run_record::{self, RunRecord};
use crate::sled_store::SledStore;
use crate::snapshot::Scope;
use crate::write_batch::{Precondition, WriteBatch};

/// The highest number of a message that is taken from elsewhere: far more owners than any log has
/// had.
const HIGHEST_SEQ: MessageSeq = 1 << 56;

/// A log from which runs can be exported, and into which they can be imported.
#[async_trait]
pub trait Archive: EventLog {
    /// Takes in a run that this log does not have: all of it, durably, or nothing. Its messages
    /// keep their numbers, and no later message of this log has a lower one.
    async fn import(&self, record: RunRecord) -> Result<(), StoreError>;

    /// Lets go of the history of a run that is over, but for its last event, which says how it
    /// ended. It stays listed, and starting its id again joins it as before. Gives the number
    /// of events that are gone.
    async fn prune(&self, run: &RunId, at: DateTime<Utc>) -> Result<u64, StoreError>;

    /// All that there is of a run, as it was at one moment.
    async fn export(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError>;
}

/// The events follow on each other, the summary is theirs, and the numbers of the messages are in
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
        return refused("its events do not follow on each other");
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
        return refused("the number of a message is beyond all reason");
    }
    if record.published.keys().any(|name| name.len() > key::LONGEST_NAME) {
        return refused("the name of a published value is too long");
    }
    Ok(())
}

pub(crate) fn exists(run: &RunId) -> StoreError {
    StoreError::Unusable(format!("run {run} exists already"))
}

pub(crate) fn goes_on(run: &RunId) -> StoreError {
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
            // The next owner counts on from the number of the last: no message of its own may come
            // before these.
            let epoch = seq >> 32;
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
            return Err(goes_on(run));
        }
        let (keys, mail) = self.keys_of(run).await?;
        let Some((last, before)) = keys.split_last().filter(|(_, before)| !before.is_empty())
        else {
            return Ok(0);
        };
        let kept = key::number_of(last).unwrap_or_default();
        let mut encoder = Encoder::default();
        let (mut batch, answer) = WriteBatch::empty(run.clone());
        batch.precondition = Precondition::IsOverAt(kept + 1);
        batch.writes.extend(before.iter().chain(&mail).map(|key| -> Write { (key.clone(), None) }));
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

/// The keys of the events of a run, and of its messages.
type Keys = (Vec<sled::IVec>, Vec<sled::IVec>);

impl SledStore {
    /// Has the numbers of this log's messages go on after those of an earlier life of it, whose
    /// last owner had this number.
    pub async fn follow_on(&self, epoch: u64) -> Result<(), StoreError> {
        if epoch <= self.epoch() {
            return Ok(());
        }
        if epoch > HIGHEST_SEQ >> 32 {
            return Err(StoreError::Unusable(format!(
                "the number of an owner, {epoch}, is beyond all reason"
            )));
        }
        let (mut batch, answer) = WriteBatch::empty(RunId::new("owner").expect("this is an id"));
        batch.writes.push(crate::directory::owner_record(epoch)?);
        batch.highest_seq = Some((epoch << 32) | u64::from(u32::MAX));
        self.write(batch, Encoder::default(), answer).await.map(drop)
    }

    async fn keys_of(&self, run: &RunId) -> Result<Keys, StoreError> {
        let (shared, run) = (std::sync::Arc::clone(&self.shared), run.clone());
        blocking(move || {
            let keys = |kind| {
                let keys = shared.reader.db.scan_prefix(key::of_run(kind, &run)).keys();
                keys.collect::<Result<Vec<_>, _>>().map_err(ReadError::from)
            };
            catch_damage(|| Ok((keys(key::EVENT)?, keys(key::MESSAGE)?))).map_err(StoreError::from)
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
