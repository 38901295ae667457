//! Group commit: validates commits on their callers' threads, and collects a group while the
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

/// Valid commits to be written together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) batch: sled::Batch,
    pub(crate) writes: usize,
    pub(crate) size: Statistics,
    pub(crate) replies: Vec<Reply>,
}

/// The result of a commit, sent to its caller when the group is on stable storage.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) to: oneshot::Sender<Result<Committed, StoreError>>,
    pub(crate) committed: Committed,
}

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

/// Valid commits that are not yet written.
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

    /// Validates a commit: refuses it, or adds it to the next group.
    pub(crate) fn submit(&self, batch: Box<WriteBatch>) -> Result<(), StoreError> {
        self.poison.check()?;
        self.space.check(batch.bytes)?;
        let mut state = self.state();
        let outcome = catch_sled_panic(|| state.add(batch));
        let outcome =
            outcome.unwrap_or_else(|panic| Err(self.poison.set(format!("sled panicked: {panic}"))));
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        if idle {
            self.gathered.notify_one();
        }
        outcome
    }

    /// Waits for the next group; the earlier ones are written. `None`: the committer is closed, and
    /// nothing is left.
    pub(crate) fn next(&self) -> Option<Group> {
        let mut state = self.state();
        state.heads.caught_up();
        let nothing = |state: &mut State| {
            state.idle = state.group.replies.is_empty() && !state.closed;
            state.idle
        };
        let mut state =
            self.gathered.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        state.heads.next_group();
        let group = std::mem::take(&mut state.group);
        (!group.replies.is_empty()).then_some(group)
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
    fn add(&mut self, batch: Box<WriteBatch>) -> Result<(), StoreError> {
        let head = self.validate(&batch)?;
        let reply = self.apply(*batch, head);
        self.group.replies.push(reply);
        Ok(())
    }

    /// The head of the run after this batch. All checks that can fail are done here, before any
    /// change.
    fn validate(&mut self, batch: &WriteBatch) -> Result<RunHead, StoreError> {
        // Loads all heads now, so that `apply` cannot fail.
        for run in batch
            .creations
            .iter()
            .map(|creation| &creation.run)
            .chain(batch.deliveries.iter().map(|outgoing| &outgoing.to))
        {
            self.heads.of(run)?;
        }
        let run = &batch.run;
        if let Precondition::RemovedAt(position) = batch.precondition {
            let end = self.heads.end_of(run)?;
            let moved = StoreError::Conflict { run: run.clone(), position, end };
            return if position == end {
                Ok(RunHead { end: 0, terminal: false })
            } else {
                Err(moved)
            };
        }
        let RunHead { end, terminal } = self.heads.of(run)?;
        match batch.precondition {
            Precondition::None | Precondition::RemovedAt(_) => {}
            Precondition::EndsAt(position) if position == end => {}
            Precondition::EndsAt(position) => {
                return Err(StoreError::Conflict { run: run.clone(), position, end });
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
        if let Some(position) = batch.first
            && position != end
        {
            return Err(StoreError::Conflict { run: batch.run.clone(), position, end });
        }
        Ok(RunHead { end: end + batch.count, terminal: batch.terminal.unwrap_or(terminal) })
    }

    fn apply(&mut self, batch: WriteBatch, head: RunHead) -> Reply {
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
        Reply { to: batch.reply, committed: Committed { delivered, created } }
    }

    fn known(&mut self, run: &RunId) -> RunHead {
        self.heads
            .of(run)
            .expect("`validate` has looked it up, and nothing is forgotten within a group")
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
