//! The one thread that appends: takes all commits that wait, writes them as one batch, syncs, and only then answers.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_engine::store::Committed;
use longhaul_engine::{Message, MessageSeq, RunId, StoreError};
use tokio::sync::oneshot;

use crate::blob::BlobStore;
use crate::flaw::words_of;
use crate::key;
use crate::ledger::{Ledger, Standing};
use crate::open::closed_record;
use crate::order::{Letter, Must, NewRun, Order, Write};
use crate::poison::Poison;
use crate::space::Watch;
use crate::statistics::{Counters, Statistics};
use crate::witness::Witness;

/// The largest group: beyond this a larger one gains nothing.
const LARGEST_GROUP: usize = 1024;

/// The writing end of a log.
pub(crate) struct Committer {
    pub(crate) tree: sled::Tree,
    /// Our own descriptor of sled's file, for the sync that sled leaves out.
    pub(crate) file: File,
    /// Off only in the test that shows that the power-cut test can fail.
    pub(crate) sync: bool,
    pub(crate) blobs: Arc<BlobStore>,
    pub(crate) ledger: Ledger,
    pub(crate) next_seq: MessageSeq,
    pub(crate) space: Arc<Watch>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) counters: Arc<Counters>,
    /// Held while a group is written, so that a picture of the log is of whole groups that are durable.
    pub(crate) still: Arc<Mutex<()>>,
    /// The data directory, and the number of this ownership.
    pub(crate) directory: PathBuf,
    pub(crate) epoch: u64,
}

/// What a group has decided so far.
#[derive(Default)]
struct Group {
    batch: sled::Batch,
    writes: usize,
    size: Statistics,
    answers: Vec<Accepted>,
}

/// A commit that was accepted, and whom to tell.
type Accepted = (oneshot::Sender<Result<Committed, StoreError>>, Committed);

/// A group whose fate is known.
type Finished = (Result<(), StoreError>, Vec<Accepted>);

/// A group up to this size is answered at once; a larger one by another thread, while the next one is written.
const SMALL_GROUP: usize = 8;

