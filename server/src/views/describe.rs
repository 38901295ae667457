//! Everything about one run.

use chrono::{DateTime, Utc};
use longhaul_engine::{Message, RunId, StoreError};
use longhaul_workflows::feature::FeatureOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Activity, Evidence, Facts, Segment, Session};
use super::list::RunLine;
use super::outcomes::Outcomes;
use super::{Told, View, told};
use crate::{findings, pruned};

/// A run: where it stands, and what was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DescribeDocument {
    /// Whether a process runs this log now.
    pub is_running: bool,
    /// The run, as `list` shows it.
    #[serde(flatten)]
    pub run: RunLine,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why it does not go on just now, in plain words; absent if nothing holds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// How many events its history has.
    pub events: u64,
    /// When its history was let go of, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_at: Option<String>,
    /// When something was last recorded of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_at: Option<DateTime<Utc>>,
    /// Messages that it has not taken yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mailbox: Vec<Waiting>,
    /// What people told it, and it has taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Told>,
    /// How its history began, and began anew.
    pub segments: Vec<Segment>,
    /// The runs above it, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub ancestors: Vec<RunId>,
    /// The runs that it has started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunLine>,
    /// The commit that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its activities, by name.
    pub activities: Vec<Activity>,
    /// The sessions of its agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Session>,
    /// The results of its checks, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What a person should know of it: tampering, weak evidence, refused steering.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What its sessions cost.
    pub cost: Cost,
}

/// A message in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Since when.
    pub at: DateTime<Utc>,
    /// `pause`, `resume`, `cancel`, `terminate`, `reconcile`, `child_ended`, or the name of a signal.
    pub what: String,
    /// Who sent it; absent if nobody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Waiting {
    fn of(message: &Message) -> Self {
        let (by, why) = told::request(&message.body).map(|request| (request.by, request.why)).unzip();
        let why = why.filter(|why| !why.is_empty());
        Self { at: message.at, what: told::what(&message.body), by, why }
    }
}

/// What a run has cost so far, as far as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// How many were started; one that was cut and begun afresh counts twice.
    pub sessions: usize,
    /// How long agents worked in sessions that are over.
    pub session_seconds: f64,
    /// US dollars; absent where no agent said anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl View<'_> {
    pub(super) async fn describe(&self, run: &RunId) -> Result<DescribeDocument, StoreError> {
        let summary = self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let facts = Facts::of(&self.store.read(run, 0).await?);
        let pruned_at = pruned::at(&summary);
        let line = self.line(run.clone(), summary).await?;
        let why = if line.ended_at.is_none() { self.why_run(run).await?.reasons } else { Vec::new() };
        let mailbox = self.store.mailbox(run).await?.into_iter();
        let outcome = facts.output.as_ref().and_then(|output| output.read::<FeatureOutcome>().ok());
        let findings = findings::texts(&findings::of_run(self.store, run, facts.output.as_ref()).await?);
        let (commit, blocked) = match outcome {
            Some(FeatureOutcome::Passed { commit, .. }) => (Some(commit), None),
            Some(FeatureOutcome::Blocked { reason, .. }) => (None, Some(reason)),
            None => (None, None),
        };
        Ok(DescribeDocument {
            is_running: self.is_running,
            step: facts.step.clone().filter(|_| line.ended_at.is_none()),
            waits_for: why.into_iter().filter(|reason| reason.kind.holds()).map(|reason| reason.text).collect(),
            events: facts.events,
            pruned_at,
            last_event_at: facts.last_at,
            mailbox: mailbox.map(|message| Waiting::of(&message)).collect(),
            ancestors: self.ancestors(line.parent.clone()).await?,
            children: self.children(run).await?,
            cost: cost(&facts.sessions),
            run: RunLine { reason: line.reason.clone().or(blocked), ..line },
            commit,
            told: facts.told,
            segments: facts.segments,
            activities: facts.activities.into_values().collect(),
            sessions: facts.sessions,
            evidence: facts.evidence,
            findings,
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

    /// The runs that this one started: their ids are below its own.
    async fn children(&self, run: &RunId) -> Result<Vec<RunLine>, StoreError> {
        let below = self.store.runs(&format!("{run}/")).await?;
        let mut outcomes = Outcomes::default();
        let mut children = Vec::new();
        for (child, summary) in below {
            if summary.parent.as_ref() == Some(run) {
                children.push(self.line_by(child, summary, &mut outcomes).await?);
            }
        }
        children.sort_by(|one, other| one.started_at.cmp(&other.started_at).then_with(|| one.run.cmp(&other.run)));
        Ok(children)
    }
}

fn cost(sessions: &[Session]) -> Cost {
    let dollars: Vec<f64> = sessions.iter().filter_map(|session| session.cost_usd).collect();
    Cost {
        sessions: sessions.iter().map(|session| session.attempts as usize).sum(),
        session_seconds: sessions.iter().filter_map(|session| session.seconds).fold(0.0, |sum, seconds| sum + seconds),
        usd: (!dollars.is_empty()).then(|| dollars.iter().sum()),
    }
}
