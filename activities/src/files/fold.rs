//! The state of a project, folded from its log for the files: kept between refreshes, so that only
//! new events are read.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_backlog::EntryState;
use longhaul_engine::{Event, Position, RunId};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};
use longhaul_workflows::narrative::Kind;
use longhaul_workflows::project::FeatureView;
use longhaul_workflows::projection::LastTested;

use super::hosted::HostedSessions;
use super::project::ProjectRun;
use super::run::FeatureRun;
use super::text::{iso, one_line};
use super::timeline::{Timeline, TimelineEntry};

/// The longest text in the history, in characters.
const HISTORY_TEXT: usize = 300;

/// The folded state of a project.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) project: ProjectRun,
    pub(super) runs: BTreeMap<RunId, FeatureRun>,
    /// The sessions by their runs.
    pub(super) hosted: HostedSessions,
    pub(super) history: Timeline<HistoryItem>,
    /// Lines of the session log.
    pub(super) log: Timeline<String>,
    /// The time of the last event of the project or a feature. Those of sessions do not count: each
    /// turn of the built-in agent would change all files.
    pub(super) last_at: Option<DateTime<Utc>>,
    /// The index of each session in its run, in the order in which they started.
    numbers: BTreeMap<SessionKey, usize>,
    tested: BTreeMap<FeatureId, LastTested>,
    landed: BTreeMap<FeatureId, LastTested>,
}

/// Orders the sessions of a project by their start.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SessionKey {
    started_at: DateTime<Utc>,
    run: RunId,
    position: Position,
}

/// A session whose file is out of date.
#[derive(Debug)]
pub(super) struct UnwrittenSession {
    /// The number of its file.
    pub(super) number: usize,
    pub(super) run: RunId,
    /// Its index in the run.
    pub(super) place: usize,
}

