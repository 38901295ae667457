//! Mending what was found, through the one thread that writes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use longhaul_engine::store::Commit;
use longhaul_engine::{Event, EventStore, Position, RunId, StoreError, Summary};

use super::{Remedy, quarantine};
use crate::codec::Encoder;
use crate::ledger::end_behind;
use crate::order::{Answer, Must, Order, Write};
use crate::sled_store::SledStore;
use crate::snapshot::{Entry, Records};

impl SledStore {
    /// Does what can be done; `false`: that was nothing, or the run has gone on since it was looked at.
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
                // The order needs a run; nothing is asked of it.
                let order = Order::empty(RunId::new("stray").expect("this is an id"));
                quarantined.push(self.move_out(order, &[], std::slice::from_ref(entry)).await?);
            }
            Remedy::Summarise(run, summary) => {
                let mut encoder = Encoder::default();
                let (mut order, answer) = on_what_was_seen(run, records);
                order.writes.push(encoder.summary(run, summary)?);
                order.terminal = Some(summary.status.is_terminal());
                self.order(order, encoder, answer).await?;
            }
            Remedy::Publish(run, values) => {
                let mut encoder = Encoder::default();
                let (mut order, answer) = on_what_was_seen(run, records);
                for (name, value) in values {
                    order.writes.push(encoder.published(run, name, value)?);
                }
                self.order(order, encoder, answer).await?;
            }
            Remedy::Begin(run, start) => {
                let summary = Summary::begin(start);
                self.commit(Commit { summary, ..Commit::of(run.clone(), vec![start.clone()]) }).await?;
            }
            Remedy::Deliver(delivery) => return Ok(self.deliver(delivery.clone()).await?.is_some()),
            Remedy::MoveRecords(run, entries) => {
                let order = on_what_was_seen(run, records);
                quarantined.push(self.move_out(order, &[], entries).await?);
            }
            Remedy::MoveRun(run, events) => {
                let (mut order, answer) = Order::empty(run.clone());
                order.must = Must::BeGoneAt(end(run, records));
                quarantined.push(self.move_out((order, answer), events, &all_of(records.get(run))).await?);
            }
        }
        Ok(true)
    }

    /// Takes records out of the log, once they are in a file.
    async fn move_out(
        &self,
        (mut order, answer): (Box<Order>, Answer),
        events: &[Event],
        entries: &[Entry],
    ) -> Result<PathBuf, StoreError> {
        let file = quarantine::keep(&self.shared.directory, &order.run, events, entries)?;
        order.writes = entries.iter().map(|(key, _)| -> Write { (key.clone(), None) }).collect();
        let moved = self.order(order, Encoder::default(), answer).await;
        if matches!(moved, Err(StoreError::Conflict { .. })) {
            let _ = std::fs::remove_file(&file);
        }
        moved.map(|_| file)
    }
}

/// An order that is refused if the run has gone on meanwhile: what is mended follows from the history that was read.
fn on_what_was_seen(run: &RunId, records: &BTreeMap<RunId, Records>) -> (Box<Order>, Answer) {
    let (mut order, answer) = Order::empty(run.clone());
    order.must = Must::EndAt(end(run, records));
    (order, answer)
}

fn end(run: &RunId, records: &BTreeMap<RunId, Records>) -> Position {
    let last = records.get(run).and_then(|records| records.events.last());
    last.map_or(0, |(key, _)| end_behind(key))
}

fn all_of(records: Option<&Records>) -> Vec<Entry> {
    let Some(Records { events, mail, published, summary }) = records else { return Vec::new() };
    events.iter().chain(mail).chain(published).chain(summary).cloned().collect()
}
