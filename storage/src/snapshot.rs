//! Snapshots of runs between two commits, for copying from a log in use.
//!
//! Writes wait while the records are copied, about a second for a million of them. The records are
//! checked and decoded afterwards, while writes continue.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use longhaul_engine::{RunId, StoreError};
use tokio::sync::OwnedRwLockReadGuard;

use crate::blob::{BlobStore, Source};
use crate::codec::Decoder;
use crate::error::{ReadError, blocking, catch_damage};
use crate::gap::{self, Gap};
use crate::key;
use crate::record::Entry;
use crate::run_record::{self, RunRecord};
use crate::sled_store::{Shared, SledStore};

/// Selects runs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every run.
    All,
    /// One run.
    Run(RunId),
    /// A run and all below it (`id/…`).
    Below(RunId),
}

impl Scope {
    /// Whether a run is selected.
    pub fn has(&self, run: &RunId) -> bool {
        match self {
            Self::All => true,
            Self::Run(one) => run == one,
            Self::Below(top) => run.is_within(top.as_str()),
        }
    }

    /// The common key prefix of the selected runs.
    fn prefixes(&self, kind: u8) -> Vec<Vec<u8>> {
        match self {
            Self::All => vec![vec![kind]],
            Self::Run(run) => vec![key::of_run(kind, run)],
            Self::Below(run) => {
                vec![key::of_run(kind, run), [&[kind], run.as_str().as_bytes(), b"/"].concat()]
            }
        }
    }
}

/// The records of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    pub(crate) events: Vec<Entry>,
    pub(crate) mail: Vec<Entry>,
    pub(crate) published: Vec<Entry>,
    pub(crate) summary: Option<Entry>,
}

/// Runs at one moment. No blob is removed while it exists.
#[derive(Debug)]
pub struct Snapshot {
    directory: PathBuf,
    blobs: Arc<BlobStore>,
    epoch: u64,
    pub(crate) runs: BTreeMap<RunId, Records>,
    /// Records whose keys do not contain a run id.
    pub(crate) strays: Vec<Entry>,
    /// The unreadable parts.
    pub(crate) gaps: Vec<Gap>,
    kept: Option<OwnedRwLockReadGuard<()>>,
}

impl SledStore {
    /// Takes a snapshot of runs. Writes wait meanwhile.
    pub async fn snapshot(&self, scope: Scope) -> Result<Snapshot, StoreError> {
        let kept = Arc::clone(&self.shared.snapshot_guards).read_owned().await;
        let shared = Arc::clone(&self.shared);
        let mut snapshot = blocking(move || Ok(take(&shared, &scope))).await?;
        snapshot.kept = Some(kept);
        Ok(snapshot)
    }
}

/// Records on a damaged page are left out, and the gap is noted.
pub(crate) fn take(shared: &Shared, scope: &Scope) -> Snapshot {
    let _writing = shared.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
    let blobs = Arc::clone(&shared.reader.blobs);
    let directory = shared.directory.clone();
    let epoch = shared.epoch;
    let runs = BTreeMap::new();
    let strays = Vec::new();
    let gaps = Vec::new();
    let mut snapshot = Snapshot { directory, blobs, epoch, runs, strays, gaps, kept: None };
    for kind in [key::EVENT, key::MESSAGE, key::PUBLISHED, key::SUMMARY] {
        for prefix in scope.prefixes(kind) {
            let (entries, gap) = gap::entries(&shared.reader.db, kind, &prefix);
            for entry in entries {
                if let Some(stray) = add(&mut snapshot.runs, kind, entry) {
                    snapshot.strays.push(stray);
                }
            }
            snapshot.gaps.extend(gap);
        }
    }
    snapshot
}

/// Adds a record to its run; returns a record without a run, or without the number of its kind.
pub(crate) fn add(runs: &mut BTreeMap<RunId, Records>, kind: u8, entry: Entry) -> Option<Entry> {
    let Some(run) = key::run_of(&entry.0) else { return Some(entry) };
    if [key::EVENT, key::MESSAGE].contains(&kind) && key::number_of(&entry.0).is_none() {
        return Some(entry);
    }
    let records = runs.entry(run).or_default();
    match kind {
        key::EVENT => records.events.push(entry),
        key::MESSAGE => records.mail.push(entry),
        key::PUBLISHED => records.published.push(entry),
        _ => records.summary = Some(entry),
    }
    None
}

