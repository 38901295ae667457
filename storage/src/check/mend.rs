//! Mending what was found, through the one thread that writes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use longhaul_engine::{RunId, StoreError};

use super::{Remedy, quarantine};
use crate::flaw::io;
use crate::key;
use crate::order::{Must, Order, Write};
use crate::sled_store::SledStore;
use crate::snapshot::{Entry, Records};
use crate::wire::pack::{self, Packer};

impl SledStore {
    /// Does what can be done; `false`: that was nothing.
    pub(super) async fn mend(
        &self,
        remedy: &Remedy,
        records: &BTreeMap<RunId, Records>,
        quarantined: &mut Vec<PathBuf>,
    ) -> Result<bool, StoreError> {
        match remedy {
            Remedy::Leave => return Ok(false),
            Remedy::RemoveBlob(hash, path) => drop(self.shared.reader.blobs.remove(hash, path)?),
            Remedy::RemoveDirectory(path) => {
                std::fs::remove_dir_all(path).map_err(|error| io("removing", path, &error))?;
            }
            Remedy::Summarise(run, summary) => {
                let mut packer = Packer::new();
                let (mut order, answer) = Order::empty(run.clone());
                order.put(key::summary(run), &pack::summary(summary), &mut packer)?;
                order.terminal = Some(summary.status.is_terminal());
                self.order(order, packer, answer).await?;
            }
            Remedy::Publish(run, values) => {
                let mut packer = Packer::new();
                let (mut order, answer) = Order::empty(run.clone());
                for (name, value) in values {
                    let body = packer.payload(value);
                    order.put(key::published(run, name), &body, &mut packer)?;
                }
                self.order(order, packer, answer).await?;
            }
            Remedy::MoveRecord(run, entry) => {
                quarantined.push(quarantine::keep(&self.shared.directory, run, &[], std::slice::from_ref(entry))?);
                self.take_away(run, std::slice::from_ref(entry)).await?;
            }
            Remedy::MoveRun(run, events) => {
                let all = all_of(records.get(run));
                quarantined.push(quarantine::keep(&self.shared.directory, run, events, &all)?);
                self.take_away(run, &all).await?;
            }
        }
        Ok(true)
    }

    async fn take_away(&self, run: &RunId, entries: &[Entry]) -> Result<(), StoreError> {
        let (mut order, answer) = Order::empty(run.clone());
        order.must = Must::BeForgotten;
        order.writes = entries.iter().map(|(key, _)| -> Write { (key.clone(), None) }).collect();
        self.order(order, Packer::new(), answer).await.map(drop)
    }
}

fn all_of(records: Option<&Records>) -> Vec<Entry> {
    let Some(Records { events, mail, published, summary }) = records else { return Vec::new() };
    events.iter().chain(mail).chain(published).chain(summary).cloned().collect()
}
