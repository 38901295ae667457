//! The trait [`EventLog`]: the guarantees of an event log.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::context::{EngineError, Stop};
use crate::event::{Event, Message, MessageBody};
use crate::id::{MessageSeq, Position, RunId};
use crate::payload::Payload;
use crate::summary::Summary;

/// One decision of a run, committed atomically.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The run that decided.
    pub run: RunId,
    /// The events, in order. A commit is refused unless their positions continue the history. May
    /// be empty.
    pub events: Vec<Event>,
    /// The summary after them, if they changed it.
    pub summary: Option<Summary>,
    /// The messages removed from the run's mailbox.
    pub consumed: Vec<MessageSeq>,
    /// Values that the run publishes: `None` removes one.
    pub published: Vec<(String, Option<Payload>)>,
    /// Messages to other runs. A message to a run that does not exist or is over is dropped.
    pub deliveries: Vec<Delivery>,
    /// New runs with their first events; a run that exists already is not changed.
    pub creations: Vec<Creation>,
}

impl Commit {
    /// A commit of events and nothing else.
    pub fn of(run: RunId, events: Vec<Event>) -> Self {
        Self {
            run,
            events,
            summary: None,
            consumed: Vec::new(),
            published: Vec::new(),
            deliveries: Vec::new(),
            creations: Vec::new(),
        }
    }
}

/// A message to deliver.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The recipient.
    pub to: RunId,
    /// When it was sent.
    pub at: DateTime<Utc>,
    /// Its content.
    pub body: MessageBody,
}

/// The creation of a run: its first event, at position 0.
#[derive(Debug, Clone)]
pub struct Creation {
    /// The new run.
    pub run: RunId,
    /// Its `RunStarted`.
    pub event: Event,
    /// The summary after it.
    pub summary: Summary,
}

/// The results of the parts of a commit that may be dropped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Committed {
    /// For each delivery, the message in the mailbox; `None`: dropped.
    pub delivered: Vec<Option<Message>>,
    /// For each creation, whether the run is new.
    pub created: Vec<bool>,
}

/// An error of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another writer appended first: this writer's state of the run is stale.
    #[error(
        "run {run}: append at position {position} refused, the history ends at {end}; a newer \
         writer owns this run"
    )]
    Conflict {
        /// The run.
        run: RunId,
        /// The position of the first event of the refused commit.
        position: Position,
        /// The position that the next event must have.
        end: Position,
    },
    /// There is no such run.
    #[error("no run `{0}` in this log")]
    UnknownRun(RunId),
    /// A stored record is damaged.
    #[error("damaged record {record}: {reason}")]
    Damaged {
        /// The record.
        record: String,
        /// The defect.
        reason: String,
    },
    /// The log is damaged in a part that all of it depends on.
    #[error("the log is damaged: {log} cannot be opened: {reason}")]
    Unopenable {
        /// Its file or directory.
        log: String,
        /// The defect.
        reason: String,
    },
    /// The disk is too full for the write; none of it was written.
    #[error("disk full: {0}")]
    Full(String),
    /// An earlier write or sync failed; no write is accepted until the log is reopened.
    #[error("the log accepts no writes since one failed: {0}; stop, fix the cause and start again")]
    Poisoned(String),
    /// Another process owns the log.
    #[error("{directory} is in use by process {owner}; stop that process, or send it the request")]
    Owned {
        /// The data directory.
        directory: String,
        /// The process id that the owner recorded.
        owner: String,
    },
    /// The store cannot be opened or used in its current state.
    #[error("{0}")]
    Unusable(String),
    /// An operating system error.
    #[error("{doing}: {reason}")]
    Io {
        /// The operation and its place.
        doing: String,
        /// The message of the system.
        reason: String,
    },
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Engine(EngineError::new(error))
    }
}

/// The write side of an event log, for the engine that owns it. A method that returns `Ok` has made
/// its effect durable.
#[async_trait]
pub trait EventLog: RunReader {
    /// Appends one decision, if its events continue the run's history.
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Puts a message into a mailbox; an error if there is no such run, `None` if it is over.
    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError>;
}

/// The read side: the state of runs, for engines and for views.
#[async_trait]
pub trait RunReader: Send + Sync + 'static {
    /// The events of a run, from a position to the end. Empty if there is no such run.
    async fn read(&self, run: &RunId, from: Position) -> Result<Vec<Event>, StoreError>;

    /// The messages of a mailbox, oldest first.
    async fn mailbox(&self, run: &RunId) -> Result<Vec<Message>, StoreError>;

    /// The summary of a run, if there is one.
    async fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError>;

    /// The runs whose id begins with `prefix`, in the order of their ids, with their summaries.
    async fn runs(&self, prefix: &str) -> Result<Vec<(RunId, Summary)>, StoreError>;

    /// The runs with a nonempty mailbox, in the order of their ids.
    async fn runs_with_mail(&self) -> Result<Vec<RunId>, StoreError>;

    /// The values that a run has published and not removed.
    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, StoreError>;

    /// As [`Self::published`], without a value that may be large.
    async fn published_except(
        &self,
        run: &RunId,
        key: &str,
    ) -> Result<BTreeMap<String, Payload>, StoreError> {
        let mut published = self.published(run).await?;
        published.remove(key);
        Ok(published)
    }
}
