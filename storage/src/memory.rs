//! An event log in memory with the same semantics, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use longhaul_engine::store::{Commit, Committed, Creation, Delivery};
use longhaul_engine::{
    Event, EventLog, Message, MessageSeq, Payload, Position, RunId, RunReader, StoreError, Summary,
};

use crate::archive::{self, Archive};
use crate::codec::rounded;
use crate::run_record::{self, RunRecord};
use crate::wire::v1::{self, Time};
use crate::write_batch;

/// An event log that lives as long as its last clone. Clones share their content;
/// [`MemoryStore::fork`] copies it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Content>>);

#[derive(Debug, Clone, Default)]
struct Content {
    runs: BTreeMap<RunId, Run>,
    last_seq: MessageSeq,
}

#[derive(Debug, Clone, Default)]
struct Run {
    /// The number of pruned events at the beginning.
    pruned: Position,
    events: Vec<Event>,
    summary: Option<Summary>,
    mailbox: BTreeMap<MessageSeq, Message>,
    published: BTreeMap<String, Payload>,
}

impl Run {
    fn end(&self) -> Position {
        self.pruned + self.events.len() as Position
    }

    fn run_record(&self, run: &RunId) -> Option<RunRecord> {
        let events = self.events.clone();
        let summary = run_record::fold(&events).or_else(|| self.summary.clone())?;
        let mailbox = self.mailbox.values().cloned().collect();
        (!events.is_empty()).then(|| RunRecord {
            run: run.clone(),
            events,
            summary,
            mailbox,
            published: self.published.clone(),
        })
    }

    fn takes_mail(&self) -> bool {
        let over = self.summary.as_ref().is_some_and(|summary| summary.status.is_terminal());
        !self.events.is_empty() && !over
    }
}

impl MemoryStore {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// An independent copy of the log: the state that a restarted process finds.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.content().clone())))
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_run<T>(&self, run: &RunId, read: impl FnOnce(&Run) -> T) -> Option<T> {
        self.content().runs.get(run).map(read)
    }
}

impl Content {
    fn commit(&mut self, commit: Commit) -> Result<Committed, StoreError> {
        write_batch::check(&commit)?;
        let run = &commit.run;
        let end = self.runs.get(run).map_or(0, Run::end);
        if let Some(position) = commit.events.first().map(|event| event.position)
            && position != end
        {
            return Err(StoreError::Conflict { run: run.clone(), position, end });
        }
        let own = self.runs.entry(run.clone()).or_default();
        own.events.extend(commit.events.iter().map(rounded));
        if let Some(summary) = &commit.summary {
            own.summary = Some(summary_as_read(summary));
        }
        for seq in &commit.consumed {
            own.mailbox.remove(seq);
        }
        for (name, value) in commit.published {
            match value {
                Some(value) => own.published.insert(name, value),
                None => own.published.remove(&name),
            };
        }
        let created = commit.creations.into_iter().map(|creation| self.create(creation)).collect();
        let delivered =
            commit.deliveries.into_iter().map(|delivery| self.deliver(delivery)).collect();
        Ok(Committed { delivered, created })
    }

    fn create(&mut self, creation: Creation) -> bool {
        let run = self.runs.entry(creation.run).or_default();
        if !run.events.is_empty() {
            return false;
        }
        run.events.push(rounded(&creation.event));
        run.summary = Some(summary_as_read(&creation.summary));
        true
    }

    fn deliver(&mut self, delivery: Delivery) -> Option<Message> {
        let run = self.runs.get_mut(&delivery.to).filter(|run| run.takes_mail())?;
        self.last_seq += 1;
        let seq = self.last_seq;
        let message = Message { seq, at: Time::from(delivery.at).0, body: delivery.body };
        run.mailbox.insert(seq, message.clone());
        Some(message)
    }
}

#[async_trait]
impl Archive for MemoryStore {
    async fn import(&self, record: RunRecord) -> Result<(), StoreError> {
        archive::check(&record)?;
        let mut content = self.content();
        if content.runs.get(&record.run).is_some_and(|run| run.end() > 0) {
            return Err(archive::exists(&record.run));
        }
        let newest = record.mailbox.iter().map(|message| message.seq).max();
        content.last_seq = content.last_seq.max(newest.unwrap_or_default());
        let RunRecord { run, events, summary, mailbox, published } = record;
        let own = Run {
            pruned: events[0].position,
            events: events.iter().map(rounded).collect(),
            summary: Some(summary_as_read(&summary)),
            mailbox: mailbox.into_iter().map(|message| (message.seq, message)).collect(),
            published,
        };
        content.runs.insert(run, own);
        Ok(())
    }

    async fn prune(&self, run: &RunId, at: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut content = self.content();
        let own = content.runs.get_mut(run).ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let summary = own.summary.clone().filter(|summary| summary.status.is_terminal());
        let summary = summary.ok_or_else(|| archive::not_over(run))?;
        let removed = own.events.len() as u64 - 1;
        if removed > 0 {
            own.pruned += removed;
            own.events.drain(..own.events.len() - 1);
            own.summary = Some(run_record::pruned(summary, own.pruned, at));
            own.mailbox.clear();
        }
        Ok(removed)
    }

    async fn export(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.of_run(run, |own| own.run_record(run)).flatten())
    }
}

/// A summary as the log on disk returns it.
fn summary_as_read(summary: &Summary) -> Summary {
    v1::Summary::from(summary.clone()).into()
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.content().commit(commit)
    }

    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError> {
        let mut content = self.content();
        if content.runs.get(&delivery.to).is_none_or(|run| run.events.is_empty()) {
            return Err(StoreError::UnknownRun(delivery.to));
        }
        Ok(content.deliver(delivery))
    }
}

#[async_trait]
impl RunReader for MemoryStore {
    async fn read(&self, run: &RunId, from: Position) -> Result<Vec<Event>, StoreError> {
        let events = self.of_run(run, |run| {
            let from = usize::try_from(from.saturating_sub(run.pruned)).unwrap_or(usize::MAX);
            run.events.get(from..).unwrap_or_default().to_vec()
        });
        Ok(events.unwrap_or_default())
    }

    async fn mailbox(&self, run: &RunId) -> Result<Vec<Message>, StoreError> {
        Ok(self.of_run(run, |run| run.mailbox.values().cloned().collect()).unwrap_or_default())
    }

    async fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        Ok(self.of_run(run, |run| run.summary.clone()).flatten())
    }

    async fn runs(&self, prefix: &str) -> Result<Vec<(RunId, Summary)>, StoreError> {
        let content = self.content();
        let chosen = content.runs.iter().filter(|(run, _)| run.as_str().starts_with(prefix));
        Ok(chosen.filter_map(|(id, run)| Some((id.clone(), run.summary.clone()?))).collect())
    }

    async fn runs_with_mail(&self) -> Result<Vec<RunId>, StoreError> {
        let content = self.content();
        let with_mail = content.runs.iter().filter(|(_, run)| !run.mailbox.is_empty());
        let runs: BTreeSet<_> = with_mail.map(|(id, _)| id.clone()).collect();
        Ok(runs.into_iter().collect())
    }

    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, StoreError> {
        Ok(self.of_run(run, |run| run.published.clone()).unwrap_or_default())
    }
}
