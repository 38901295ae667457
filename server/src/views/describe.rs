//! The description of one run: state, progress, results of its checks.

use chrono::{DateTime, Utc};
use longhaul_engine::{RunId, StoreError};
use longhaul_workflows::feature::FeatureOutcome;
use longhaul_workflows::finding::Finding;
use longhaul_workflows::projection::{
    ActivityCounts, AuditEntry, CheckRun, MailboxEntry, Segment, Session,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::View;
use super::list::RunLine;
use super::names::LatestRuns;
use super::states::Projects;
use super::usage::UsageSum;
use crate::head::RunHead;

/// The description of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeDocument {
    /// Whether a process runs this log.
    pub is_running: bool,
    /// The run, as `list` shows it.
    #[serde(flatten)]
    pub run: RunLine,
    /// The current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Sentences about obstacles to its progress; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// How many events its history has.
    pub events: u64,
    /// When its history was pruned, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_at: Option<DateTime<Utc>>,
    /// The time of its last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_at: Option<DateTime<Utc>>,
    /// Its unread messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mailbox: Vec<MailboxEntry>,
    /// Requests of people that it has taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit: Vec<AuditEntry>,
    /// The segments of its history.
    pub segments: Vec<Segment>,
    /// Its ancestors, the parent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub ancestors: Vec<RunId>,
    /// Its child runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunLine>,
    /// The commit that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its activities, by name.
    pub activities: Vec<ActivityCounts>,
    /// The sessions of its agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Session>,
    /// The results of its checks, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<CheckRun>,
    /// Findings: tampering, weak evidence, refused steering.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The cost of its sessions.
    pub cost: Cost,
}

/// The recorded cost of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// How many sessions were started; an interrupted and restarted one counts twice.
    pub sessions: usize,
    /// Seconds of agent work in finished sessions.
    pub session_seconds: f64,
    /// The turns, tokens and US dollars of the sessions of a feature, as in `longhaul usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSum>,
}

impl View<'_> {
    pub(super) async fn describe(&self, run: &RunId) -> Result<DescribeDocument, StoreError> {
        let head = RunHead::of(self.store, run)
            .await?
            .ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let view = self.feature_view(run).await?;
        let mailbox = head.mailbox();
        let findings = head.findings(&view.progress.findings);
        let pruned_at = head.summary.pruned_at();
        let line = self.line(run.clone(), head.summary).await?;
        let why =
            if line.ended_at.is_none() { self.why_run(run).await?.reasons } else { Vec::new() };
        let commit = match &view.outcome {
            Some(FeatureOutcome::Passed { commit, .. }) => Some(commit.clone()),
            Some(FeatureOutcome::Blocked { .. }) | None => None,
        };
        Ok(DescribeDocument {
            is_running: self.owner.is_running,
            step: view.progress.step().filter(|_| line.ended_at.is_none()),
            waits_for: why
                .into_iter()
                .filter(|reason| reason.kind.holds())
                .map(|reason| reason.text)
                .collect(),
            events: view.events,
            pruned_at,
            last_event_at: view.last_at,
            mailbox,
            ancestors: self.ancestors(line.parent.clone()).await?,
            children: self.children(run).await?,
            cost: cost(&view.sessions),
            run: line,
            commit,
            findings: findings.iter().map(Finding::to_string).collect(),
            audit: view.audit,
            segments: view.segments,
            activities: view.activities.into_values().collect(),
            sessions: view.sessions,
            evidence: view.checks,
        })
    }

    async fn ancestors(&self, mut above: Option<RunId>) -> Result<Vec<RunId>, StoreError> {
        let mut ancestors = Vec::new();
        while let Some(run) = above.filter(|run| !ancestors.contains(run)) {
            above = self.store.summary(&run).await?.and_then(|summary| summary.parent);
            ancestors.push(run);
        }
        Ok(ancestors)
    }

    /// The child runs: their ids are below its own.
    async fn children(&self, run: &RunId) -> Result<Vec<RunLine>, StoreError> {
        let below = self.store.runs(&format!("{run}/")).await?;
        let latest = LatestRuns::of(&below);
        let mut projects = Projects::default();
        let mut children = Vec::new();
        for (child, summary) in below {
            if summary.parent.as_ref() == Some(run) {
                let superseded_by = latest.after(&child);
                let line = self.line_by(child, summary, &mut projects).await?;
                children.push(RunLine { superseded_by, ..line });
            }
        }
        let key = |line: &RunLine| (line.started_at, line.header.run.clone());
        children.sort_by_key(key);
        Ok(children)
    }
}

/// The cost without the sessions that a fork has copied from its origin.
fn cost(sessions: &[Session]) -> Cost {
    let own = || sessions.iter().filter(|session| !session.record.is_copied);
    Cost {
        sessions: own().map(|session| session.attempts as usize).sum(),
        usage: None,
        session_seconds: own()
            .filter_map(|session| session.seconds)
            .fold(0.0, |sum, seconds| sum + seconds),
    }
}
