//! The record of one session: its progress, and the checkpoints for a rewind.

use longhaul_engine::{Position, RunId};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::SealStep;
use longhaul_workflows::projection::{Session, SessionState, Step};
use serde::Serialize;

use super::hosted::Hosted;
use super::run::FeatureRun;
use super::text::{clean, end_of, precise};

/// The limit of an agent's notes in a record, in bytes; the end is kept.
const SUMMARY: usize = 8 * 1024;

/// The content of a session's file.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    id: String,
    feature: &'a FeatureId,
    run: &'a RunId,
    started_at: String,
    last_activity: String,
    current_step: Option<String>,
    completed_steps: Vec<&'static str>,
    pending_steps: Vec<&'static str>,
    context_summary: String,
    checkpoints: Vec<Checkpoint<'a>>,
    status: &'static str,
}

/// A commit that the work can be rewound to.
#[derive(Debug, Clone, Serialize)]
struct Checkpoint<'a> {
    id: String,
    created_at: String,
    step: String,
    trigger: &'static str,
    commit: &'a str,
    position: Position,
}

impl<'a> Record<'a> {
    pub(super) fn of(
        run: &'a FeatureRun,
        session: &'a Session,
        hosted: Option<&'a Hosted>,
    ) -> Self {
        let record = &session.record;
        let id = run.session_id(session);
        let (completed, pending): (Vec<Step>, Vec<Step>) =
            Step::ALL.into_iter().partition(|step| record.steps.contains(step));
        let step = hosted.map(|hosted| hosted.step.as_str()).filter(|step| !step.is_empty());
        let is_working = session.state == SessionState::Working;
        let doing = step.filter(|_| is_working).map(str::to_owned);
        let doing = doing.or_else(|| run.view.progress.step());
        let last_activity =
            hosted.and_then(|hosted| hosted.last_at).max(Some(record.last_activity));
        let own = hosted.into_iter().flat_map(|hosted| &hosted.checkpoints);
        let own = own.map(|checkpoint| Checkpoint {
            id: format!("{id}-h{}", checkpoint.position),
            created_at: precise(checkpoint.at),
            step: checkpoint.step.to_string(),
            trigger: match checkpoint.step {
                SealStep::Handoff { .. } => "handoff",
                SealStep::PreOverflow { .. } => "pre-overflow",
                _ => "auto",
            },
            commit: &checkpoint.commit,
            position: checkpoint.position,
        });
        let checkpoints = record.checkpoints.iter().map(|(position, at, commit)| Checkpoint {
            id: format!("{id}-c{position}"),
            created_at: precise(*at),
            step: format!("session {}", session.number),
            trigger: "auto",
            commit,
            position: *position,
        });
        Self {
            checkpoints: own.chain(checkpoints).collect(),
            id: id.clone(),
            feature: &run.feature,
            run: &run.id,
            started_at: precise(session.started_at),
            last_activity: precise(last_activity.unwrap_or(record.last_activity)),
            current_step: doing.filter(|_| !record.is_closed),
            completed_steps: completed.into_iter().map(Step::name).collect(),
            pending_steps: pending.into_iter().map(Step::name).collect(),
            context_summary: summary(&record.notes),
            status: match session.state {
                SessionState::Working => "active",
                SessionState::Interrupted => "interrupted",
                SessionState::Failed => "error",
                SessionState::ClaimsDone | SessionState::ContextFull | SessionState::Landed => {
                    "completed"
                }
            },
        }
    }
}

fn summary(notes: &[String]) -> String {
    let notes: Vec<String> = notes.iter().map(|notes| clean(notes).trim().to_owned()).collect();
    end_of(notes.join("\n").trim(), SUMMARY).to_owned()
}
