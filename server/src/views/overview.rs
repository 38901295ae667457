//! All projects in one table.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use longhaul_engine::{RunId, Summary};
use longhaul_workflows::projection::{MailboxEntry, ProjectState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::View;
use super::usage::{ShowUsage, UsageBy, UsageDocument};
use crate::perform::request;
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::status::{self, Counts, StatusDocument};
use longhaul_activities::prices::Prices;

/// The most runs whose histories are read for the cost of the projects.
const MOST_COUNTED: usize = 5000;

/// Requests the states of projects.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Overview {
    /// The projects; empty: all of the log.
    pub projects: Vec<RunId>,
}

/// The states of projects, those that need a person first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverviewDocument {
    /// Whether a process runs this log.
    pub is_running: bool,
    /// The projects.
    pub projects: Vec<ProjectLine>,
    /// Feature counts of all these projects.
    pub total: Counts,
}

/// The state of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectLine {
    /// The id of the project.
    pub project: String,
    /// The top of its checkout.
    pub root: String,
    /// Its state.
    pub status: ProjectState,
    /// Whether a person has to act, although other features may still progress.
    pub needs_person: bool,
    /// Feature counts by state.
    pub counts: Counts,
    /// The cost in US dollars, as far as it is known; absent if none is, if the price list is
    /// invalid, or if the log has too many runs to count it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The time of its first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// Why it makes no progress, or what needs a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Requests of people that the project and its features have not taken yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<MailboxEntry>,
}

request!(Overview, "overview" -> OverviewDocument, |self, service| {
    // A wrong price list is reported by `longhaul usage`; here the cost is then unknown.
    let prices = Prices::load(service.log.directory()).ok();
    service.view().overview(&self.projects, prices.as_ref()).await
});

impl ProjectLine {
    /// The line of a project.
    pub fn of(document: &StatusDocument) -> Self {
        Self {
            project: document.project.clone(),
            root: document.root.clone(),
            status: document.status,
            needs_person: document.needs_person(),
            counts: document.counts,
            cost_usd: None,
            started_at: None,
            reason: document.reason.clone(),
            pending: document.all_pending(),
        }
    }

    /// The unread requests, and why it makes no progress.
    pub fn remark(&self) -> Option<String> {
        let pending = self.pending.iter().map(|entry| match &entry.action.feature {
            Some(feature) => format!("pending for {feature}: {}", entry.action),
            None => format!("pending: {}", entry.action),
        });
        let parts: Vec<String> = pending.chain(self.reason.clone()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The order in the table: those that need a person first, then those with work left.
    fn rank(&self) -> (Reverse<bool>, u8, &str) {
        let rank = match self.status {
            ProjectState::NeedsAttention => 0,
            ProjectState::Paused => 1,
            ProjectState::Running => 2,
            ProjectState::Waiting => 3,
            ProjectState::Cancelled => 4,
            ProjectState::Done => 5,
        };
        (Reverse(self.needs_person), rank, &self.project)
    }
}

impl OverviewDocument {
    /// The table of these projects.
    pub fn of(is_running: bool, mut projects: Vec<ProjectLine>) -> Self {
        projects.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let total = projects.iter().map(|line| line.counts).sum();
        Self { is_running, projects, total }
    }
}

impl View<'_> {
    async fn overview(
        &self,
        projects: &[RunId],
        prices: Option<&Prices>,
    ) -> Result<OverviewDocument, RequestError> {
        let runs = self.store.runs("").await?;
        let costs = match prices {
            Some(prices) if runs.len() <= MOST_COUNTED => {
                self.usage(&ShowUsage { within: None, by: UsageBy::Project }, prices).await?
            }
            _ => UsageDocument::default(),
        };
        let is_shown = |(run, summary): &&(RunId, Summary)| {
            RunKind::of(summary) == RunKind::Project
                && (projects.is_empty() || projects.contains(run))
        };
        let mut lines = Vec::new();
        for (run, summary) in runs.iter().filter(is_shown) {
            let mut document = status::brief(self.store, run, &self.owner).await?;
            document.read_landing().await;
            let cost = costs.rows.iter().find(|row| row.name == run.as_str());
            lines.push(ProjectLine {
                cost_usd: cost.and_then(|row| row.sum.cost_usd),
                started_at: Some(summary.started_at),
                ..ProjectLine::of(&document)
            });
        }
        Ok(OverviewDocument::of(self.owner.is_running, lines))
    }
}
