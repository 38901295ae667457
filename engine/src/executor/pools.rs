//! Pools of slots that limit how many activities run at once: the highest priority first, then the
//! highest rank, round-robin among equals.
//!
//! Runs share by the first part of their ids: a project with a thousand runs waits in one queue, a
//! project with three in another, and the two queues alternate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::id::RunId;

/// How the runs of a project share pools with other projects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// Higher is served first; lower priorities wait as long as a higher one waits.
    pub priority: i64,
    /// Labels whose limits apply to it.
    pub labels: Vec<String>,
}

/// A pool whose calls prepare the calls of another one, such as the trees that agents work in: a
/// call gets a slot only when the prepared runs are about to be used up.
#[derive(Debug, Clone)]
pub struct Prefetch {
    /// The pool of the calls that prepare.
    pub pool: String,
    /// The pool that the prepared runs enter.
    pub feeds: String,
    /// The most prepared runs besides those for which a slot is free.
    pub ahead: usize,
    /// A prepared run that has not entered the next pool after this time does not count: it waits
    /// for something else.
    pub expiry: Duration,
    /// The pool of the calls that follow. While many calls of a rank above zero wait there, further
    /// prepared runs would only lengthen that queue.
    pub then: String,
}

/// How many activities of a pool run at once in the whole engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pools {
    pools: Arc<Mutex<HashMap<String, Arc<Pool>>>>,
    shares: Arc<Mutex<Shares>>,
}

/// Priorities of projects and limits of labels.
#[derive(Debug, Default)]
struct Shares {
    shares: HashMap<String, Share>,
    /// The limit of a pool for a label.
    limits: HashMap<(String, String), usize>,
}

#[derive(Debug)]
struct Pool {
    name: String,
    shares: Arc<Mutex<Shares>>,
    /// The pool that has this one in its [`Downstream`].
    before: Weak<Pool>,
    feeding: Option<Downstream>,
    state: Mutex<State>,
}

/// The pools after one that prepares their calls. Their states are locked after its own.
#[derive(Debug)]
struct Downstream {
    next: Arc<Pool>,
    then: Arc<Pool>,
    ahead: usize,
    expiry: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// How many slots there are.
    size: usize,
    /// How many are in use; more than there are after the pool was made smaller.
    taken: usize,
    /// How often each queue was served.
    turn: u64,
    queues: BTreeMap<String, Queue>,
    /// The number in use, by label.
    used: HashMap<String, usize>,
    /// The runs that were prepared here and have not entered the next pool.
    prepared: HashMap<RunId, Instant>,
}

#[derive(Debug, Default)]
struct Queue {
    /// By rank, the highest first.
    waiting: VecDeque<QueuedCall>,
    /// The turn in which it was last served.
    served: u64,
}

#[derive(Debug)]
struct QueuedCall {
    run: RunId,
    rank: u8,
    sender: oneshot::Sender<PoolSlot>,
}

impl Queue {
    fn add(&mut self, waiting: QueuedCall) {
        let place = self.waiting.iter().take_while(|other| other.rank >= waiting.rank).count();
        self.waiting.insert(place, waiting);
    }
}

/// A slot of a pool; dropping it releases it.
#[derive(Debug)]
pub(crate) struct PoolSlot {
    /// `None`: the waiting call was cancelled, and the slot has been released.
    pool: Option<Arc<Pool>>,
    labels: Vec<String>,
}

impl Drop for PoolSlot {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            let mut state = pool.lock();
            state.give_back(&self.labels);
            pool.serve(&mut state);
            drop(state);
            pool.serve_before();
        }
    }
}

