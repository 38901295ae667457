//! Decides on commits, where their callers are, and gathers them into a group while the one before is written.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use longhaul_engine::store::Committed;
use longhaul_engine::{Message, MessageSeq, RunId, StoreError};

use crate::group::{Accepted, Group};
use crate::key;
use crate::ledger::{Ledger, Standing};
use crate::order::{Letter, Must, NewRun, Order};
use crate::poison::Poison;
use crate::quiet::caught;
use crate::space::Watch;

/// Where commits meet.
#[derive(Debug)]
pub(crate) struct Committer {
    state: Mutex<State>,
    /// The writing thread waits here for something to write.
    gathered: Condvar,
    space: Arc<Watch>,
    poison: Arc<Poison>,
}

/// What is decided, and not written yet.
#[derive(Debug)]
struct State {
    ledger: Ledger,
    next_seq: MessageSeq,
    group: Group,
    /// The writing thread waits.
    idle: bool,
    /// Nothing more will be asked for.
    closed: bool,
}

impl Committer {
    pub(crate) fn new(ledger: Ledger, next_seq: MessageSeq, space: Arc<Watch>, poison: Arc<Poison>) -> Self {
        let state = State { ledger, next_seq, group: Group::default(), idle: false, closed: false };
        Self { state: Mutex::new(state), gathered: Condvar::new(), space, poison }
    }

    /// Decides on a commit: refuses it, or adds it to the group that is written next.
    pub(crate) fn accept(&self, order: Box<Order>) -> Result<(), StoreError> {
        self.poison.check()?;
        self.space.check(order.bytes)?;
        let mut state = self.state();
        let accepted = caught(|| state.accept(order));
        let accepted = accepted.unwrap_or_else(|panic| Err(self.poison.set(format!("sled panicked: {panic}"))));
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        if idle {
            self.gathered.notify_one();
        }
        accepted
    }

    /// The group that is to be written now, all before it being written; `None` if none will come. Waits for it.
    pub(crate) fn next(&self) -> Option<Group> {
        let mut state = self.state();
        state.ledger.caught_up();
        let nothing = |state: &mut State| {
            state.idle = state.group.answers.is_empty() && !state.closed;
            state.idle
        };
        let mut state = self.gathered.wait_while(state, nothing).unwrap_or_else(PoisonError::into_inner);
        state.ledger.next_group();
        let group = std::mem::take(&mut state.group);
        (!group.answers.is_empty()).then_some(group)
    }

    /// Nothing more will be asked for.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.gathered.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn accept(&mut self, order: Box<Order>) -> Result<(), StoreError> {
        let standing = self.decide(&order)?;
        let accepted = self.take(*order, standing);
        self.group.answers.push(accepted);
        Ok(())
    }

    /// Where the run will stand, if the commit is in order. All that can fail is done here, before anything is changed.
    fn decide(&mut self, order: &Order) -> Result<Standing, StoreError> {
        for run in order.births.iter().map(|birth| &birth.run).chain(order.deliveries.iter().map(|letter| &letter.to)) {
            self.ledger.of(run)?;
        }
        let run = &order.run;
        if let Must::BeGoneAt(asked) = order.must {
            let end = self.ledger.end_of(run)?;
            let moved = StoreError::Conflict { run: run.clone(), asked, end };
            return if asked == end { Ok(Standing { end: 0, terminal: false }) } else { Err(moved) };
        }
        let Standing { end, terminal } = self.ledger.of(run)?;
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

    fn take(&mut self, order: Order, standing: Standing) -> Accepted {
        self.ledger.set(&order.run, standing);
        if let Some(seq) = order.highest_seq {
            self.next_seq = self.next_seq.max(seq + 1);
        }
        self.group.size.events += order.count;
        for write in order.writes {
            self.group.write(write);
        }
        let born = order.births.into_iter().map(|birth| self.bear(birth)).collect();
        let delivered = order.deliveries.into_iter().map(|letter| self.deliver(letter)).collect();
        (order.reply, Committed { delivered, born })
    }

    fn known(&mut self, run: &RunId) -> Standing {
        self.ledger.of(run).expect("`decide` has looked it up, and nothing is forgotten within a group")
    }

    fn bear(&mut self, birth: NewRun) -> bool {
        if self.known(&birth.run).exists() {
            return false;
        }
        self.ledger.set(&birth.run, Standing { end: 1, terminal: birth.terminal });
        self.group.size.events += 1;
        for write in birth.writes {
            self.group.write(write);
        }
        true
    }

    fn deliver(&mut self, letter: Letter) -> Option<Message> {
        let standing = self.known(&letter.to);
        if !standing.exists() || standing.terminal {
            return None;
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let key = key::numbered(key::MESSAGE, &letter.to, seq);
        let value = letter.record.seal(&key);
        self.group.write((key.into(), Some(value.into())));
        Some(Message { seq, ..letter.message })
    }
}
