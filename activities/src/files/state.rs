//! The state of a projector between refreshes, and the writing of all files.

use std::collections::HashMap;
use std::path::PathBuf;

use longhaul_engine::{Event, Position, RunId, Summary};

use super::error::{FilesError, FirstError};
use super::fold::{Fold, UnwrittenSession};
use super::list::ListFile;
use super::place::ProjectRoot;
use super::progress_file::ProgressFile;
use super::reports;
use super::session::Record;

/// The read position of each run.
#[derive(Debug, Default)]
pub(super) struct Cursors(HashMap<RunId, Cursor>);

#[derive(Debug, Default)]
struct Cursor {
    next: Position,
    /// The summary of a run that had ended before it was read to the end: while it is unchanged,
    /// there is nothing to read.
    over: Option<Summary>,
}

impl Cursors {
    /// The position of the next event of a run.
    pub(super) fn next(&self, run: &RunId) -> Position {
        self.0.get(run).map_or(0, |cursor| cursor.next)
    }

    /// Whether all events of a run with this summary have been read.
    pub(super) fn have_all_of(&self, run: &RunId, summary: &Summary) -> bool {
        self.0.get(run).is_some_and(|cursor| cursor.over.as_ref() == Some(summary))
    }
}

/// The new events of the log.
#[derive(Debug, Default)]
pub(super) struct NewEvents {
    events: Vec<(RunId, Vec<Event>)>,
    over: Vec<(RunId, Summary)>,
}

impl NewEvents {
    /// Adds the new events of a run, and its summary if that was terminal before they were read.
    pub(super) fn add(&mut self, run: RunId, events: Vec<Event>, over: Option<Summary>) {
        self.over.extend(over.map(|over| (run.clone(), over)));
        if !events.is_empty() {
            self.events.push((run, events));
        }
    }
}

/// The state of a projector.
#[derive(Debug)]
pub(super) struct State {
    pub(super) cursors: Cursors,
    fold: Fold,
    place: ProjectRoot,
    list: ListFile,
    progress_file: ProgressFile,
    /// Whether files in `.longhaul/` may be out of date.
    stale: bool,
}

impl State {
    pub(super) fn new(project: RunId, root: PathBuf) -> Self {
        Self {
            cursors: Cursors::default(),
            fold: Fold::new(project),
            place: ProjectRoot { root },
            list: ListFile::default(),
            progress_file: ProgressFile::default(),
            stale: true,
        }
    }

    /// Whether the list was edited after it was replaced.
    pub(super) fn has_late_edit(&mut self) -> bool {
        self.list.has_late_edit()
    }

    /// Applies new events and updates the files.
    pub(super) fn take(&mut self, news: NewEvents) -> Result<(), FilesError> {
        self.apply(news);
        let mut first = FirstError::default();
        first.take(self.progress_file.append(&self.place));
        if let Some(view) =
            self.fold.project.view.summary.as_ref().filter(|view| !view.list_file.is_empty())
        {
            let now = self.fold.list_changed_at().unwrap_or_default();
            first.take(self.list.update(&self.place, &view.list_file, &now));
        }
        if self.stale {
            let written = [self.write_reports(&mut first), self.write_sessions(&mut first)];
            self.stale = written.contains(&false);
        }
        first.into_result()
    }

    fn apply(&mut self, news: NewEvents) {
        if !news.events.is_empty() {
            let entries = self.fold.apply(&news.events);
            self.progress_file.take(&entries);
            self.list.set(self.fold.states());
            self.stale = true;
        }
        for (run, events) in news.events {
            if let Some(last) = events.last() {
                self.cursors.0.insert(run, Cursor { next: last.position + 1, over: None });
            }
        }
        for (run, summary) in news.over {
            self.cursors.0.entry(run).or_default().over = Some(summary);
        }
    }

    fn write_reports(&self, first: &mut FirstError) -> bool {
        let files = [
            ("state.json", reports::state(&self.fold)),
            ("progress.md", reports::progress(&self.fold)),
            ("session-log.txt", reports::session_log(&self.fold)),
            ("history.json", reports::history(&self.fold)),
        ];
        let mut all = true;
        for (name, text) in files {
            if let Some(text) = text {
                all &= first.take(self.place.write_own(name, &text));
            }
        }
        all
    }

    fn write_sessions(&mut self, first: &mut FirstError) -> bool {
        let mut all = true;
        for UnwrittenSession { number, run, place } in self.fold.unwritten_sessions() {
            let Some(run) = self.fold.runs.get_mut(&run) else { continue };
            let session = &run.view.sessions[place];
            let hosted = self.fold.hosted.get(&session.run);
            let record = Record::of(run, session, hosted);
            let name = format!("sessions/session-{number:03}.json");
            let is_written = first.take(self.place.write_own(&name, &reports::json(&record)));
            run.written[place] = is_written.then_some(number);
            all &= is_written;
        }
        all
    }
}