impl Pools {
    pub(crate) fn new(sizes: &[(String, usize)], prefetch: &[Prefetch]) -> Self {
        let shares = Arc::<Mutex<Shares>>::default();
        let mut pools = HashMap::new();
        let size = |name: &String| sizes.iter().find(|(pool, _)| pool == name).map(|it| it.1);
        for prefetch in prefetch {
            let (Some(next), Some(then)) = (size(&prefetch.feeds), size(&prefetch.then)) else {
                continue;
            };
            let first = Arc::new_cyclic(|before: &Weak<Pool>| {
                let next = Pool::new(&prefetch.feeds, next, &shares, before.clone(), None);
                let then = Pool::new(&prefetch.then, then, &shares, before.clone(), None);
                let next = Arc::new(next);
                let then = Arc::new(then);
                pools.insert(prefetch.feeds.clone(), Arc::clone(&next));
                pools.insert(prefetch.then.clone(), Arc::clone(&then));
                let Prefetch { ahead, expiry, .. } = *prefetch;
                let feeding = Downstream { next, then, ahead, expiry };
                Pool::new(&prefetch.pool, usize::MAX, &shares, Weak::new(), Some(feeding))
            });
            pools.insert(prefetch.pool.clone(), first);
        }
        let pools = Self { pools: Arc::new(Mutex::new(pools)), shares };
        for (name, size) in sizes {
            pools.resize(name, *size);
        }
        pools
    }

    /// Sets how the runs of a project share pools, from now on.
    pub(crate) fn share(&self, project: &str, share: Share) {
        lock(&self.shares).shares.insert(project.to_owned(), share);
        self.serve_all();
    }

    /// Sets the number of slots of a pool, from now on; slots in use are kept. A pool without a
    /// size so far gets one.
    pub(crate) fn resize(&self, name: &str, size: usize) {
        let pool = {
            let mut pools = lock(&self.pools);
            let new = || Arc::new(Pool::new(name, size, &self.shares, Weak::new(), None));
            Arc::clone(pools.entry(name.to_owned()).or_insert_with(new))
        };
        let mut state = pool.lock();
        state.size = size;
        pool.serve(&mut state);
        drop(state);
        pool.serve_before();
    }

    /// Sets the limit of a pool for a label, from now on.
    pub(crate) fn limit(&self, pool: &str, label: &str, most: usize) {
        lock(&self.shares).limits.insert((pool.to_owned(), label.to_owned()), most);
        self.serve_all();
    }

    fn serve_all(&self) {
        let pools: Vec<_> = lock(&self.pools).values().cloned().collect();
        for pool in pools {
            pool.serve(&mut pool.lock());
        }
    }

    /// Whether calls of a pool wait for slots.
    pub(crate) fn has(&self, pool: Option<&str>) -> bool {
        pool.is_some_and(|pool| lock(&self.pools).contains_key(pool))
    }

    /// A run has ended: it enters no further pool.
    pub(crate) fn leave(&self, run: &RunId) {
        for pool in self.all().iter().filter(|pool| pool.feeding.is_some()) {
            pool.end_preparation(run);
        }
    }

    /// The runs with a call that waits for a slot, and the pool.
    pub(crate) fn queued(&self) -> BTreeMap<RunId, String> {
        let mut queued = BTreeMap::new();
        for pool in self.all() {
            let state = pool.lock();
            let waiting = state.queues.values().flat_map(|queue| &queue.waiting);
            let waiting = waiting.filter(|waiting| !waiting.sender.is_closed());
            queued.extend(waiting.map(|waiting| (waiting.run.clone(), pool.name.clone())));
        }
        queued
    }

    fn all(&self) -> Vec<Arc<Pool>> {
        lock(&self.pools).values().cloned().collect()
    }

    /// Waits for a free slot; `None` at once if the pool has no limit. Cancel-safe.
    pub(crate) async fn enter(
        &self,
        pool: Option<&str>,
        rank: u8,
        run: &RunId,
    ) -> Option<PoolSlot> {
        let pool = &lock(&self.pools).get(pool?).cloned()?;
        let (sender, mut place) = oneshot::channel();
        {
            let mut state = pool.lock();
            let waiting = QueuedCall { run: run.clone(), rank, sender };
            state.queues.entry(run.root().to_owned()).or_default().add(waiting);
            pool.serve(&mut state);
        }
        if let Some(before) = pool.before.upgrade().filter(|before| before.feeds(pool)) {
            before.end_preparation(run);
        }
        let Some(feeding) = &pool.feeding else { return place.await.ok() };
        loop {
            match tokio::time::timeout(feeding.expiry, &mut place).await {
                Ok(place) => return place.ok(),
                Err(_) => pool.serve(&mut pool.lock()),
            }
        }
    }
}

