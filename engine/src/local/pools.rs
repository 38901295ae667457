//! Pools of slots that limit how many activities run at once: the highest priority first,
//! round-robin among equals.
//!
//! Runs share by the first part of their ids: a project with a thousand runs waits in one queue, a
//! project with three in another, and the two queues alternate.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::id::RunId;

/// How the runs of a project share pools with other projects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// Higher is served first; lower priorities wait as long as a higher one waits.
    pub priority: i64,
    /// Labels whose limits apply to it.
    pub labels: Vec<String>,
}

/// How many activities of a pool run at once in the whole engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pools {
    pools: Arc<Mutex<HashMap<String, Arc<Pool>>>>,
    terms: Arc<Mutex<Terms>>,
}

/// Priorities of projects and limits of labels.
#[derive(Debug, Default)]
struct Terms {
    shares: HashMap<String, Share>,
    /// The limit of a pool for a label.
    limits: HashMap<(String, String), usize>,
}

#[derive(Debug)]
struct Pool {
    name: String,
    terms: Arc<Mutex<Terms>>,
    state: Mutex<State>,
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
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(RunId, oneshot::Sender<PoolSlot>)>,
    /// The turn in which it was last served.
    served: u64,
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
        }
    }
}

impl Pools {
    pub(crate) fn new(sizes: &[(String, usize)]) -> Self {
        let terms = Arc::<Mutex<Terms>>::default();
        let pools = Self { pools: Arc::default(), terms };
        for (name, size) in sizes {
            pools.resize(name, *size);
        }
        pools
    }

    /// Sets how the runs of a project share pools, from now on.
    pub(crate) fn share(&self, project: &str, share: Share) {
        lock(&self.terms).shares.insert(project.to_owned(), share);
        self.serve_all();
    }

    /// Sets the number of slots of a pool, from now on; slots in use are kept. A pool without a
    /// size so far gets one.
    pub(crate) fn resize(&self, name: &str, size: usize) {
        let pool = {
            let mut pools = lock(&self.pools);
            let new = || Arc::new(Pool::new(name, &self.terms));
            Arc::clone(pools.entry(name.to_owned()).or_insert_with(new))
        };
        let mut state = pool.lock();
        state.size = size;
        pool.serve(&mut state);
    }

    /// Sets the limit of a pool for a label, from now on.
    pub(crate) fn limit(&self, pool: &str, label: &str, most: usize) {
        lock(&self.terms).limits.insert((pool.to_owned(), label.to_owned()), most);
        self.serve_all();
    }

    fn serve_all(&self) {
        let pools: Vec<_> = lock(&self.pools).values().cloned().collect();
        for pool in pools {
            pool.serve(&mut pool.lock());
        }
    }

    /// The runs with a call that waits for a slot, and the pool.
    pub(crate) fn queued(&self) -> BTreeMap<RunId, String> {
        let pools: Vec<_> = lock(&self.pools).values().cloned().collect();
        let mut queued = BTreeMap::new();
        for pool in pools {
            let state = pool.lock();
            let waiting = state.queues.values().flat_map(|queue| &queue.waiting);
            let waiting = waiting.filter(|(_, sender)| !sender.is_closed());
            queued.extend(waiting.map(|(run, _)| (run.clone(), pool.name.clone())));
        }
        queued
    }

    /// Waits for a free slot; `None` at once if the pool has no limit. Cancel-safe.
    pub(crate) async fn enter(&self, pool: Option<&str>, run: &RunId) -> Option<PoolSlot> {
        let pool = lock(&self.pools).get(pool?).cloned()?;
        let (sender, place) = oneshot::channel();
        let project = run.root();
        {
            let mut state = pool.lock();
            state
                .queues
                .entry(project.to_owned())
                .or_default()
                .waiting
                .push_back((run.clone(), sender));
            pool.serve(&mut state);
        }
        place.await.ok()
    }
}

impl Pool {
    /// A pool without slots.
    fn new(name: &str, terms: &Arc<Mutex<Terms>>) -> Self {
        Self { name: name.to_owned(), terms: Arc::clone(terms), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Gives free slots to the next projects in turn.
    fn serve(self: &Arc<Self>, state: &mut State) {
        while let Some((project, labels)) = self.next(state) {
            state.turn += 1;
            let turn = state.turn;
            let Some(queue) = state.queues.get_mut(&project) else { return };
            let Some((_, sender)) = queue.waiting.pop_front() else { return };
            let place = PoolSlot { pool: Some(Arc::clone(self)), labels: labels.clone() };
            match sender.send(place) {
                Ok(()) => {
                    queue.served = turn;
                    state.take(&labels);
                }
                // The waiting call was cancelled.
                Err(mut place) => place.pool = None,
            }
        }
    }

    /// The next project in turn, if there is a free slot for it.
    fn next(&self, state: &mut State) -> Option<(String, Vec<String>)> {
        let terms = lock(&self.terms);
        if state.taken >= state.size {
            return None;
        }
        let default = Share::default();
        let fits = |share: &Share| {
            share.labels.iter().all(|label| {
                let limit = terms.limits.get(&(self.name.clone(), label.clone()));
                limit
                    .is_none_or(|limit| state.used.get(label).copied().unwrap_or_default() < *limit)
            })
        };
        let waiting = state.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        let with_share = waiting.map(|(project, queue)| {
            (project, queue, terms.shares.get(project).unwrap_or(&default))
        });
        let next = with_share.filter(|(_, _, share)| fits(share));
        let (project, _, share) =
            next.min_by_key(|(_, queue, share)| (std::cmp::Reverse(share.priority), queue.served))?;
        Some((project.clone(), share.labels.clone()))
    }
}

impl State {
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
