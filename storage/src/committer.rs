//! Group commit: decides on commits on their callers' threads, and collects a group while the
//! previous one is written.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use longhaul_engine::store::Committed;
use longhaul_engine::{Message, MessageSeq, RunId, StoreError};
use tokio::sync::oneshot;

use crate::error::{Poison, catch_sled_panic};
use crate::head_cache::{HeadCache, RunHead};
use crate::key;
use crate::record::Write;
use crate::space::Watch;
use crate::statistics::Statistics;
use crate::write_batch::{CreatedRun, Outgoing, Precondition, WriteBatch};

/// Accepted commits to be written together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) batch: sled::Batch,
    pub(crate) writes: usize,
    pub(crate) size: Statistics,
    pub(crate) answers: Vec<Accepted>,
}

/// An accepted commit, with the channel for its result.
pub(crate) type Accepted = (oneshot::Sender<Result<Committed, StoreError>>, Committed);

impl Group {
    fn write(&mut self, (key, value): Write) {
        self.writes += 1;
        self.size.bytes += (key.len() + value.as_ref().map_or(0, |value| value.len())) as u64;
        match value {
            Some(value) => self.batch.insert(key, value),
            None => self.batch.remove(key),
        }
    }
}

/// Collects commits into groups.
#[derive(Debug)]
pub(crate) struct Committer {
    state: Mutex<State>,
    /// Wakes the writer thread.
    gathered: Condvar,
    space: Arc<Watch>,
    poison: Arc<Poison>,
}

/// Accepted commits that are not yet written.
#[derive(Debug)]
struct State {
    heads: HeadCache,
    next_seq: MessageSeq,
    group: Group,
    /// The writer thread waits.
    idle: bool,
    /// Closed: no further commits.
    closed: bool,
}

impl Committer {
    pub(crate) fn new(
        heads: HeadCache,
        next_seq: MessageSeq,
        space: Arc<Watch>,
        poison: Arc<Poison>,
    ) -> Self {
        let state = State { heads, next_seq, group: Group::default(), idle: false, closed: false };
        Self { state: Mutex::new(state), gathered: Condvar::new(), space, poison }
    }

    /// Decides on a commit: refuses it, or adds it to the next group.
    pub(crate) fn accept(&self, batch: Box<WriteBatch>) -> Result<(), StoreError> {
        self.poison.check()?;
        self.space.check(batch.bytes)?;
        let mut state = self.state();
        let accepted = catch_sled_panic(|| state.accept(batch));
        let accepted = accepted
            .unwrap_or_else(|panic| Err(self.poison.set(format!("sled panicked: {panic}"))));
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        if idle {
            self.gathered.notify_one();
        }
        accepted
    }

    /// Waits for the group to write next, after all earlier ones; `None` after the last one.
    pub(crate) fn next(&self) -> Option<Group> {
        let mut state = self.state();
        state.heads.caught_up();
        let nothing = |state: &mut State| {
            state.idle = state.group.answers.is_empty() && !state.closed;
            state.idle
        };
        let mut state =
            self.gathered.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        state.heads.next_group();
        let group = std::mem::take(&mut state.group);
        (!group.answers.is_empty()).then_some(group)
    }

    /// Closes the committer to further commits.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.gathered.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn accept(&mut self, batch: Box<WriteBatch>) -> Result<(), StoreError> {
        let head = self.decide(&batch)?;
        let accepted = self.take(*batch, head);
        self.group.answers.push(accepted);
        Ok(())
    }

    /// The head of the run after this batch. All checks that can fail are done here, before any
    /// change.
    fn decide(&mut self, batch: &WriteBatch) -> Result<RunHead, StoreError> {
        for run in batch
            .creations
            .iter()
            .map(|creation| &creation.run)
            .chain(batch.deliveries.iter().map(|outgoing| &outgoing.to))
        {
            self.heads.of(run)?;
        }
        let run = &batch.run;
        if let Precondition::RemovedAt(asked) = batch.precondition {
            let end = self.heads.end_of(run)?;
            let moved = StoreError::Conflict { run: run.clone(), asked, end };
            return if asked == end { Ok(RunHead { end: 0, terminal: false }) } else { Err(moved) };
        }
        let RunHead { end, terminal } = self.heads.of(run)?;
        match batch.precondition {
            Precondition::None | Precondition::RemovedAt(_) => {}
            Precondition::EndsAt(asked) if asked == end => {}
            Precondition::EndsAt(asked) => {
                return Err(StoreError::Conflict { run: run.clone(), asked, end });
            }
            Precondition::Exists if end > 0 => {}
            Precondition::Exists => return Err(StoreError::UnknownRun(run.clone())),
            Precondition::IsNew if end == 0 => {}
            Precondition::IsNew => {
                return Err(StoreError::Unusable(format!("run {run} exists already")));
            }
            Precondition::IsOverAt(at) if terminal && end == at => {}
            Precondition::IsOverAt(_) => {
                return Err(StoreError::Unusable(format!("run {run} is not over")));
            }
        }
        if let Some(asked) = batch.first
            && asked != end
        {
            return Err(StoreError::Conflict { run: batch.run.clone(), asked, end });
        }
        Ok(RunHead { end: end + batch.count, terminal: batch.terminal.unwrap_or(terminal) })
    }

    fn take(&mut self, batch: WriteBatch, head: RunHead) -> Accepted {
        self.heads.set(&batch.run, head);
        if let Some(seq) = batch.highest_seq {
            self.next_seq = self.next_seq.max(seq + 1);
        }
        self.group.size.events += batch.count;
        for write in batch.writes {
            self.group.write(write);
        }
        let created = batch.creations.into_iter().map(|creation| self.create(creation)).collect();
        let delivered =
            batch.deliveries.into_iter().map(|outgoing| self.deliver(outgoing)).collect();
        (batch.reply, Committed { delivered, created })
    }

    fn known(&mut self, run: &RunId) -> RunHead {
        self.heads
            .of(run)
            .expect("`decide` has looked it up, and nothing is forgotten within a group")
    }

    fn create(&mut self, creation: CreatedRun) -> bool {
        if self.known(&creation.run).exists() {
            return false;
        }
        self.heads.set(&creation.run, RunHead { end: 1, terminal: creation.terminal });
        self.group.size.events += 1;
        for write in creation.writes {
            self.group.write(write);
        }
        true
    }

    fn deliver(&mut self, outgoing: Outgoing) -> Option<Message> {
        let head = self.known(&outgoing.to);
        if !head.exists() || head.terminal {
            return None;
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let key = key::numbered(key::MESSAGE, &outgoing.to, seq);
        let value = outgoing.record.seal(&key);
        self.group.write((key.into(), Some(value.into())));
        Some(Message { seq, ..outgoing.message })
    }
}
