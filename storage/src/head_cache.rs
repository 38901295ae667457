//! Cache of run heads: the end of each run's history, and whether the run is over.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_engine::{Position, RunId, StoreError};

use crate::blob::{BlobStore, Source};
use crate::codec::Decoder;
use crate::error::unreadable;
use crate::key;
use crate::record::Entry;

/// How many runs are cached whose heads are also in the tree.
const REMEMBERED: usize = 65_536;

/// The head of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunHead {
    /// The position of the next event; zero if there is no such run.
    pub(crate) end: Position,
    /// The run is over: messages to it are dropped.
    pub(crate) terminal: bool,
}

impl RunHead {
    pub(crate) fn exists(self) -> bool {
        self.end > 0
    }
}

/// A bounded cache over the tree, and ahead of it: later commits see the heads of earlier ones that
/// are not yet written.
#[derive(Debug)]
pub(crate) struct HeadCache {
    tree: sled::Tree,
    blobs: Arc<BlobStore>,
    known: HashMap<RunId, CachedHead>,
    /// The group being collected; the one before it may be half-written to the tree.
    group: u64,
    /// Runs that were over at their last use: they are rarely used again.
    over: Vec<RunId>,
}

/// The head of a run, and the group that set it.
#[derive(Debug)]
struct CachedHead {
    head: RunHead,
    group: u64,
}

impl HeadCache {
    pub(crate) fn new(tree: sled::Tree, blobs: Arc<BlobStore>) -> Self {
        Self { tree, blobs, known: HashMap::new(), group: 1, over: Vec::new() }
    }

    /// The head of a run.
    pub(crate) fn of(&mut self, run: &RunId) -> Result<RunHead, StoreError> {
        if let Some(known) = self.known.get(run) {
            return Ok(known.head);
        }
        let head = look_up(&self.tree, run, &self.blobs)?;
        self.known.insert(run.clone(), CachedHead { head, group: 0 });
        Ok(head)
    }

    /// The end of a history, even of an unreadable one.
    pub(crate) fn end_of(&self, run: &RunId) -> Result<Position, StoreError> {
        if let Some(known) = self.known.get(run) {
            return Ok(known.head.end);
        }
        Ok(last(&self.tree, run)?.map_or(0, |last| last.position + 1))
    }

    /// Sets the head of a run after an accepted commit.
    pub(crate) fn set(&mut self, run: &RunId, head: RunHead) {
        if head.terminal {
            self.over.push(run.clone());
        }
        let known = CachedHead { head, group: self.group };
        match self.known.get_mut(run) {
            Some(before) => *before = known,
            None => drop(self.known.insert(run.clone(), known)),
        }
    }

    /// The group is complete: later commits belong to the next one.
    pub(crate) fn next_group(&mut self) {
        self.group += 1;
    }

    /// All earlier groups are in the tree: their heads may leave the cache.
    pub(crate) fn caught_up(&mut self) {
        let known = &mut self.known;
        let group = self.group;
        self.over.retain(|run| {
            let ahead = known.get(run).is_some_and(|known| known.group == group);
            if !ahead {
                known.remove(run);
            }
            ahead
        });
        if known.len() > REMEMBERED {
            known.retain(|_, known| known.group == group);
        }
    }
}

fn look_up(tree: &sled::Tree, run: &RunId, blobs: &BlobStore) -> Result<RunHead, StoreError> {
    if is_unknown(tree, run).map_err(|error| unreadable(&error))? {
        return Ok(RunHead { end: 0, terminal: false });
    }
    let Some(last) = last(tree, run)? else {
        return Ok(RunHead { end: 0, terminal: false });
    };
    let terminal = is_over(tree, run, blobs, &last.entry)?;
    Ok(RunHead { end: last.position + 1, terminal })
}

/// Two point reads, because a range scan is slow: most runs looked up are about to be created.
fn is_unknown(tree: &sled::Tree, run: &RunId) -> sled::Result<bool> {
    Ok(!tree.contains_key(key::summary(run))? && !tree.contains_key(key::event(run, 0))?)
}

/// The last event of a run, as stored.
struct LastEvent {
    position: Position,
    entry: Entry,
}

/// A key without a number is no event: the check reports it.
fn last(tree: &sled::Tree, run: &RunId) -> Result<Option<LastEvent>, StoreError> {
    for entry in tree.range(key::event(run, 0)..=key::event(run, u64::MAX)).rev() {
        let entry = entry.map_err(|error| unreadable(&error))?;
        if let Some(position) = key::number_of(&entry.0) {
            return Ok(Some(LastEvent { position, entry }));
        }
    }
    Ok(None)
}

/// From the summary, or if that is missing or damaged, from the last event.
fn is_over(
    tree: &sled::Tree,
    run: &RunId,
    blobs: &BlobStore,
    (key, value): &Entry,
) -> Result<bool, StoreError> {
    let decoder = Decoder(Source::Store(blobs));
    let summary_key = key::summary(run);
    if let Some(value) = tree.get(&summary_key).map_err(|error| unreadable(&error))? {
        match decoder.summary(&summary_key, &value) {
            Ok(summary) => return Ok(summary.status.is_terminal()),
            Err(error) => {
                tracing::warn!(%run, ?error, "the summary is damaged; the last event decides");
            }
        }
    }
    let event =
        decoder.event(key, value).map_err(|error| error.in_record(|| key::describe(key)))?;
    Ok(event.kind.outcome().is_some())
}
