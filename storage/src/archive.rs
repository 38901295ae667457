//! Carrying whole runs in and out of a log, and letting go of histories: what the engine never does by itself.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use longhaul_engine::{EventStore, MessageSeq, RunId, StoreError};

use crate::carried::{self, Carried};
use crate::codec::Encoder;
use crate::key;
use crate::order::{Must, Order, Write};
use crate::sled_store::{SledStore, blocking, guarded, unnamed};
use crate::snapshot::Scope;

/// The highest number of a message that is taken from elsewhere: far more owners than any log has had.
const HIGHEST_SEQ: MessageSeq = 1 << 56;

/// A log that runs can be carried into and out of.
#[async_trait]
pub trait Archive: EventStore {
    /// Takes in a run that this log does not have: all of it, durably, or nothing. Its messages keep their numbers, and
    /// no later message of this log has a lower one.
    async fn import(&self, carried: Carried) -> Result<(), StoreError>;

    /// Lets go of the history of a run that is over, but for its last event, which says how it ended. It stays listed,
    /// and starting its id again joins it as before. Gives the number of events that are gone.
    async fn prune(&self, run: &RunId, at: DateTime<Utc>) -> Result<u64, StoreError>;

    /// All that there is of a run, as it was at one moment.
    async fn carried(&self, run: &RunId) -> Result<Option<Carried>, StoreError>;
}

/// The events follow on each other, the summary is theirs, and the numbers of the messages are in order.
pub(crate) fn check(carried: &Carried) -> Result<(), StoreError> {
    let refused = |reason: &str| Err(StoreError::Unusable(format!("run {} cannot be imported: {reason}", carried.run)));
    let Some(first) = carried.events.first() else { return refused("it has no events") };
    if carried.events.iter().zip(first.position..).any(|(event, expected)| event.position != expected) {
        return refused("its events do not follow on each other");
    }
    let fits = if first.position == 0 {
        carried::fold(&carried.events).as_ref() == Some(&carried.summary)
    } else {
        carried.summary.pruned.map(|pruned| pruned.events) == Some(first.position)
    };
    if !fits {
        return refused("its summary is not that of its events");
    }
    if !carried.mailbox.is_sorted_by(|one, next| one.seq < next.seq) {
        return refused("its messages are not in order");
    }
    if carried.mailbox.last().is_some_and(|message| message.seq > HIGHEST_SEQ) {
        return refused("the number of a message is beyond all reason");
    }
    if carried.published.keys().any(|name| name.len() > key::LONGEST_NAME) {
        return refused("the name of a published value is too long");
    }
    Ok(())
}

pub(crate) fn exists(run: &RunId) -> StoreError {
    StoreError::Unusable(format!("run {run} exists already"))
}

pub(crate) fn goes_on(run: &RunId) -> StoreError {
    StoreError::Unusable(format!("run {run} is not over: only the histories of runs that are over can be pruned"))
}

#[async_trait]
impl Archive for SledStore {
    async fn import(&self, carried: Carried) -> Result<(), StoreError> {
        check(&carried)?;
        let mut encoder = Encoder::default();
        let (mut order, answer) = Order::empty(carried.run.clone());
        order.must = Must::BeNew;
        fill(&mut order, &carried, &mut encoder)?;
        if let Some(seq) = order.highest_seq {
            // The next owner counts on from the number of the last: no message of its own may come before these.
            let epoch = seq >> 32;
            if epoch > self.epoch() {
                order.writes.push(crate::open::owner_record(epoch)?);
            }
        }
        order.bytes = order.size();
        self.order(order, encoder, answer).await.map(drop)
    }

    async fn prune(&self, run: &RunId, at: DateTime<Utc>) -> Result<u64, StoreError> {
        let summary = self.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        if !summary.status.is_terminal() {
            return Err(goes_on(run));
        }
        let (keys, mail) = self.keys_of(run).await?;
        let Some((last, before)) = keys.split_last().filter(|(_, before)| !before.is_empty()) else { return Ok(0) };
        let kept = key::number_of(last).unwrap_or_default();
        let mut encoder = Encoder::default();
        let (mut order, answer) = Order::empty(run.clone());
        order.must = Must::BeOverAt(kept + 1);
        order.writes.extend(before.iter().chain(&mail).map(|key| -> Write { (key.clone(), None) }));
        order.writes.push(crate::open::pruned_record()?);
        order.writes.push(encoder.summary(run, &carried::pruned(summary, kept, at))?);
        order.bytes = order.size();
        self.order(order, encoder, answer).await?;
        Ok(before.len() as u64)
    }

    async fn carried(&self, run: &RunId) -> Result<Option<Carried>, StoreError> {
        let snapshot = self.snapshot(Scope::Run(run.clone())).await?;
        blocking(move || snapshot.iter().next().map(|(_, carried)| carried).transpose()).await
    }
}

/// The keys of the events of a run, and of its messages.
type Keys = (Vec<sled::IVec>, Vec<sled::IVec>);

impl SledStore {
    /// Has the numbers of this log's messages go on after those of an earlier life of it, whose last owner had this
    /// number.
    pub async fn follow_on(&self, epoch: u64) -> Result<(), StoreError> {
        if epoch <= self.epoch() {
            return Ok(());
        }
        if epoch > HIGHEST_SEQ >> 32 {
            return Err(StoreError::Unusable(format!("the number of an owner, {epoch}, is beyond all reason")));
        }
        let (mut order, answer) = Order::empty(RunId::new("owner").expect("this is an id"));
        order.writes.push(crate::open::owner_record(epoch)?);
        order.highest_seq = Some((epoch << 32) | u64::from(u32::MAX));
        self.order(order, Encoder::default(), answer).await.map(drop)
    }

    async fn keys_of(&self, run: &RunId) -> Result<Keys, StoreError> {
        let (shared, run) = (std::sync::Arc::clone(&self.shared), run.clone());
        blocking(move || {
            let keys = |kind| {
                let keys = shared.reader.db.scan_prefix(key::of_run(kind, &run)).keys();
                keys.collect::<Result<Vec<_>, _>>().map_err(crate::read::broken)
            };
            guarded(|| Ok((keys(key::EVENT)?, keys(key::MESSAGE)?))).map_err(unnamed)
        })
        .await
    }
}

/// The records of a whole run.
fn fill(order: &mut Order, carried: &Carried, encoder: &mut Encoder) -> Result<(), StoreError> {
    let run = &carried.run;
    for event in &carried.events {
        order.writes.push(encoder.event(run, event)?);
    }
    order.count = carried.events.last().map_or(0, |last| last.position + 1);
    order.terminal = Some(carried.summary.status.is_terminal());
    order.writes.push(encoder.summary(run, &carried.summary)?);
    for message in &carried.mailbox {
        order.writes.push(encoder.message(run, message)?);
    }
    order.highest_seq = carried.mailbox.last().map(|message| message.seq);
    for (name, value) in &carried.published {
        order.writes.push(encoder.published(run, name, value)?);
    }
    Ok(())
}
