//! One run of a feature for the files.

use longhaul_engine::{Event, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::feature::FeatureRunId;
use longhaul_workflows::narrative::{self, Kind};
use longhaul_workflows::projection::{RunView, Session};

use super::timeline::{Key, TimelineEntry};

/// A run of a feature.
#[derive(Debug)]
pub(super) struct FeatureRun {
    pub(super) id: RunId,
    pub(super) feature: FeatureId,
    /// The prefix of its session ids: `login-2`.
    label: String,
    pub(super) view: RunView,
    /// By session index, the number of the file that is up to date; `None`: none is.
    pub(super) written: Vec<Option<usize>>,
    /// The entries since they were last taken.
    pub(super) entries: Vec<TimelineEntry>,
}

impl FeatureRun {
    /// The run, if the id is that of a feature's run: `<project>/<feature>/<n>`.
    pub(super) fn of(project: &RunId, run: &RunId) -> Option<Self> {
        let id = FeatureRunId::of(run).filter(|id| id.is_of(project.as_str()))?;
        (id.run().as_ref() == Some(run)).then(|| Self {
            id: run.clone(),
            label: format!("{}-{}", id.feature, id.number),
            feature: id.feature,
            view: RunView::default(),
            written: Vec::new(),
            entries: Vec::new(),
        })
    }

    /// Applies the next event.
    pub(super) fn apply(&mut self, event: &Event) {
        // The run that copied events come from has already reported them.
        let is_copied = self.view.is_copied(event);
        let entries = if is_copied { Vec::new() } else { narrative::entries(event, &self.view) };
        let last = self.view.sessions.len().saturating_sub(1);
        self.view.apply(event);
        // The last session changes with each event, so its file is written again.
        self.written.truncate(last);
        self.written.resize(self.view.sessions.len(), None);
        // The files do not show the evidence, and the output of months would fill the memory.
        self.view.checks.clear();
        let session = self
            .view
            .session()
            .map_or_else(|| self.label.clone(), |session| self.session_id(session));
        let entries = entries.into_iter().filter(|entry| entry.kind != Kind::Detail);
        let id = self.id.clone();
        self.note(&id, event, &session, entries);
    }

    /// Appends what an event of a run adds to the timeline.
    fn note(
        &mut self,
        run: &RunId,
        event: &Event,
        session: &str,
        entries: impl Iterator<Item = narrative::Entry>,
    ) {
        self.entries.extend(entries.zip(0..).map(|(entry, nth)| TimelineEntry {
            key: Key { at: event.at, run: run.clone(), position: event.position, nth },
            feature: Some(self.feature.clone()),
            session: session.to_owned(),
            entry,
        }));
    }

    /// Applies events of the run of a session.
    pub(super) fn apply_session(&mut self, id: &RunId, events: &[Event]) {
        let place = self.view.sessions.iter().rposition(|session| session.run == id.as_str());
        let Some(place) = place else { return };
        if let Some(written) = self.written.get_mut(place) {
            *written = None;
        }
        // The events of a session are described without the state of its feature.
        let nothing = RunView::default();
        for event in events {
            self.view.sessions[place].apply(event);
            let entries = narrative::entries(event, &nothing).into_iter().filter(|entry| {
                matches!(
                    entry.kind,
                    Kind::SessionStarted | Kind::SessionFailed | Kind::Parked | Kind::Reconciled
                )
            });
            let session = self.session_id(&self.view.sessions[place]);
            self.note(id, event, &session, entries);
        }
    }

    /// The id of a session: `login-1-s2`, or `login-1-r2-s1` after a restart of the run.
    pub(super) fn session_id(&self, session: &Session) -> String {
        let segment = session.record.segment;
        let again = if segment > 1 { format!("-r{segment}") } else { String::new() };
        format!("{}{again}-s{}", self.label, session.number)
    }
}
