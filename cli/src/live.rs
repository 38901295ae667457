//! The live display of projects at work: a total line, the projects, and their sessions, folded to
//! the height of the terminal.

mod draw;
mod estimate;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use longhaul_server::Client;
use longhaul_server::RunKind;
use longhaul_server::status::{FeatureLine, StatusDocument};
use longhaul_server::views::ListRuns;
use longhaul_server::views::activity::{ReadPosition, RunActivity, ShowActivity};
use longhaul_workflows::projection::State;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::term::inline;
use estimate::Durations;

/// The interval between two drawings without news.
const TICK: Duration = Duration::from_secs(1);
/// The most sessions whose output is requested.
const SESSIONS: usize = 64;
/// How many past features of a project give the expected duration of the next ones.
const PAST: usize = 50;

/// The live display.
pub(crate) struct Live {
    view: View,
    drawn: Option<(Instant, (u16, u16))>,
    /// When the activity of the runs was last read.
    refreshed: Option<Instant>,
    /// The process continues after a stop.
    continued: Option<Signal>,
}

/// The content of the display.
pub(crate) struct View {
    begun: DateTime<Utc>,
    projects: Vec<Project>,
    activities: BTreeMap<RunId, RunActivity>,
    /// How many projects there will be.
    expected: usize,
}

/// A project of the display.
struct Project {
    document: StatusDocument,
    durations: Durations,
    /// Whether the past features were requested.
    has_past: bool,
}

impl Live {
    /// Opens the display, if standard error is a terminal.
    pub(crate) fn open(expected: usize) -> Option<Self> {
        inline::open().then(|| Self {
            view: View::new(expected, Utc::now()),
            drawn: None,
            refreshed: None,
            continued: signal(SignalKind::from_raw(nix::libc::SIGCONT)).ok(),
        })
    }

    /// Takes the status of a project.
    pub(crate) fn show(&mut self, document: &StatusDocument) {
        self.view.show(document, Utc::now());
        self.drawn = None;
    }

    /// Draws the display if there is news, or if a second has passed.
    pub(crate) async fn tick(&mut self, client: &Client) {
        if self.refreshed.is_none_or(|refreshed| refreshed.elapsed() >= TICK) {
            self.refreshed = Some(Instant::now());
            self.view.refresh(client).await;
        }
        let size = inline::size();
        if self.has_continued() {
            inline::forget();
            self.drawn = None;
        }
        let is_current = |(at, of): &(Instant, _)| at.elapsed() < TICK && *of == size;
        if self.drawn.as_ref().is_some_and(is_current) {
            return;
        }
        self.drawn = Some((Instant::now(), size));
        inline::draw(&self.view.draw(size, Utc::now()), size.0, size.1);
    }

    fn has_continued(&mut self) -> bool {
        use futures_util::FutureExt;
        self.continued.as_mut().is_some_and(|signal| signal.recv().now_or_never().is_some())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        inline::close();
    }
}

impl View {
    fn new(expected: usize, begun: DateTime<Utc>) -> Self {
        Self { begun, projects: Vec::new(), activities: BTreeMap::new(), expected }
    }

    fn show(&mut self, document: &StatusDocument, now: DateTime<Utc>) {
        let known =
            self.projects.iter_mut().find(|known| known.document.project == document.project);
        let Some(project) = known else {
            self.projects.push(Project {
                document: document.clone(),
                durations: Durations::default(),
                has_past: false,
            });
            return;
        };
        for (before, after) in project.document.features.iter().zip(&document.features) {
            if before.id == after.id && after.passes && !before.passes {
                let activity = before.run.as_ref().and_then(|run| self.activities.remove(run));
                if let Some(began) = activity.map(|activity| activity.started_at) {
                    project.durations.add(now - began);
                }
            }
        }
        project.document = document.clone();
    }

    /// Requests the activity of the runs, and the durations of past features.
    async fn refresh(&mut self, client: &Client) {
        let seen = self.projects.iter().flat_map(|project| active(&project.document));
        let seen = seen.filter_map(|line| line.run.clone()).take(SESSIONS).map(|run| {
            let known = self.activities.get(&run);
            let conversation = known.and_then(|known| known.seen.conversation.clone());
            ReadPosition { run, conversation }
        });
        let runs: Vec<ReadPosition> = seen.collect();
        if !runs.is_empty()
            && let Ok(activities) = client.call(ShowActivity { runs }).await
        {
            let mut before = std::mem::take(&mut self.activities);
            for mut activity in activities {
                let last = before.remove(&activity.seen.run);
                let last = last.filter(|last| last.since == activity.since);
                activity.last_line = activity.last_line.or(last.and_then(|last| last.last_line));
                self.activities.insert(activity.seen.run.clone(), activity);
            }
        }
        for project in self.projects.iter_mut().filter(|project| !project.has_past) {
            project.has_past = true;
            let query = ListRuns {
                project: RunId::new(project.document.project.clone()).ok(),
                status: vec![State::Passed],
                kind: Some(RunKind::Feature),
                limit: PAST,
                ..ListRuns::default()
            };
            if let Ok(past) = client.call(query).await {
                let ended = past.runs.iter().filter_map(|run| Some(run.ended_at? - run.started_at));
                ended.for_each(|duration| project.durations.add(duration));
            }
        }
    }
}

/// The features that are worked on.
fn active(document: &StatusDocument) -> impl Iterator<Item = &FeatureLine> {
    let lines = document.features.iter().filter(|line| line.step.is_some() && line.run.is_some());
    lines.filter(|line| !line.waits_for_place)
}
