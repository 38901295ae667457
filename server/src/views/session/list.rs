//! The sessions of a project, a feature or a run.

use chrono::{DateTime, Utc};
use longhaul_engine::{RunId, Status, StoreError, Summary};
use longhaul_workflows::contracts::Usage;
use longhaul_workflows::projection::{SessionCondition, SessionState, SessionView};
use longhaul_workflows::session::{SessionPhase, SessionProgress};
use longhaul_workflows::settings::Driver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{View, project_and_feature};
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::views::Name;

/// Lists sessions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListSessions {
    /// The project, feature, run or session; absent: all.
    pub within: Option<Name>,
}

/// Sessions, in the order of their start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsDocument {
    /// Whether a process runs this log.
    pub is_running: bool,
    /// The sessions.
    pub sessions: Vec<SessionLine>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionLine {
    /// The id of its run.
    pub id: String,
    /// Its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// Its state.
    pub state: SessionState,
    /// Of a session of the built-in agent at work, its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<SessionPhase>,
    /// The driver that runs it.
    pub driver: Driver,
    /// The model, as its provider or its agent names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The answers of the model, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Its tokens, if they are counted, with those of its sub-agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Usage>,
    /// The filled share of its context window, from 0 to 1, if that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_share: Option<f64>,
    /// Its open question to a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The reason of its failure or interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

impl SessionLine {
    /// A session of the built-in agent, from its published progress; `None`: its history tells
    /// more.
    fn of_progress(run: &RunId, summary: &Summary, progress: &SessionProgress) -> Option<Self> {
        let condition = match (&summary.status, &progress.ending) {
            (Status::Completed, ending) => SessionCondition::of(ending.as_ref()?),
            (Status::Failed(reason), _) => SessionCondition::failed(reason),
            (Status::Cancelled, _) => SessionState::Interrupted.without_failure(),
            _ => SessionState::Working.without_failure(),
        };
        let mut line = Self::new(run, summary, Driver::Api, condition);
        line.take_progress(progress);
        Some(line)
    }

    /// The session of a run.
    pub(super) fn of(run: &RunId, summary: &Summary, view: &SessionView) -> Self {
        let mut line = Self::new(run, summary, view.driver(), view.condition());
        if view.driver() == Driver::Api {
            line.take_progress(&view.progress);
        } else if let Some(stated) = view.uses.last() {
            line.model = Some(stated.model.clone()).filter(|model| !model.is_empty());
            line.turns = Some(stated.turns).filter(|turns| *turns > 0);
            line.tokens = Some(stated.usage).filter(|usage| !usage.is_zero());
            line.take_window(&view.progress);
        }
        line
    }

    fn new(run: &RunId, summary: &Summary, driver: Driver, condition: SessionCondition) -> Self {
        let SessionCondition { state, failure } = condition;
        let (project, feature) = project_and_feature(run, summary);
        Self {
            id: run.to_string(),
            project,
            feature,
            state,
            phase: None,
            driver,
            model: None,
            turns: None,
            tokens: None,
            window_share: None,
            question: None,
            failure,
            started_at: summary.started_at,
            ended_at: summary.ended_at,
        }
    }

    fn take_progress(&mut self, progress: &SessionProgress) {
        if self.state == SessionState::Working {
            self.phase = Some(progress.phase);
            self.question.clone_from(&progress.question);
        }
        if !progress.model.is_empty() {
            self.model = Some(progress.model.clone());
        }
        self.turns = Some(progress.turns);
        self.tokens = Some(progress.usage);
        self.take_window(progress);
    }

    fn take_window(&mut self, progress: &SessionProgress) {
        self.window_share = (progress.window.size > 0)
            .then(|| (progress.window.share(0) * 1000.0).round() / 1000.0);
    }
}

impl View<'_> {
    pub(in crate::views) async fn sessions(
        &self,
        list: &ListSessions,
    ) -> Result<SessionsDocument, RequestError> {
        let within = self.scope(list.within.as_ref()).await?;
        let runs = self.within(&within).await?;
        let mut lines = Vec::new();
        for (run, summary) in &runs {
            if RunKind::of(summary) == RunKind::Session && summary.pruned_at().is_none() {
                lines.push(self.session_line(run, summary).await?);
            }
        }
        lines.sort_by(|one, other| {
            one.started_at.cmp(&other.started_at).then_with(|| one.id.cmp(&other.id))
        });
        Ok(SessionsDocument { is_running: self.owner.is_running, sessions: lines })
    }

    /// The line of a session. The history of the built-in agent is long, that of another one short.
    async fn session_line(
        &self,
        run: &RunId,
        summary: &Summary,
    ) -> Result<SessionLine, StoreError> {
        let published = self.store.published(run).await?;
        let progress = published.get(SessionProgress::KEY).and_then(|value| value.read().ok());
        let line = progress.and_then(|known| SessionLine::of_progress(run, summary, &known));
        if let Some(line) = line {
            return Ok(line);
        }
        let view = SessionView::of(&self.store.read(run, 0).await?);
        Ok(SessionLine::of(run, summary, &view))
    }
}
