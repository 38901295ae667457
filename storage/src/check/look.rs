//! Finds damage: in each record by itself, then in derived data by comparison with the history.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use longhaul_engine::{Event, EventKind, Position, RunId, Summary};
use sled::IVec;

use super::{Finding, Findings, Remedy};
use crate::blob::Source;
use crate::codec::Decoder;
use crate::error::{ReadError, catch_sled_panic};
use crate::gap::Gap;
use crate::key;
use crate::record::Entry;
use crate::run_record;
use crate::snapshot::{Records, name_of};

/// The most runs named in a finding about possibly lost events.
const NAMED: usize = 5;

/// The defect of one record.
fn what(error: ReadError) -> String {
    match error.in_record(String::new) {
        longhaul_engine::StoreError::Damaged { reason, .. } => reason,
        error => error.to_string(),
    }
}

/// The value of a record, or its defect; a panic of sled counts as a defect.
fn checked<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, String> {
    catch_sled_panic(read).unwrap_or_else(|panic| Err(ReadError::Damaged(panic))).map_err(what)
}

/// A history with a defect.
struct BrokenHistory {
    /// The first damaged record, and its defect.
    key: Vec<u8>,
    what: String,
    readable: Vec<Event>,
}

impl Findings {
    pub(super) fn add(&mut self, key: &[u8], what: impl Into<String>, remedy: Remedy) {
        self.found.push(Finding { record: key::describe(key), what: what.into(), remedy });
    }

    pub(super) fn look_at(&mut self, run: &RunId, records: &Records, source: Source<'_>) {
        self.count(records);
        let mail = &records.mail;
        let mut messages = Vec::new();
        for (key, value) in mail {
            match checked(|| Decoder(source).message(key, value)) {
                Ok(message) => messages.push(message),
                Err(what) => {
                    self.add(
                        key,
                        what,
                        Remedy::MoveRecords(run.clone(), vec![(key.clone(), value.clone())]),
                    );
                }
            }
        }
        let stored: Option<Result<Summary, String>> =
            checked(|| records.summary(source).transpose()).transpose();
        let kept = stored.as_ref().and_then(|stored| run_record::kept_from(stored.as_ref().ok()?));
        let events = self.pruned(run, &records.events, kept);
        match Self::history(run, events, kept, source) {
            // Removing the record repairs its other defects too.
            Err(BrokenHistory { key, what, readable }) => {
                self.add(&key, what, Remedy::MoveRun(run.clone(), readable));
            }
            Ok(events) => {
                self.reappeared_messages(run, mail, &events);
                if let Some(summary) = run_record::fold(&events).or_else(|| stored.clone()?.ok()) {
                    self.children.look_at(run, &summary, &events, &messages);
                    self.post.look_at(run, &summary, &events, messages);
                }
                self.summary(run, stored, &events);
                self.published(run, records, &events, source);
            }
        }
    }

    /// Messages that were taken before: they reappeared because the record of their removal is
    /// damaged.
    fn reappeared_messages(&mut self, run: &RunId, mail: &[(IVec, IVec)], events: &[Event]) {
        if mail.is_empty() {
            return;
        }
        let seq = |event: &Event| match &event.kind {
            EventKind::MessageReceived { message: Some(message), .. } => Some(message.seq),
            _ => None,
        };
        let taken: HashSet<u64> = events.iter().filter_map(seq).collect();
        for (key, value) in mail
            .iter()
            .filter(|(key, _)| key::number_of(key).is_some_and(|seq| taken.contains(&seq)))
        {
            self.add(
                key,
                "the run has taken it already",
                Remedy::MoveRecords(run.clone(), vec![(key.clone(), value.clone())]),
            );
        }
    }

