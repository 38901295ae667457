//! A store that dies: at the n-th append, before it is written or after.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use longhaul_engine::store::{Commit, Committed, Delivery};
use longhaul_engine::{
    Event, EventLog, Message, Payload, Position, RunId, RunReader, StoreError, Summary,
};
use tokio::sync::watch;

/// On which side of the append the store dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The append is lost.
    Before,
    /// The append is durable, but its caller gets no answer.
    After,
}

/// A store that works until its time has come, and then refuses everything.
#[derive(Clone)]
pub struct DyingStore {
    inner: Arc<dyn EventLog>,
    appends: Arc<AtomicU32>,
    dead: watch::Sender<bool>,
    dies_at: Option<(u32, Side)>,
    /// The number of the append that waits until the store lets go.
    holds_at: Option<u32>,
    let_go: watch::Sender<bool>,
}

impl DyingStore {
    /// A store that dies at an append, counted from one; `None`: never.
    pub fn new(inner: Arc<dyn EventLog>, dies_at: Option<(u32, Side)>) -> Self {
        let (dead, let_go) = (watch::Sender::new(false), watch::Sender::new(false));
        Self { inner, appends: Arc::default(), dead, dies_at, holds_at: None, let_go }
    }

    /// The same store, which holds an append, counted from one, until [`DyingStore::let_go`].
    #[must_use]
    pub fn holding(self, append: u32) -> Self {
        Self { holds_at: Some(append), ..self }
    }

    /// Lets the append go that is held.
    pub fn let_go(&self) {
        self.let_go.send_replace(true);
    }

    /// How many appends were tried.
    pub fn appends(&self) -> u32 {
        self.appends.load(Ordering::SeqCst)
    }

    /// Whether it is dead.
    pub fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Makes it die now.
    pub fn kill(&self) {
        self.dead.send_replace(true);
    }

    /// Resolves when it is dead.
    pub async fn died(&self) {
        let mut dead = self.dead.subscribe();
        dead.wait_for(|dead| *dead).await.expect("this store is a sender");
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.is_dead() { Err(killed()) } else { Ok(()) }
    }

    /// Counts an append; whether the store dies after it.
    fn append(&self) -> Result<bool, StoreError> {
        self.alive()?;
        let number = self.appends.fetch_add(1, Ordering::SeqCst) + 1;
        let Some((at, side)) = self.dies_at.filter(|(at, _)| number >= *at) else {
            return Ok(false);
        };
        if number == at && side == Side::After {
            return Ok(true);
        }
        if number == at {
            self.kill();
        }
        Err(killed())
    }

    /// Hands on what an append gave, unless the store dies after it.
    fn answer<T>(&self, dies: bool, given: T) -> Result<T, StoreError> {
        if dies {
            self.kill();
        }
        self.alive().map(|()| given)
    }
}

fn killed() -> StoreError {
    StoreError::Poisoned("the test has killed this store".into())
}

#[async_trait]
impl EventLog for DyingStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        let dies = self.append()?;
        if self.holds_at == Some(self.appends()) {
            let mut let_go = self.let_go.subscribe();
            let_go.wait_for(|let_go| *let_go).await.expect("this store is a sender");
        }
        let committed = self.inner.commit(commit).await?;
        self.answer(dies, committed)
    }

    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError> {
        let dies = self.append()?;
        let delivered = self.inner.deliver(delivery).await?;
        self.answer(dies, delivered)
    }
}

#[async_trait]
impl RunReader for DyingStore {
    async fn read(&self, run: &RunId, from: Position) -> Result<Vec<Event>, StoreError> {
        self.alive()?;
        self.inner.read(run, from).await
    }

    async fn mailbox(&self, run: &RunId) -> Result<Vec<Message>, StoreError> {
        self.alive()?;
        self.inner.mailbox(run).await
    }

    async fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError> {
        self.alive()?;
        self.inner.summary(run).await
    }

    async fn runs(&self, prefix: &str) -> Result<Vec<(RunId, Summary)>, StoreError> {
        self.alive()?;
        self.inner.runs(prefix).await
    }

    async fn runs_with_mail(&self) -> Result<Vec<RunId>, StoreError> {
        self.alive()?;
        self.inner.runs_with_mail().await
    }

    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, StoreError> {
        self.alive()?;
        self.inner.published(run).await
    }
}
