//! The list of runs, from summaries only: fast for any number of runs.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::{RunId, Status, StoreError, Summary};
use longhaul_workflows::projection::{MailboxEntry, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::LatestRuns;
use super::states::{Projects, RunState};
use super::{Header, View, project_and_feature};
use crate::head::{self, RunHead};
use crate::run_kind::RunKind;

/// Lists the runs that match all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRuns {
    /// Only runs of this project.
    pub project: Option<RunId>,
    /// Only runs in these states; empty: all.
    pub status: Vec<State>,
    /// Only runs that have not ended.
    #[serde(default)]
    pub is_open: bool,
    /// Only runs of this workflow.
    pub kind: Option<RunKind>,
    /// Only runs of this feature.
    pub feature: Option<String>,
    /// Only runs that began then or later.
    pub since: Option<DateTime<Utc>>,
    /// Only runs that began earlier.
    pub until: Option<DateTime<Utc>>,
    /// Only runs with all of these labels.
    pub labels: Vec<(String, String)>,
    /// Whether to include runs that a later run of their feature superseded.
    #[serde(default)]
    pub superseded: bool,
    /// How many at most.
    pub limit: usize,
    /// The cursor of the previous page.
    pub after: Option<Cursor>,
}

/// The position of a run in the list; later runs do not change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    started_at: DateTime<Utc>,
    run: RunId,
}

/// Runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListDocument {
    /// Whether a process runs this log; without one, `running` means that there is work.
    pub is_running: bool,
    /// The runs, the newest first.
    pub runs: Vec<RunLine>,
    /// How many runs match, on this page and the following ones.
    pub fitting: usize,
    /// How many superseded runs match, but are not included.
    #[serde(default)]
    pub superseded: usize,
    /// The cursor for `--after`; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// Its project, its feature, its id and its state.
    #[serde(flatten)]
    pub header: Header,
    /// Its kind: the name of its workflow.
    pub workflow: RunKind,
    /// The run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub parent: Option<RunId>,
    /// Why it makes no progress or did not pass, or the question that its agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it waits for the approval of a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_approval: bool,
    /// The last run of its feature, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub superseded_by: Option<RunId>,
    /// Requests of people that it has not taken yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<MailboxEntry>,
    /// When it continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl RunLine {
    fn of(run: RunId, summary: Summary, standing: RunState) -> Self {
        let (project, feature) = project_and_feature(&run, &summary);
        Self {
            header: Header { project, feature, run: Some(run), status: standing.state },
            workflow: RunKind::named(&summary.workflow),
            parent: summary.parent,
            reason: standing.reason,
            awaits_approval: false,
            superseded_by: None,
            pending: Vec::new(),
            until: standing.until,
            started_at: summary.started_at,
            ended_at: summary.ended_at,
            labels: summary.labels,
        }
    }

    /// The unread requests, and why it makes no progress.
    pub fn remark(&self) -> Option<String> {
        MailboxEntry::remark(&self.pending, self.reason.as_deref())
    }

    fn cursor(&self) -> Option<Cursor> {
        Some(Cursor { started_at: self.started_at, run: self.header.run.clone()? })
    }
}

impl Cursor {
    /// Parses a cursor.
    pub fn read(text: &str) -> Option<Self> {
        let (time, run) = text.split_once('_')?;
        let started_at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        Some(Self { started_at, run: RunId::new(run).ok()? })
    }

    fn text(&self) -> String {
        format!("{}_{}", self.started_at.to_rfc3339_opts(SecondsFormat::Micros, true), self.run)
    }

    /// Whether a run follows the cursor: it started earlier, or at the same time with a greater id.
    fn is_before(&self, started_at: DateTime<Utc>, run: &RunId) -> bool {
        started_at < self.started_at || (started_at == self.started_at && *run > self.run)
    }
}

