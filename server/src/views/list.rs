//! The list of runs, from summaries only: fast for any number of runs.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::{RunId, Status, StoreError, Summary};
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::narrative;
use longhaul_workflows::projection::{MailboxEntry, State};
use longhaul_workflows::session::SessionWorkflow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcomes::Outcomes;
use super::{Header, View, project_and_feature};
use crate::head::RunHead;
use crate::questions;

/// Filter and page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Only runs of this project.
    pub project: Option<RunId>,
    /// Only runs in these states; empty: all.
    pub status: Vec<State>,
    /// Only runs of this workflow.
    pub kind: Option<String>,
    /// Only runs of this feature.
    pub feature: Option<String>,
    /// Only runs that began then or later.
    pub since: Option<DateTime<Utc>>,
    /// Only runs that began earlier.
    pub until: Option<DateTime<Utc>>,
    /// Only runs with all of these labels.
    pub labels: Vec<(String, String)>,
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
    /// The name of its workflow.
    pub workflow: String,
    /// The run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub parent: Option<RunId>,
    /// Why it is paused, parked or failed, or the question that its agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    fn of(run: RunId, summary: Summary, status: State) -> Self {
        let (project, feature) = project_and_feature(&run, &summary);
        let (reason, until) = match &summary.status {
            Status::Waiting { until, machine } => (machine.clone(), *until),
            Status::Paused(request) => (Some(narrative::by(request).trim_start().to_owned()), None),
            Status::Parked(effect) => (Some(effect.to_string()), None),
            Status::Failed(reason) => (Some(reason.clone()), None),
            _ => (None, None),
        };
        Self {
            header: Header { project, feature, run: Some(run), status },
            workflow: summary.workflow,
            parent: summary.parent,
            reason,
            pending: Vec::new(),
            until,
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
    pub(super) async fn list(&self, query: &Query) -> Result<ListDocument, StoreError> {
        let prefix = query.project.as_ref().map_or("", |project| project.as_str());
        let mut runs = self.store.runs(prefix).await?;
        runs.retain(|(run, summary)| query.matches(run, summary));
        runs.sort_unstable_by(|(a, one), (b, other)| {
            other.started_at.cmp(&one.started_at).then_with(|| a.cmp(b))
        });
        let mut outcomes = Outcomes::default();
        let (mut lines, mut fitting) = (Vec::new(), 0);
        for (run, summary) in runs {
            let is_wanted = lines.len() < query.limit;
            if !is_wanted && query.status.is_empty() {
                fitting += 1;
                continue;
            }
            let line = self.line_by(run, summary, &mut outcomes).await?;
            if query.status.is_empty() || query.status.contains(&line.header.status) {
                fitting += 1;
                if is_wanted {
                    lines.push(line);
                }
            }
        }
        let last = lines.last().filter(|_| fitting > lines.len());
        let next = last.and_then(|last: &RunLine| Some(last.cursor()?.text()));
        Ok(ListDocument { is_running: self.is_running, runs: lines, fitting, next })
    }

    /// A line with the outcome of a feature run.
    pub(super) async fn line(&self, run: RunId, summary: Summary) -> Result<RunLine, StoreError> {
        self.line_by(run, summary, &mut Outcomes::default()).await
    }

    /// The same, with outcomes cached over many runs.
    pub(super) async fn line_by(
        &self,
        run: RunId,
        summary: Summary,
        outcomes: &mut Outcomes,
    ) -> Result<RunLine, StoreError> {
        let state = outcomes.state(self.store, &run, &summary).await?;
        let head = if state.is_over() { None } else { RunHead::of(self.store, &run).await? };
        let pending = head.map(|head| head.pending()).unwrap_or_default();
        let may_ask = [FeatureWorkflow::NAME, SessionWorkflow::NAME].contains(&&*summary.workflow);
        let question = if may_ask {
            questions::question_of(self.store, &run, &summary.status).await?
        } else {
            None
        };
        let mut line = RunLine { pending, ..RunLine::of(run, summary, state) };
        if let Some(question) = question {
            line.reason = Some(format!("asks: {} → {}", question.text.trim(), question.remedy()));
        }
        Ok(line)
    }
}

impl Query {
    fn matches(&self, run: &RunId, summary: &Summary) -> bool {
        let has = |(key, value): &(String, String)| summary.labels.get(key) == Some(value);
        self.project.as_ref().is_none_or(|project| run.is_within(project.as_str()))
            && self.after.as_ref().is_none_or(|cursor| cursor.is_before(summary.started_at, run))
            && self.kind.as_ref().is_none_or(|kind| *kind == summary.workflow)
            && self.since.is_none_or(|since| summary.started_at >= since)
            && self.until.is_none_or(|until| summary.started_at < until)
            && self.labels.iter().all(has)
            && self
                .feature
                .as_ref()
                .is_none_or(|id| project_and_feature(run, summary).1.as_ref() == Some(id))
            && self.may_stand(summary)
    }

    /// Whether the summary of a run allows one of the requested states.
    fn may_stand(&self, summary: &Summary) -> bool {
        let is_asked = |state: &State| match summary.status {
            Status::Completed => matches!(state, State::Passed | State::Blocked),
            ref status => *state == State::from(status),
        };
        self.status.is_empty() || self.status.iter().any(is_asked)
    }
}