impl Snapshot {
    /// The epoch in which it was taken.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether it has no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs in the order of their ids, each decoded on demand. A damaged run is an error that
    /// names the record, and does not end the iteration.
    pub fn iter(&self) -> impl Iterator<Item = (&RunId, Result<RunRecord, StoreError>)> {
        self.runs.iter().map(|(run, records)| {
            (run, catch_damage(|| self.run_record(run, records)).map_err(StoreError::from))
        })
    }

    /// The parts that are unreadable because a page of the log is damaged, for people.
    pub fn unreadable(&self) -> Vec<String> {
        self.gaps.iter().map(|gap| gap.text(&self.directory)).collect()
    }

    fn run_record(&self, run: &RunId, records: &Records) -> Result<RunRecord, ReadError> {
        let mut record = records.run_record(run, Source::Store(&self.blobs));
        let is_end = |record: &RunRecord| {
            record.events.last().is_some_and(|event| event.kind.outcome().is_some())
        };
        for gap in self.gaps.iter().filter(|gap| gap.cuts(run)) {
            let last = records.events.last().is_some_and(|(key, _)| gap.comes_after(key));
            // No records can be missing after the end of a run.
            if !(last && record.as_ref().is_ok_and(is_end)) {
                let reason = "a part of its events lies on a damaged page".to_owned();
                return Err(ReadError::Store(StoreError::Damaged {
                    record: format!("history of run {run}"),
                    reason,
                }));
            }
        }
        if let Ok(record) = &mut record
            && self.gaps.iter().any(|gap| gap.hides_published(run))
            && record.events.first().is_some_and(|event| event.position == 0)
        {
            record.published = run_record::published_by(&record.events);
        }
        record
    }
}

impl Records {
    pub(crate) fn run_record(
        &self,
        run: &RunId,
        source: Source<'_>,
    ) -> Result<RunRecord, ReadError> {
        let missing = |what: Vec<u8>| {
            ReadError::Damaged("it is missing".into()).named(|| key::describe(&what))
        };
        let decoder = Decoder(source);
        let first = self.events.first().and_then(|(key, _)| key::number_of(key));
        let first = first.ok_or_else(|| missing(key::event(run, 0)))?;
        let mut events = Vec::with_capacity(self.events.len());
        for ((key, value), position) in self.events.iter().zip(first..) {
            if **key != *key::event(run, position) {
                return Err(missing(key::event(run, position)));
            }
            events.push(decoder.event(key, value)?);
        }
        let summary = if first == 0 {
            run_record::fold(&events).ok_or_else(|| {
                ReadError::Damaged("it is not the start of a run".into())
                    .named(|| key::describe(&key::event(run, 0)))
            })?
        } else {
            let summary =
                self.summary(source).transpose()?.ok_or_else(|| missing(key::summary(run)))?;
            if run_record::kept_from(&summary) != Some(first) {
                return Err(missing(key::event(run, first - 1)));
            }
            summary
        };
        let mailbox = self
            .mail
            .iter()
            .map(|(key, value)| decoder.message(key, value))
            .collect::<Result<_, ReadError>>()?;
        let published = self
            .published
            .iter()
            .map(|(key, value)| Ok((name_of(run, key), decoder.published(key, value)?)));
        let published = published.collect::<Result<_, ReadError>>()?;
        Ok(RunRecord { run: run.clone(), events, summary, mailbox, published })
    }

    /// The stored summary, if any.
    pub(crate) fn summary(
        &self,
        source: Source<'_>,
    ) -> Option<Result<longhaul_engine::Summary, ReadError>> {
        let (key, value) = self.summary.as_ref()?;
        Some(Decoder(source).summary(key, value))
    }
}

/// The name of a published value, from its key.
pub(crate) fn name_of(run: &RunId, key: &[u8]) -> String {
    let prefix = key::of_run(key::PUBLISHED, run).len();
    String::from_utf8_lossy(key.get(prefix..).unwrap_or_default()).into_owned()
}
