//! The port to the event log: a few methods, all of which can fail and say so.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::context::{EngineError, Stop};
use crate::event::{Event, Message, MessageBody};
use crate::id::{MessageSeq, Position, RunId};
use crate::payload::Payload;
use crate::summary::Summary;

/// One decision of a run: all of it becomes durable, or nothing.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The run that decided.
    pub run: RunId,
    /// The events, in order; their positions follow on the end of the history, or the commit is
    /// refused. May be empty.
    pub events: Vec<Event>,
    /// The summary after them, if they changed it.
    pub summary: Option<Summary>,
    /// The messages that they took from the run's mailbox.
    pub consumed: Vec<MessageSeq>,
    /// Values that the run publishes: `None` removes one.
    pub published: Vec<(String, Option<Payload>)>,
    /// Messages to other runs. A message to a run that does not exist or is over is dropped.
    pub deliveries: Vec<Delivery>,
    /// Runs that begin with this; one that exists already is left as it is.
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

/// A message on its way.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Whose mailbox.
    pub to: RunId,
    /// When it was sent.
    pub at: DateTime<Utc>,
    /// What it is.
    pub body: MessageBody,
}

/// The beginning of a run: its first event, at position 0.
#[derive(Debug, Clone)]
pub struct Creation {
    /// The new run.
    pub run: RunId,
    /// Its `RunStarted`.
    pub event: Event,
    /// The summary of that.
    pub summary: Summary,
}

/// What became of the parts of a commit that may be dropped.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Committed {
    /// For each delivery, the message as it lies in the mailbox now; `None`: dropped.
    pub delivered: Vec<Option<Message>>,
    /// For each creation, whether the run is new.
    pub created: Vec<bool>,
}

/// What can be wrong with a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another writer appended first: this writer's state of the run is stale.
    #[error(
        "run {run}: append at position {asked} refused, the history ends at {end}; a newer writer owns this run"
    )]
    Conflict {
        /// The run.
        run: RunId,
        /// The position of the first event of the refused commit.
        asked: Position,
        /// The position that the next event must have.
        end: Position,
    },
    /// There is no such run.
    #[error("no run `{0}` in this log")]
    UnknownRun(RunId),
    /// A stored record cannot be trusted.
    #[error("damaged record {record}: {reason}")]
    Damaged {
        /// Which record.
        record: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The log is damaged where all else depends on it.
    #[error("the log is damaged: {log} cannot be opened: {reason}")]
    Unopenable {
        /// Its file or directory.
        log: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk has no room for what was to be written; nothing of it was.
    #[error("disk full: {0}")]
    Full(String),
    /// A write or a sync failed before; nothing more is accepted until the log is opened again.
    #[error(
        "the log takes no more appends since a write failed: {0}; stop, mend the cause and start again"
    )]
    Poisoned(String),
    /// Another process owns the log.
    #[error("{directory} is in use by process {owner}; stop that one, or ask it")]
    Owned {
        /// The data directory.
        directory: String,
        /// The process id of the owner, as it left it.
        owner: String,
    },
    /// The store cannot be opened or used as it is.
    #[error("{0}")]
    Unusable(String),
    /// The operating system refused.
    #[error("{doing}: {reason}")]
    Io {
        /// What was being done, and where.
        doing: String,
        /// What the system said.
        reason: String,
    },
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Engine(EngineError::new(error))
    }
}

/// The write side of an event log, for an engine that owns it. A method that returned `Ok` has made
/// its effect durable.
#[async_trait]
pub trait EventLog: RunReader {
    /// Appends one decision, if the events follow on the end of the run's history.
    async fn commit(&self, commit: Commit) -> Result<Committed, StoreError>;

    /// Puts a message into a mailbox; an error if there is no such run, `None` if it is over.
    async fn deliver(&self, delivery: Delivery) -> Result<Option<Message>, StoreError>;
}

/// The read side: the state of runs, for engines and for views.
#[async_trait]
pub trait RunReader: Send + Sync + 'static {
    /// The events of a run, from a position to the end. Empty if there is no such run.
    async fn read(&self, run: &RunId, from: Position) -> Result<Vec<Event>, StoreError>;

    /// What lies in a mailbox, oldest first.
    async fn mailbox(&self, run: &RunId) -> Result<Vec<Message>, StoreError>;

    /// The summary of a run, if there is one.
    async fn summary(&self, run: &RunId) -> Result<Option<Summary>, StoreError>;

    /// The runs whose id begins with `prefix`, in the order of their ids, with their summaries.
    async fn runs(&self, prefix: &str) -> Result<Vec<(RunId, Summary)>, StoreError>;

    /// The runs that have something in their mailbox, in the order of their ids.
    async fn runs_with_mail(&self) -> Result<Vec<RunId>, StoreError>;

    /// The values that a run has published and not removed.
    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, StoreError>;
}
