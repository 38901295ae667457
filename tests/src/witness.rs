//! Sees every effect that is performed: finds those that must not be, and lets the process die at a
//! chosen one.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use longhaul_engine::activity::ErasedHandler;
use longhaul_engine::{Activity, Attempt, EventKind, Failure, Handlers, Payload, Probe, RunReader};
use longhaul_storage::MemoryStore;
use longhaul_workflows::contracts::{Land, LandInput};

use crate::dying::{DyingStore, Side};
use crate::project::git;

/// What is seen of the effects of one life. Clones see the same life.
#[derive(Clone)]
pub struct Witness {
    memory: MemoryStore,
    store: DyingStore,
    dies_at: Option<(u32, Side)>,
    effects: Arc<AtomicU32>,
    wrongs: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    /// A witness of a life on a store over this memory, which dies at an effect, counted from one;
    /// `None`: never.
    pub fn new(memory: MemoryStore, store: DyingStore, dies_at: Option<(u32, Side)>) -> Self {
        Self { memory, store, dies_at, effects: Arc::default(), wrongs: Arc::default() }
    }

    /// How many effects were begun.
    pub fn effects(&self) -> u32 {
        self.effects.load(Ordering::SeqCst)
    }

    /// What was performed and must not have been.
    pub fn wrongs(&self) -> Vec<String> {
        self.lock_wrongs().clone()
    }

    /// Handlers whose every effect is seen.
    pub fn of(&self, handlers: Handlers) -> Handlers {
        handlers.wrapped(|name, inner| Arc::new(Seen { name, inner, witness: self.clone() }))
    }

    fn lock_wrongs(&self) -> MutexGuard<'_, Vec<String>> {
        self.wrongs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is recorded is never performed again, and what has landed never lands again.
    async fn look(&self, name: &str, input: &Payload, attempt: &Attempt) {
        let history = self.memory.read(&attempt.run, 0).await.unwrap_or_default();
        let is_recorded = history
            .iter()
            .any(|event| matches!(&event.kind, EventKind::ActivityCompleted { slot, .. } if *slot == attempt.slot));
        if is_recorded {
            self.lock_wrongs()
                .push(format!("{name} at {} was recorded, and performed again", attempt.key()));
        }
        if name == Land::NAME && has_landed(input) {
            self.lock_wrongs()
                .push(format!("{name} at {} had landed, and was performed again", attempt.key()));
        }
    }

    /// Dies, if it is time to.
    async fn die(&self, number: u32, side: Side) {
        if self.dies_at == Some((number, side)) {
            self.store.kill();
            std::future::pending::<()>().await;
        }
    }
}

fn has_landed(input: &Payload) -> bool {
    let input: LandInput = input.read().expect("a landing has its input");
    git(
        Path::new(&input.project.root),
        &["merge-base", "--is-ancestor", &input.commit, &input.target],
    )
    .is_ok()
}

struct Seen {
    name: &'static str,
    inner: Arc<dyn ErasedHandler>,
    witness: Witness,
}

#[async_trait]
impl ErasedHandler for Seen {
    async fn perform(&self, input: &Payload, attempt: &Attempt) -> Result<Payload, Failure> {
        let number = self.witness.effects.fetch_add(1, Ordering::SeqCst) + 1;
        self.witness.die(number, Side::Before).await;
        self.witness.look(self.name, input, attempt).await;
        let result = self.inner.perform(input, attempt).await;
        self.witness.die(number, Side::After).await;
        result
    }

    async fn probe(&self, input: &Payload, attempt: &Attempt) -> Probe<Payload> {
        self.inner.probe(input, attempt).await
    }
}