    /// The remaining events of a pruned run. Earlier ones reappeared because the record of their
    /// removal is damaged.
    fn pruned<'a>(
        &mut self,
        run: &RunId,
        events: &'a [Entry],
        kept: Option<Position>,
    ) -> &'a [Entry] {
        let from = events.partition_point(|(key, _)| key::number_of(key) < kept);
        let (gone, left) = events.split_at(from);
        let Some((first, _)) = gone.first().filter(|_| !left.is_empty()) else { return events };
        let what = format!("it was pruned, as were {} events in all", gone.len());
        self.add(&first.clone(), what, Remedy::MoveRecords(run.clone(), gone.to_vec()));
        left
    }

    fn history(
        run: &RunId,
        entries: &[Entry],
        kept: Option<Position>,
        source: Source<'_>,
    ) -> Result<Vec<Event>, BrokenHistory> {
        let there = entries.first().and_then(|(key, _)| key::number_of(key));
        let begin = kept.filter(|kept| there == Some(*kept)).unwrap_or(0);
        let mut wrong: Option<(Vec<u8>, String)> = None;
        let mut expected: Position = begin;
        let mut events = Vec::new();
        for (key, value) in entries {
            let Some(position) = key::number_of(key) else {
                wrong.get_or_insert((key.to_vec(), key::NO_NUMBER.into()));
                continue;
            };
            if position != expected {
                wrong.get_or_insert((
                    key::event(run, expected),
                    "it is missing, but later ones exist".into(),
                ));
            }
            expected = position.saturating_add(1);
            match checked(|| Decoder(source).event(key, value)) {
                Ok(event) => events.push(event),
                Err(what) => drop(wrong.get_or_insert((key.to_vec(), what))),
            }
        }
        if entries.is_empty() {
            wrong =
                Some((key::event(run, 0), "it is missing: nothing is left of the history".into()));
        }
        let is_start = |event: &Event| matches!(event.kind, EventKind::RunStarted { .. });
        if wrong.is_none() && begin == 0 && !events.first().is_some_and(is_start) {
            wrong = Some((key::event(run, 0), "it is not the start of a run".into()));
        }
        match wrong {
            Some((key, what)) => Err(BrokenHistory { key, what, readable: events }),
            None => Ok(events),
        }
    }

    fn summary(&mut self, run: &RunId, stored: Option<Result<Summary, String>>, events: &[Event]) {
        // The summary of a pruned run cannot be recomputed from the remaining events; it was read
        // to detect the pruning.
        let Some(folded) = run_record::fold(events) else { return };
        let what = match stored {
            Some(Ok(summary)) if summary == folded => return,
            Some(Ok(summary)) if summary.status != folded.status => {
                let said = summary.status.name();
                let is = folded.status.name();
                format!("it says that the run is {said}, but the history says {is}")
            }
            Some(Ok(_)) => "it does not match the history".into(),
            Some(Err(what)) => what,
            None => "it is missing".into(),
        };
        self.add(&key::summary(run), what, Remedy::Summarise(run.clone(), folded));
    }

    fn published(&mut self, run: &RunId, records: &Records, events: &[Event], source: Source<'_>) {
        let is_whole = events.first().is_some_and(|event| event.position == 0);
        let mut expected = run_record::published_by(events);
        for (key, value) in &records.published {
            let name = name_of(run, key);
            let stored = checked(|| Decoder(source).published(key, value));
            let what = match (stored, expected.remove(&name)) {
                (Err(what), _) => what,
                (Ok(stored), Some(published)) if stored != published => {
                    "it differs from the last value that the history published".into()
                }
                (Ok(_), None) if is_whole => {
                    "the history has not published it, or has removed it".into()
                }
                _ => continue,
            };
            let remedy = match run_record::published_by(events).remove(&name) {
                Some(value) => Remedy::Publish(run.clone(), [(name, value)].into()),
                None => Remedy::MoveRecords(run.clone(), vec![(key.clone(), value.clone())]),
            };
            self.add(key, what, remedy);
        }
        if is_whole {
            for (name, value) in expected {
                let key = key::published(run, &name);
                self.add(
                    &key,
                    "it is missing",
                    Remedy::Publish(run.clone(), [(name, value)].into()),
                );
            }
        }
    }

    pub(super) fn strays(&mut self, records: &[(IVec, IVec)]) {
        self.report.records += records.len() as u64;
        for (key, value) in records {
            let record = format!("`{}`", key.escape_ascii());
            let remedy = Remedy::MoveStray((key.clone(), value.clone()));
            let what =
                if key::run_of(key).is_some() { key::NO_NUMBER } else { "its key names no run" };
            self.found.push(Finding { record, what: what.into(), remedy });
        }
    }

    /// The unreadable parts of the log.
    pub(super) fn gaps(&mut self, directory: &Path, gaps: &[Gap], runs: &BTreeMap<RunId, Records>) {
        for gap in gaps {
            let record = format!("page of {}", directory.join("log/db").display());
            let cut: Vec<&str> =
                runs.keys().filter(|run| gap.cuts(run)).map(RunId::as_str).collect();
            let named = cut.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let runs = match cut.len() {
                0 => String::new(),
                1..=NAMED => format!("; events of {named} may be lost"),
                number => format!("; events of {number} runs may be lost: {named}, …"),
            };
            let what = format!("{}{runs}", gap.text(directory));
            self.found.push(Finding { record, what, remedy: Remedy::Rewrite });
        }
    }

    /// A run with an unreadable part: its readable records are counted, but not judged.
    pub(super) fn count(&mut self, records: &Records) {
        let Records { events, mail, published, summary } = records;
        self.report.runs += 1;
        self.report.records +=
            (events.len() + mail.len() + published.len() + usize::from(summary.is_some())) as u64;
    }
}
