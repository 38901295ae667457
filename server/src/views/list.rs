//! The runs of all projects, by their summaries alone: quick, however many there are.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::{RunId, Status, StoreError, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcomes::Outcomes;
use super::{View, belongs};
use crate::pending::Pending;

/// Which runs, and how many of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Only runs of this project.
    pub project: Option<RunId>,
    /// The states, as they are shown; none: all.
    pub status: Vec<String>,
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
    /// Where the page before ended.
    pub after: Option<Cursor>,
}

/// The place of a run in the list; what began later does not move it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    started_at: DateTime<Utc>,
    run: RunId,
}

/// Runs, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListDocument {
    /// Whether a process runs this log now; without one, `running` says that there is something to do.
    pub is_running: bool,
    /// The runs, the newest first.
    pub runs: Vec<RunLine>,
    /// How many runs fit, on this page and on those behind it.
    pub fitting: usize,
    /// What `--after` takes to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// The id of the run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// The name of its workflow.
    pub workflow: String,
    /// The id of the project that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The feature that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// The run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub parent: Option<RunId>,
    /// `running`, `waiting`, `paused`, `parked`, `completed`, `passed`, `blocked`, `failed` or `cancelled`.
    pub status: String,
    /// Why it is paused, parked or failed, or what it was told and has not taken yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Only runs with all of these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl RunLine {
    fn of(run: RunId, summary: Summary) -> Self {
        let (project, feature) = belongs(&run, &summary);
        let (reason, until) = match &summary.status {
            Status::Waiting { until, machine } => (machine.clone(), *until),
            Status::Paused(request) if request.why.is_empty() => (Some(format!("by {}", request.by)), None),
            Status::Paused(request) => (Some(format!("by {}: {}", request.by, request.why)), None),
            Status::Parked(effect) => (Some(effect.to_string()), None),
            Status::Failed(reason) => (Some(reason.clone()), None),
            _ => (None, None),
        };
        Self {
            run,
            workflow: summary.workflow,
            project,
            feature,
            parent: summary.parent,
            status: summary.status.name().into(),
            reason,
            until,
            started_at: summary.started_at,
            ended_at: summary.ended_at,
            labels: summary.labels,
        }
    }

    fn cursor(&self) -> Cursor {
        Cursor { started_at: self.started_at, run: self.run.clone() }
    }
}

impl Cursor {
    /// Reads what `next` gave.
    pub fn read(text: &str) -> Option<Self> {
        let (time, run) = text.split_once('_')?;
        let started_at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        Some(Self { started_at, run: RunId::new(run).ok()? })
    }

    fn text(&self) -> String {
        format!("{}_{}", self.started_at.to_rfc3339_opts(SecondsFormat::Micros, true), self.run)
    }

    /// Whether a run comes later in the list: it began earlier, or its id comes later.
    fn is_before(&self, started_at: DateTime<Utc>, run: &RunId) -> bool {
        started_at < self.started_at || (started_at == self.started_at && *run > self.run)
    }
}

impl View<'_> {
    pub(super) async fn list(&self, query: &Query) -> Result<ListDocument, StoreError> {
        let prefix = query.project.as_ref().map_or("", |project| project.as_str());
        let mut runs = self.store.runs(prefix).await?;
        runs.retain(|(run, summary)| query.fits(run, summary));
        runs.sort_unstable_by(|(a, one), (b, other)| other.started_at.cmp(&one.started_at).then_with(|| a.cmp(b)));
        let mut outcomes = Outcomes::default();
        let (mut lines, mut fitting) = (Vec::new(), 0);
        for (run, summary) in runs {
            let is_wanted = lines.len() < query.limit;
            if !is_wanted && query.status.is_empty() {
                fitting += 1;
                continue;
            }
            let line = self.line_by(run, summary, &mut outcomes).await?;
            if query.status.is_empty() || query.status.contains(&line.status) {
                fitting += 1;
                if is_wanted {
                    lines.push(line);
                }
            }
        }
        let next = lines.last().filter(|_| fitting > lines.len()).map(|last: &RunLine| last.cursor().text());
        Ok(ListDocument { is_running: self.is_running, runs: lines, fitting, next })
    }

    /// A line with what the run of a feature came to.
    pub(super) async fn line(&self, run: RunId, summary: Summary) -> Result<RunLine, StoreError> {
        self.line_by(run, summary, &mut Outcomes::default()).await
    }

    /// The same for one of many.
    pub(super) async fn line_by(
        &self,
        run: RunId,
        summary: Summary,
        outcomes: &mut Outcomes,
    ) -> Result<RunLine, StoreError> {
        let state = outcomes.state(self.store, &run, &summary).await?;
        let mut line = RunLine::of(run, summary);
        state.clone_into(&mut line.status);
        if line.ended_at.is_none() {
            let pending = Pending::of(self.store, &line.run).await?;
            line.reason = pending.words(self.is_running).or(line.reason);
        }
        Ok(line)
    }
}

impl Query {
    fn fits(&self, run: &RunId, summary: &Summary) -> bool {
        let has = |(key, value): &(String, String)| summary.labels.get(key) == Some(value);
        self.project.as_ref().is_none_or(|project| run.is_within(project.as_str()))
            && self.after.as_ref().is_none_or(|cursor| cursor.is_before(summary.started_at, run))
            && self.kind.as_ref().is_none_or(|kind| *kind == summary.workflow)
            && self.since.is_none_or(|since| summary.started_at >= since)
            && self.until.is_none_or(|until| summary.started_at < until)
            && self.labels.iter().all(has)
            && self.feature.as_ref().is_none_or(|id| belongs(run, summary).1.as_ref() == Some(id))
            && self.may_stand(summary)
    }

    /// Whether a run may be shown in one of the states that are asked for.
    fn may_stand(&self, summary: &Summary) -> bool {
        let name = summary.status.name();
        let is_asked =
            |state: &String| state == name || (name == "completed" && (state == "passed" || state == "blocked"));
        self.status.is_empty() || self.status.iter().any(is_asked)
    }
}
