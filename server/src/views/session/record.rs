//! The record of one session.

use chrono::{DateTime, Utc};
use longhaul_engine::{Position, StoreError};
use longhaul_workflows::contracts::SessionReason;
use longhaul_workflows::projection::{RunView, Session, Step};
use longhaul_workflows::session::SessionStart;
use longhaul_workflows::settings::Driver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::View;
use super::{FoundSession, SessionLine};

/// The record of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDocument {
    /// Whether a process runs this log.
    pub is_running: bool,
    /// The session, as `session list` shows it.
    #[serde(flatten)]
    pub session: SessionLine,
    /// The run of its feature.
    pub run: String,
    /// Its number within that run.
    pub number: u32,
    /// The reason for it.
    pub reason: SessionReason,
    /// The task of a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The time of its last event.
    pub last_activity: DateTime<Utc>,
    /// Its current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step: Option<String>,
    /// The completed steps from the session to the target branch.
    pub completed_steps: Vec<String>,
    /// The steps that follow.
    pub pending_steps: Vec<String>,
    /// The state of its work: the summary and the notes of the agent.
    pub context_summary: String,
    /// The commits of its work.
    pub checkpoints: Vec<SessionCheckpoint>,
    /// Its tool calls, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u32>,
    /// Summaries of its conversation, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compactions: Option<u32>,
    /// The size of its context window in tokens, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The session that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<String>,
    /// The session that continues it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The agent's own id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The tools of refused calls, one entry for each call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The calls for which the agent asked and got permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<u32>,
    /// The file with its output, if its agent writes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// A commit of the work of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCheckpoint {
    /// The position of its event in the history that has it.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// Its cause: `session 2, handoff`.
    pub step: String,
    /// The commit.
    pub commit: String,
}

impl View<'_> {
    pub(in crate::views) async fn session_record(
        &self,
        found: &FoundSession,
    ) -> Result<SessionDocument, StoreError> {
        let FoundSession { run, summary, view } = found;
        let line = SessionLine::of(run, summary, view);
        let start = view.start.as_ref();
        let feature_run = start.and_then(SessionStart::feature_run);
        let above = match &feature_run {
            Some(feature_run) => RunView::of(&self.store.read(feature_run, 0).await?),
            None => RunView::default(),
        };
        let own = above.sessions.iter().find(|session| session.run == run.as_str());
        let last_activity = view.last_at.unwrap_or(summary.started_at);
        let feature_run = feature_run.map(|run| run.to_string()).unwrap_or_default();
        let mut document = if let Some(session) = own {
            self.document(line, feature_run, session, &above)
        } else {
            let number = start.map_or(0, |start| start.session.number);
            let reason = start.map_or(SessionReason::Start, |start| start.session.reason);
            SessionDocument {
                number,
                reason,
                ..SessionDocument::bare(self.owner.is_running, line, feature_run, last_activity)
            }
        };
        let log = view.report.as_ref().and_then(|report| self.output_file(&report.log));
        document.take_own(found, log);
        document.last_activity = document.last_activity.max(last_activity);
        Ok(document)
    }

    /// The parts that the run of the feature records.
    fn document(
        &self,
        line: SessionLine,
        run: String,
        session: &Session,
        view: &RunView,
    ) -> SessionDocument {
        let record = &session.record;
        let steps = |completed: bool| {
            let steps =
                Step::ALL.into_iter().filter(|step| record.steps.contains(step) == completed);
            steps.map(|step| step.name().to_owned()).collect()
        };
        let checkpoint = |(position, at, commit): &(Position, DateTime<Utc>, String)| {
            let step = format!("session {}, sealed", session.number);
            SessionCheckpoint { position: *position, at: *at, step, commit: commit.clone() }
        };
        SessionDocument {
            number: session.number,
            reason: session.reason,
            current_step: view.progress.step().filter(|_| !record.is_closed),
            completed_steps: steps(true),
            pending_steps: steps(false),
            context_summary: record.notes.join("\n").trim().to_owned(),
            checkpoints: record.checkpoints.iter().map(checkpoint).collect(),
            ..SessionDocument::bare(self.owner.is_running, line, run, record.last_activity)
        }
    }
}

impl SessionDocument {
    /// A record with the parts that every session has.
    fn bare(
        is_running: bool,
        session: SessionLine,
        run: String,
        last_activity: DateTime<Utc>,
    ) -> Self {
        Self {
            is_running,
            session,
            run,
            number: 0,
            reason: SessionReason::Start,
            task: None,
            last_activity,
            current_step: None,
            completed_steps: Vec::new(),
            pending_steps: Vec::new(),
            context_summary: String::new(),
            checkpoints: Vec::new(),
            tool_calls: None,
            compactions: None,
            window: None,
            predecessor: None,
            successor: None,
            conversation: None,
            refused: Vec::new(),
            granted: None,
            log: None,
        }
    }

    /// The parts that the history of the session records.
    fn take_own(&mut self, found: &FoundSession, log: Option<String>) {
        let view = &found.view;
        let progress = &view.progress;
        let checkpoints = view.checkpoints.iter().map(|sealing| SessionCheckpoint {
            position: sealing.position,
            at: sealing.at,
            step: sealing.step.to_string(),
            commit: sealing.commit.clone(),
        });
        self.checkpoints.splice(0..0, checkpoints);
        if self.session.ended_at.is_none() && !progress.step.is_empty() {
            self.current_step = Some(progress.step.clone());
        }
        let summary = view.summary.document();
        if !summary.trim().is_empty() {
            summary.trim().clone_into(&mut self.context_summary);
        }
        self.granted = Some(view.granted).filter(|granted| *granted > 0);
        self.tool_calls = Some(progress.tool_calls).filter(|calls| *calls > 0);
        if view.driver() == Driver::Api {
            self.tool_calls = Some(progress.tool_calls);
            self.compactions = Some(progress.compactions);
        }
        self.window = Some(progress.window.size).filter(|size| *size > 0);
        self.successor = progress.successor.as_ref().map(ToString::to_string);
        self.log = log;
        if let Some(facts) = view.report.as_ref().and_then(|report| report.agent.as_ref()) {
            self.conversation.clone_from(&facts.conversation);
            self.refused.clone_from(&facts.refused);
        }
        if let Some(start) = &view.start {
            self.task.clone_from(&start.task);
            let handoff = start.handoff.as_ref();
            self.predecessor = handoff.map(|handoff| handoff.previous_session_id.to_string());
        }
    }
}
