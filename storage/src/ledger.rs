//! What the committer knows of each run: where its history ends, and whether it is over.

use std::collections::HashMap;

use longhaul_engine::{Position, RunId, StoreError};

use crate::blob::{BlobStore, Source};
use crate::flaw::Flaw;
use crate::snapshot::Entry;
use crate::wire::v1;
use crate::{key, record};

/// How many runs are remembered between groups.
const REMEMBERED: usize = 65_536;

/// Where a run stands, as far as the committer has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The position of the next event; zero if there is no such run.
    pub(crate) end: Position,
    /// No message reaches it any more.
    pub(crate) terminal: bool,
}

impl Standing {
    pub(crate) fn exists(self) -> bool {
        self.end > 0
    }
}

/// A bounded cache over the tree. Within a group it is ahead of the tree, so that later commits see earlier ones.
#[derive(Debug)]
pub(crate) struct Ledger {
    tree: sled::Tree,
    known: HashMap<RunId, Standing>,
}

impl Ledger {
    pub(crate) fn new(tree: sled::Tree) -> Self {
        Self { tree, known: HashMap::new() }
    }

    /// Forgets, if it knows too much; only between groups, when the tree has caught up.
    pub(crate) fn trim(&mut self) {
        if self.known.len() > REMEMBERED {
            self.known.clear();
        }
    }

    /// Where a run stands.
    pub(crate) fn of(&mut self, run: &RunId, blobs: &BlobStore) -> Result<Standing, StoreError> {
        if let Some(standing) = self.known.get(run) {
            return Ok(*standing);
        }
        let standing = look_up(&self.tree, run, blobs)?;
        self.known.insert(run.clone(), standing);
        Ok(standing)
    }

    /// Where the history of a run ends, also of one that cannot be read.
    pub(crate) fn end_of(&self, run: &RunId) -> Result<Position, StoreError> {
        if let Some(standing) = self.known.get(run) {
            return Ok(standing.end);
        }
        let last = last(&self.tree, run)?;
        Ok(last.map_or(0, |(key, _)| end_behind(&key)))
    }

    /// Records what an accepted commit makes of a run.
    pub(crate) fn set(&mut self, run: &RunId, standing: Standing) {
        self.known.insert(run.clone(), standing);
    }
}

fn look_up(tree: &sled::Tree, run: &RunId, blobs: &BlobStore) -> Result<Standing, StoreError> {
    let Some((last_key, last_event)) = last(tree, run)? else {
        return Ok(Standing { end: 0, terminal: false });
    };
    let end = end_behind(&last_key);
    let terminal = is_over(tree, run, blobs, (&last_key, &last_event))?;
    Ok(Standing { end, terminal })
}

fn last(tree: &sled::Tree, run: &RunId) -> Result<Option<Entry>, StoreError> {
    let last = tree.range(key::event(run, 0)..=key::event(run, u64::MAX)).next_back();
    last.transpose().map_err(|error| unreadable(&error))
}

/// The position behind the event of a key.
pub(crate) fn end_behind(key: &[u8]) -> Position {
    key::number_of(key).map_or(0, |position| position + 1)
}

/// By the summary; where that is missing or damaged, by the last event.
fn is_over(tree: &sled::Tree, run: &RunId, blobs: &BlobStore, last: (&[u8], &[u8])) -> Result<bool, StoreError> {
    use v1::EventKind::{RunCancelled, RunCompleted, RunFailed};
    use v1::Status::{Cancelled, Completed, Failed};
    let source = Source::Store(blobs);
    let summary_key = key::summary(run);
    if let Some(value) = tree.get(&summary_key).map_err(|error| unreadable(&error))? {
        match record::decode::<v1::Summary>(&summary_key, &value, source) {
            Ok(summary) => {
                return Ok(matches!(summary.status, Completed | Failed(_) | Cancelled));
            }
            Err(flaw) => {
                tracing::warn!(%run, ?flaw, "the summary is damaged; the last event decides");
            }
        }
    }
    let event: Result<v1::Event, Flaw> = record::decode(last.0, last.1, source);
    let event = event.map_err(|flaw| flaw.in_record(|| key::describe(last.0)))?;
    Ok(matches!(event.kind, RunCompleted { .. } | RunFailed { .. } | RunCancelled))
}

/// An error of sled while reading.
pub(crate) fn unreadable(error: &sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => StoreError::Io { doing: "reading the log".into(), reason: error.to_string() },
        _ => StoreError::Damaged { record: "page of the log".into(), reason: error.to_string() },
    }
}