fn answer((result, answers): Finished) {
    for (reply, committed) in answers {
        let _ = reply.send(result.clone().map(|()| committed));
    }
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

impl Committer {
    /// Works until all who could ask are gone.
    pub(crate) fn run(mut self, orders: &Receiver<Order>) {
        let (finished, to_answer) = mpsc::channel::<Finished>();
        std::thread::scope(|scope| {
            scope.spawn(|| to_answer.into_iter().for_each(answer));
            // Moved in, so that the other thread ends with this loop.
            let finished = finished;
            while let Ok(first) = orders.recv() {
                let mut waiting = vec![first];
                waiting.extend(orders.try_iter().take(LARGEST_GROUP - 1));
                let group = self.commit(waiting);
                if group.1.len() <= SMALL_GROUP {
                    answer(group);
                } else {
                    finished.send(group).expect("the other thread lives as long as this sender");
                }
            }
        });
        let closed = catch_unwind(AssertUnwindSafe(|| self.close()));
        let problem = closed.unwrap_or_else(|panic| Err(words_of(&*panic))).err();
        if let Some(reason) = problem {
            tracing::warn!(reason, "the log is whole, and could not be marked as closed");
        }
    }

    /// The last word of this owner, by which the next one knows that the log has its end.
    fn close(&self) -> Result<(), String> {
        self.poison.check().map_err(|error| error.to_string())?;
        let mut batch = sled::Batch::default();
        for key in self.tree.scan_prefix(key::CLOSED).keys() {
            batch.remove(key.map_err(|error| error.to_string())?);
        }
        let (key, value) = closed_record(self.epoch).map_err(|error| error.to_string())?;
        batch.insert(key, value.unwrap_or_default());
        self.write(batch)?;
        Witness { epoch: self.epoch, closed: true }.write(&self.directory).map_err(|error| error.to_string())
    }

    fn commit(&mut self, waiting: Vec<Order>) -> Finished {
        let bytes = waiting.iter().map(|order| order.bytes).sum();
        let open = self.poison.check().and_then(|()| self.space.check(bytes));
        if let Err(error) = open {
            for order in waiting {
                let _ = order.reply.send(Err(error.clone()));
            }
            return (Ok(()), Vec::new());
        }
        self.ledger.trim();
        let mut group = Group::default();
        // If a panic comes out of sled, the answers that were not given say to their callers that all is over.
        let written = catch_unwind(AssertUnwindSafe(|| {
            for order in waiting {
                self.accept(order, &mut group);
            }
            let Group { batch, writes, size, answers } = std::mem::take(&mut group);
            group.answers = answers;
            group.size = size;
            if writes == 0 { Ok(()) } else { self.write(batch) }
        }));
        let result = match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(reason)) => Err(self.poison.set(reason)),
            Err(panic) => Err(self.poison.set(format!("sled panicked: {}", words_of(&*panic)))),
        };
        self.counters.add(Statistics {
            groups: u64::from(group.size.bytes > 0),
            commits: group.answers.len() as u64,
            ..group.size
        });
        (result, group.answers)
    }

    /// Decides on one commit: refuses it, or adds it to the group.
    fn accept(&mut self, order: Order, group: &mut Group) {
        match self.decide(&order) {
            Ok(standing) => {
                let accepted = self.take(order, standing, group);
                group.answers.push(accepted);
            }
            Err(error) => {
                let _ = order.reply.send(Err(error));
            }
        }
    }

    /// Where the run will stand, if the commit is in order. All that can fail is done here, before anything is changed.
    fn decide(&mut self, order: &Order) -> Result<Standing, StoreError> {
        for run in order.births.iter().map(|birth| &birth.run).chain(order.deliveries.iter().map(|letter| &letter.to)) {
            self.ledger.of(run, &self.blobs)?;
        }
        let run = &order.run;
        if let Must::BeGoneAt(asked) = order.must {
            let end = self.ledger.end_of(run)?;
            let moved = StoreError::Conflict { run: run.clone(), asked, end };
            return if asked == end { Ok(Standing { end: 0, terminal: false }) } else { Err(moved) };
        }
        let Standing { end, terminal } = self.ledger.of(run, &self.blobs)?;
        match order.must {
            Must::Anything | Must::BeGoneAt(_) => {}
            Must::EndAt(asked) if asked == end => {}
            Must::EndAt(asked) => return Err(StoreError::Conflict { run: run.clone(), asked, end }),
            Must::Exist if end > 0 => {}
            Must::Exist => return Err(StoreError::UnknownRun(run.clone())),
            Must::BeNew if end == 0 => {}
            Must::BeNew => return Err(StoreError::Unusable(format!("run {run} exists already"))),
            Must::BeOverAt(at) if terminal && end == at => {}
            Must::BeOverAt(_) => return Err(StoreError::Unusable(format!("run {run} is not over"))),
        }
        if let Some(asked) = order.first
            && asked != end
        {
            return Err(StoreError::Conflict { run: order.run.clone(), asked, end });
        }
        Ok(Standing { end: end + order.count, terminal: order.terminal.unwrap_or(terminal) })
    }

    fn take(&mut self, order: Order, standing: Standing, group: &mut Group) -> Accepted {
        self.ledger.set(&order.run, standing);
        if let Some(seq) = order.highest_seq {
            self.next_seq = self.next_seq.max(seq + 1);
        }
        group.size.events += order.count;
        for write in order.writes {
            group.write(write);
        }
        let born = order.births.into_iter().map(|birth| self.bear(birth, group)).collect();
        let delivered = order.deliveries.into_iter().map(|letter| self.deliver(letter, group)).collect();
        (order.reply, Committed { delivered, born })
    }

    fn known(&mut self, run: &RunId) -> Standing {
        self.ledger.of(run, &self.blobs).expect("`decide` has looked it up, and nothing is forgotten within a group")
    }

    fn bear(&mut self, birth: NewRun, group: &mut Group) -> bool {
        if self.known(&birth.run).exists() {
            return false;
        }
        self.ledger.set(&birth.run, Standing { end: 1, terminal: birth.terminal });
        group.size.events += 1;
        for write in birth.writes {
            group.write(write);
        }
        true
    }

    fn deliver(&mut self, letter: Letter, group: &mut Group) -> Option<Message> {
        let standing = self.known(&letter.to);
        if !standing.exists() || standing.terminal {
            return None;
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let key = key::numbered(key::MESSAGE, &letter.to, seq);
        let value = letter.record.seal(&key);
        group.write((key.into(), Some(value.into())));
        Some(Message { seq, ..letter.message })
    }

    /// Nothing is durable before the last line: sled's flush hands the bytes to the kernel and no further.
    fn write(&self, batch: sled::Batch) -> Result<(), String> {
        let _writing = self.still.lock().unwrap_or_else(PoisonError::into_inner);
        self.tree.apply_batch(batch).map_err(|error| format!("writing the log: {error}"))?;
        self.tree.flush().map_err(|error| format!("flushing the log: {error}"))?;
        if self.sync {
            self.file.sync_data().map_err(|error| format!("syncing the log: {error}"))?;
        }
        Ok(())
    }
}
