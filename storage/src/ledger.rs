//! What the committer knows of each run: where its history ends, and whether it is over.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_engine::{Position, RunId, StoreError};

use crate::blob::{BlobStore, Source};
use crate::codec::Decoder;
use crate::key;
use crate::snapshot::Entry;

/// How many runs are remembered that the tree knows as well.
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

/// A bounded cache over the tree, and ahead of it: later commits see earlier ones that are not written yet.
#[derive(Debug)]
pub(crate) struct Ledger {
    tree: sled::Tree,
    blobs: Arc<BlobStore>,
    known: HashMap<RunId, Known>,
    /// The group that is being gathered; the one before it may be on its way into the tree.
    group: u64,
    /// Runs that were over when they were last seen: hardly anybody asks for one again.
    over: Vec<RunId>,
}

/// Where a run stands, and the group that brought it there.
#[derive(Debug)]
struct Known {
    standing: Standing,
    group: u64,
}

impl Ledger {
    pub(crate) fn new(tree: sled::Tree, blobs: Arc<BlobStore>) -> Self {
        Self { tree, blobs, known: HashMap::new(), group: 1, over: Vec::new() }
    }

    /// Where a run stands.
    pub(crate) fn of(&mut self, run: &RunId) -> Result<Standing, StoreError> {
        if let Some(known) = self.known.get(run) {
            return Ok(known.standing);
        }
        let standing = look_up(&self.tree, run, &self.blobs)?;
        self.known.insert(run.clone(), Known { standing, group: 0 });
        Ok(standing)
    }

    /// Where the history of a run ends, also of one that cannot be read.
    pub(crate) fn end_of(&self, run: &RunId) -> Result<Position, StoreError> {
        if let Some(known) = self.known.get(run) {
            return Ok(known.standing.end);
        }
        let last = last(&self.tree, run)?;
        Ok(last.map_or(0, |(key, _)| end_behind(&key)))
    }

    /// Records what an accepted commit makes of a run.
    pub(crate) fn set(&mut self, run: &RunId, standing: Standing) {
        if standing.terminal {
            self.over.push(run.clone());
        }
        let known = Known { standing, group: self.group };
        match self.known.get_mut(run) {
            Some(before) => *before = known,
            None => drop(self.known.insert(run.clone(), known)),
        }
    }

    /// The group is complete: what comes now belongs to the next one.
    pub(crate) fn next_group(&mut self) {
        self.group += 1;
    }

    /// All groups but the one that is being gathered are in the tree: what they brought can be forgotten.
    pub(crate) fn caught_up(&mut self) {
        let (known, group) = (&mut self.known, self.group);
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

fn look_up(tree: &sled::Tree, run: &RunId, blobs: &BlobStore) -> Result<Standing, StoreError> {
    if is_unknown(tree, run).map_err(|error| unreadable(&error))? {
        return Ok(Standing { end: 0, terminal: false });
    }
    let Some((last_key, last_event)) = last(tree, run)? else {
        return Ok(Standing { end: 0, terminal: false });
    };
    let end = end_behind(&last_key);
    let terminal = is_over(tree, run, blobs, (&last_key, &last_event))?;
    Ok(Standing { end, terminal })
}

/// Two quick questions, for a search is slow: most runs that are looked up are about to be born.
fn is_unknown(tree: &sled::Tree, run: &RunId) -> sled::Result<bool> {
    Ok(!tree.contains_key(key::summary(run))? && !tree.contains_key(key::event(run, 0))?)
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
    let decoder = Decoder(Source::Store(blobs));
    let summary_key = key::summary(run);
    if let Some(value) = tree.get(&summary_key).map_err(|error| unreadable(&error))? {
        match decoder.summary(&summary_key, &value) {
            Ok(summary) => return Ok(summary.status.is_terminal()),
            Err(flaw) => {
                tracing::warn!(%run, ?flaw, "the summary is damaged; the last event decides");
            }
        }
    }
    let event = decoder.event(last.0, last.1).map_err(|flaw| flaw.in_record(|| key::describe(last.0)))?;
    Ok(event.kind.outcome().is_some())
}

/// What to do about a page that is damaged.
const ADVICE: &str = "it is not what was written; `longhaul check` says what is lost, and `longhaul check --repair` makes \
                      a log of what can be read; a whole backup holds more (`longhaul restore`)";

/// An error of sled while reading.
pub(crate) fn unreadable(error: &sled::Error) -> StoreError {
    match error {
        sled::Error::Io(error) => StoreError::Io { doing: "reading the log".into(), reason: error.to_string() },
        sled::Error::Corruption { .. } => {
            let record = format!("{} of log/db in the data directory", page(error));
            StoreError::Damaged { record, reason: ADVICE.into() }
        }
        _ => StoreError::Damaged { record: "page of log/db in the data directory".into(), reason: error.to_string() },
    }
}

/// Which page of the file an error is about.
pub(crate) fn page(error: &sled::Error) -> String {
    let at = match error {
        sled::Error::Corruption { at: Some(at), .. } => format!("{at:?}"),
        _ => String::new(),
    };
    // The type of the place has no other way to say its number.
    let digits: String = at.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    if digits.is_empty() { "a page".to_owned() } else { format!("the page at byte {digits}") }
}