impl Pool {
    fn new(
        name: &str,
        size: usize,
        shares: &Arc<Mutex<Shares>>,
        before: Weak<Pool>,
        feeding: Option<Downstream>,
    ) -> Self {
        let state = State { size, ..State::default() };
        let shares = Arc::clone(shares);
        Self { name: name.to_owned(), shares, before, feeding, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether the calls of this pool prepare those of another one.
    fn feeds(&self, next: &Arc<Self>) -> bool {
        self.feeding.as_ref().is_some_and(|feeding| Arc::ptr_eq(&feeding.next, next))
    }

    /// Serves the pool before this one. The state of this one is not locked.
    fn serve_before(&self) {
        if let Some(before) = self.before.upgrade() {
            before.serve(&mut before.lock());
        }
    }

    fn end_preparation(self: &Arc<Self>, run: &RunId) {
        let mut state = self.lock();
        // A session is below the run of its feature.
        state.prepared.retain(|prepared, _| !run.is_within(prepared.as_str()));
        self.serve(&mut state);
    }

    /// Whether a further run may be prepared for the next pool.
    fn is_wanted(&self, state: &mut State) -> bool {
        let Some(feeding) = &self.feeding else { return true };
        state.prepared.retain(|_, since| since.elapsed() < feeding.expiry);
        let (free, waiting) = {
            let next = feeding.next.lock();
            (next.size.saturating_sub(next.taken), next.waiting(0))
        };
        let is_congested = {
            let then = feeding.then.lock();
            then.waiting(1) >= 2 * then.size
        };
        state.prepared.len() + waiting < free + feeding.ahead && !is_congested
    }

    /// Gives free slots to the next projects in turn.
    fn serve(self: &Arc<Self>, state: &mut State) {
        while self.is_wanted(state)
            && let Some((project, labels)) = self.next(state)
        {
            state.turn += 1;
            let turn = state.turn;
            let Some(queue) = state.queues.get_mut(&project) else { return };
            let Some(QueuedCall { run, sender, .. }) = queue.waiting.pop_front() else { return };
            let place = PoolSlot { pool: Some(Arc::clone(self)), labels: labels.clone() };
            match sender.send(place) {
                Ok(()) => {
                    queue.served = turn;
                    state.take(&labels);
                    if self.feeding.is_some() {
                        state.prepared.insert(run, Instant::now());
                    }
                }
                // The waiting call was cancelled.
                Err(mut place) => place.pool = None,
            }
        }
    }

    /// The next project in turn, if there is a free slot for it.
    fn next(&self, state: &mut State) -> Option<(String, Vec<String>)> {
        let shares = lock(&self.shares);
        if state.taken >= state.size {
            return None;
        }
        let default = Share::default();
        let fits = |share: &Share| {
            share.labels.iter().all(|label| {
                let limit = shares.limits.get(&(self.name.clone(), label.clone()));
                limit
                    .is_none_or(|limit| state.used.get(label).copied().unwrap_or_default() < *limit)
            })
        };
        let waiting = state.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        let with_share = waiting.map(|(project, queue)| {
            (project, queue, shares.shares.get(project).unwrap_or(&default))
        });
        let next = with_share.filter(|(_, _, share)| fits(share));
        let order = |(_, queue, share): &(&String, &Queue, &Share)| {
            let rank = queue.waiting.front().map(|waiting| waiting.rank);
            (Reverse(share.priority), Reverse(rank), queue.served)
        };
        let (project, _, share) = next.min_by_key(order)?;
        Some((project.clone(), share.labels.clone()))
    }
}

impl State {
    /// How many calls of at least this rank wait.
    fn waiting(&self, rank: u8) -> usize {
        let ranks = self.queues.values().flat_map(|queue| &queue.waiting);
        ranks.filter(|waiting| waiting.rank >= rank && !waiting.sender.is_closed()).count()
    }

    fn take(&mut self, labels: &[String]) {
        self.taken += 1;
        for label in labels {
            *self.used.entry(label.clone()).or_default() += 1;
        }
    }

    fn give_back(&mut self, labels: &[String]) {
        self.taken -= 1;
        for label in labels {
            if let Some(used) = self.used.get_mut(label) {
                *used = used.saturating_sub(1);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