impl View<'_> {
    pub(super) async fn list(&self, query: &ListRuns) -> Result<ListDocument, StoreError> {
        let prefix = query.project.as_ref().map_or("", |project| project.as_str());
        let mut runs = self.store.runs(prefix).await?;
        let latest = LatestRuns::of(&runs);
        runs.retain(|(run, summary)| query.matches(run, summary));
        runs.sort_unstable_by(|(a, one), (b, other)| {
            other.started_at.cmp(&one.started_at).then_with(|| a.cmp(b))
        });
        let mut projects = Projects::default();
        let mut lines = Vec::new();
        let mut fitting = 0;
        let mut superseded = 0;
        for (run, summary) in runs {
            let superseded_by = latest.after(&run);
            let is_hidden = superseded_by.is_some() && !query.superseded;
            let is_wanted = lines.len() < query.limit && !is_hidden;
            if !is_wanted && query.status.is_empty() {
                *(if is_hidden { &mut superseded } else { &mut fitting }) += 1;
                continue;
            }
            let line = self.line_by(run, summary, &mut projects).await?;
            let line = RunLine { superseded_by, ..line };
            let fits = query.status.is_empty() || query.status.contains(&line.header.status);
            superseded += usize::from(fits && is_hidden);
            if fits && !is_hidden {
                fitting += 1;
                if is_wanted {
                    lines.push(line);
                }
            }
        }
        let last = lines.last().filter(|_| fitting > lines.len());
        let next = last.and_then(|last: &RunLine| Some(last.cursor()?.text()));
        let is_running = self.owner.is_running;
        Ok(ListDocument { is_running, runs: lines, fitting, superseded, next })
    }

    /// The line of one run.
    pub(super) async fn line(&self, run: RunId, summary: Summary) -> Result<RunLine, StoreError> {
        let superseded_by = self.superseded_by(&run).await?;
        let line = self.line_by(run, summary, &mut Projects::default()).await?;
        Ok(RunLine { superseded_by, ..line })
    }

    /// The line of a run, with the published states of projects read once for many runs. It does
    /// not say whether a later run superseded it.
    pub(super) async fn line_by(
        &self,
        run: RunId,
        summary: Summary,
        projects: &mut Projects,
    ) -> Result<RunLine, StoreError> {
        let mut pending = Vec::new();
        let mut awaits_approval = false;
        if !summary.status.is_terminal() {
            let head = RunHead::of(self.store, &run).await?;
            pending = head.map(|head| head.pending()).unwrap_or_default();
            awaits_approval = RunKind::of(&summary) == RunKind::Feature
                && head::awaited(self.store, &run).await?.is_some();
        }
        let standing = self.standing(&run, &summary, projects).await?;
        Ok(RunLine { awaits_approval, pending, ..RunLine::of(run, summary, standing) })
    }
}

impl ListRuns {
    fn matches(&self, run: &RunId, summary: &Summary) -> bool {
        let has = |(key, value): &(String, String)| summary.labels.get(key) == Some(value);
        !(self.is_open && summary.status.is_terminal())
            && self.project.as_ref().is_none_or(|project| run.is_within(project.as_str()))
            && self.after.as_ref().is_none_or(|cursor| cursor.is_before(summary.started_at, run))
            && self.kind.as_ref().is_none_or(|kind| kind.as_str() == summary.workflow)
            && self.since.is_none_or(|since| summary.started_at >= since)
            && self.until.is_none_or(|until| summary.started_at < until)
            && self.labels.iter().all(has)
            && self
                .feature
                .as_ref()
                .is_none_or(|id| project_and_feature(run, summary).1.as_ref() == Some(id))
            && self.may_have_state(summary)
    }

    /// Whether the summary of a run allows one of the requested states.
    fn may_have_state(&self, summary: &Summary) -> bool {
        let is_asked = |state: &State| match summary.status {
            Status::Completed => matches!(state, State::Passed | State::Blocked | State::Failed),
            Status::Failed(_) => *state == State::Failed,
            Status::Cancelled => *state == State::Cancelled,
            _ => true,
        };
        self.status.is_empty() || self.status.iter().any(is_asked)
    }
}
