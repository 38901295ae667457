//! The history of a run, in pages.

use chrono::{DateTime, Utc};
use longhaul_engine::{Position, RunId, StoreError};
use longhaul_storage::history_file;
use longhaul_workflows::narrative;
use longhaul_workflows::projection::RunView;
use serde::{Deserialize, Serialize};

use super::{Name, View};
use crate::pruned;
use crate::request::RequestError;

/// Events per page.
const PAGE: usize = 1000;

/// Which events of which run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowHistory {
    /// The run, or a feature: then its last run.
    pub name: Name,
    /// The first event.
    pub from: Position,
    /// Whether to include the events in the format of a history file.
    pub lines: bool,
}

/// Some of the events of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The run.
    pub run: RunId,
    /// Its events from the requested position.
    pub events: Vec<HistoryEntry>,
    /// Whether there are later events.
    pub more: bool,
    /// Whether the run is closed.
    pub is_over: bool,
    /// Whether a process runs it.
    pub is_running: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Its position in the history.
    pub position: Position,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// A description for people; empty for bookkeeping of replay.
    pub words: String,
    /// In the format of a history file, if requested.
    pub line: Option<String>,
}

impl View<'_> {
    /// A page of a history, or why it is unavailable.
    pub(super) async fn history(
        &self,
        run: &RunId,
        query: &ShowHistory,
    ) -> Result<HistoryPage, RequestError> {
        // Read the state first, so that events appended meanwhile are on the next page.
        let summary =
            self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        if let Some(at) = summary.pruned_at() {
            return Err(RequestError::refused(pruned::refusal(run, at)));
        }
        let mut view = RunView::default();
        let mut shown = Vec::new();
        let mut more = false;
        for event in &self.store.read(run, 0).await? {
            let entries = narrative::entries(event, &view);
            view.apply(event);
            if event.position < query.from {
                continue;
            }
            if shown.len() == PAGE {
                more = true;
                break;
            }
            let words: Vec<String> = entries.into_iter().map(|entry| entry.text).collect();
            let words = words.join("; ");
            let line = query.lines.then(|| history_file::event_line(event)).transpose();
            let line = line.map_err(|error| StoreError::Unusable(format!("run {run}: {error}")))?;
            shown.push(HistoryEntry { position: event.position, at: event.at, words, line });
        }
        let is_over = summary.status.is_terminal();
        Ok(HistoryPage {
            run: run.clone(),
            events: shown,
            more,
            is_over,
            is_running: self.owner.runs(run),
        })
    }
}