/// An entry of the history.
#[derive(Debug)]
pub(super) struct HistoryItem {
    pub(super) feature: Option<FeatureId>,
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Fold {
    pub(super) fn new(project: RunId) -> Self {
        Self {
            project: ProjectRun::new(project),
            runs: BTreeMap::new(),
            hosted: HostedSessions::default(),
            history: Timeline::default(),
            log: Timeline::default(),
            last_at: None,
            numbers: BTreeMap::new(),
            tested: BTreeMap::new(),
            landed: BTreeMap::new(),
        }
    }

    /// Applies new events, each run's in order, and returns their timeline entries by time.
    pub(super) fn apply(&mut self, news: &[(RunId, Vec<Event>)]) -> Vec<TimelineEntry> {
        let mut entries = Vec::new();
        let (of_project, of_features): (Vec<_>, Vec<_>) =
            news.iter().partition(|(run, _)| *run == self.project.id);
        for (run, events) in of_features {
            self.apply_feature(run, events, &mut entries);
        }
        // The project's events react to those of the runs, so they come last.
        let runs = &self.runs;
        for event in of_project.into_iter().flat_map(|(_, events)| events) {
            self.project.apply(event, |view| {
                let run = view.run.as_ref().and_then(|run| runs.get(run));
                run.is_some() && view.is_blocked_by_run()
            });
            self.last_at = self.last_at.max(Some(event.at));
        }
        entries.append(&mut self.project.entries);
        for (key, passed, features) in self.project.counted.drain(..) {
            self.log.insert(key, format!("Progress: {passed}/{features}"));
        }
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        for entry in &entries {
            self.note(entry);
        }
        entries
    }

    fn apply_feature(&mut self, id: &RunId, events: &[Event], entries: &mut Vec<TimelineEntry>) {
        if !self.runs.contains_key(id) {
            let Some(run) = FeatureRun::of(&self.project.id, id) else {
                return self.apply_session(id, events, entries);
            };
            self.runs.insert(id.clone(), run);
        }
        let Some(run) = self.runs.get_mut(id) else { return };
        let sessions = run.view.sessions.len();
        for event in events {
            run.apply(event);
            self.last_at = self.last_at.max(Some(event.at));
        }
        for (place, session) in run.view.sessions.iter().enumerate().skip(sessions) {
            if !session.record.is_copied {
                let started_at = session.started_at;
                let position = session.record.position;
                self.numbers.insert(SessionKey { started_at, run: id.clone(), position }, place);
            }
        }
        for (known, found) in
            [(&mut self.tested, &run.view.tested), (&mut self.landed, &run.view.landed)]
        {
            if let Some(found) = found
                && known.get(&run.feature).is_none_or(|before| before.at <= found.at)
            {
                known.insert(run.feature.clone(), found.clone());
            }
        }
        entries.append(&mut run.entries);
    }

    /// Applies the events of a run below that of a feature, whose record they change.
    fn apply_session(&mut self, id: &RunId, events: &[Event], entries: &mut Vec<TimelineEntry>) {
        self.hosted.apply(id, events);
        let Some(run) = id.above().and_then(|above| self.runs.get_mut(&above)) else { return };
        run.apply_session(id, events);
        entries.append(&mut run.entries);
    }

    fn note(&mut self, TimelineEntry { key, feature, entry, .. }: &TimelineEntry) {
        if let Some(step) = &entry.step {
            let of = feature.as_ref().map_or_else(String::new, |feature| format!("{feature}: "));
            self.log.insert(key.clone(), format!("[{}] Completed: {of}{step}", iso(key.at)));
        }
        let text = one_line(&entry.in_full(), HISTORY_TEXT);
        self.history
            .insert(key.clone(), HistoryItem { feature: feature.clone(), kind: entry.kind, text });
    }

    /// The states of the features for the list. For passed features `last_tested` is the commit's
    /// timestamp, so re-running gates does not change the committed list.
    pub(super) fn states(&self) -> BTreeMap<FeatureId, EntryState> {
        let state = |id: &FeatureId| {
            let view = self.project.view.feature(id);
            let passes = view.is_some_and(|view| view.passes);
            let landed = self.landed.get(id).filter(|_| passes);
            EntryState {
                status: view.map_or(FeatureStatus::Pending, |view| view.status),
                passes,
                last_tested: landed
                    .or_else(|| self.tested.get(id))
                    .map(|tested| tested.text.clone()),
            }
        };
        self.project
            .view
            .backlog
            .iter()
            .map(|feature| (feature.id.clone(), state(&feature.id)))
            .collect()
    }

    /// The last change of the list: as committed, unless a feature is active or needs a person.
    pub(super) fn list_changed_at(&self) -> Option<String> {
        let is_settled = |view: &FeatureView| view.passes || view.status == FeatureStatus::Pending;
        let landed = self.landed.values().max_by_key(|landed| landed.at);
        let landed = landed.filter(|_| self.project.view.features.values().all(is_settled));
        landed.map(|landed| landed.text.clone()).or_else(|| self.last_at.map(iso))
    }

    /// The active run of a feature, if any.
    pub(super) fn running(&self, id: &FeatureId) -> Option<&FeatureRun> {
        let run = self.project.view.feature(id)?.run.as_ref()?;
        self.runs.get(run).filter(|run| !run.view.is_over)
    }

    /// The number of sessions of a feature. The project counts those of a run once it has received
    /// the outcome.
    pub(super) fn sessions_of(&self, id: &FeatureId) -> u32 {
        let Some(view) = self.project.view.feature(id) else { return 0 };
        let run = view.run.as_ref().filter(|_| view.status == FeatureStatus::InProgress);
        let under_way =
            run.and_then(|run| self.runs.get(run)).map_or(0, |run| run.view.progress.sessions);
        view.sessions + under_way
    }

    /// The sessions whose files are out of date.
    pub(super) fn unwritten_sessions(&self) -> Vec<UnwrittenSession> {
        let numbered = self.numbers.iter().zip(1..);
        let unwritten = numbered.filter(|((key, place), number)| {
            let written = self.runs.get(&key.run).and_then(|run| run.written.get(**place));
            written.is_some_and(|written| *written != Some(*number))
        });
        let session = |((key, place), number): ((&SessionKey, &usize), usize)| UnwrittenSession {
            number,
            run: key.run.clone(),
            place: *place,
        };
        unwritten.map(session).collect()
    }
}
