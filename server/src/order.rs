//! Orders to runs.

use longhaul_engine::{MessageBody, Payload, RequestedBy};
use longhaul_workflows::feature::Note;
use longhaul_workflows::projection::{ActionKind, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run_kind::RunKind;
use crate::views::list::RunLine;

/// An order to runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Pause before the next step.
    Pause,
    /// Resume.
    Resume,
    /// Cancel: end and clean up.
    Cancel,
    /// Terminate: end at once.
    Terminate,
    /// Send a signal.
    Signal {
        /// The name of the signal.
        name: String,
        /// Its payload, as the workflow of the run reads it.
        payload: Value,
    },
    /// Send the agent a note for its next session.
    Steer {
        /// The note.
        text: String,
    },
    /// Approve the merge of a feature.
    Approve,
    /// Deny the merge and send the feature back to its agent.
    Deny,
}

impl Order {
    /// The verb of the command line.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Signal { .. } => "signal",
            Self::Steer { .. } => "steer",
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// Whether only a feature run can take it.
    pub(crate) fn is_for_features(&self) -> bool {
        matches!(self, Self::Steer { .. } | Self::Approve | Self::Deny)
    }

    /// Whether it responds to a question of the run.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Approve | Self::Deny)
    }

    /// Whether the order applies to a run that matches a filter.
    pub fn applies_to(&self, run: &RunLine) -> bool {
        let is_feature = run.workflow == RunKind::Feature;
        match self {
            Self::Resume if run.ended_at.is_some() => {
                is_feature && run.header.status != State::Passed
            }
            // A project without work of its own is not resumed; its blocked features are.
            Self::Resume if run.workflow == RunKind::Project => {
                is_paused(run) || !matches!(run.header.status, State::NeedsAttention | State::Done)
            }
            Self::Resume => is_paused(run),
            _ if run.ended_at.is_some() => false,
            Self::Approve | Self::Deny => is_feature && run.awaits_approval,
            Self::Steer { .. } => is_feature,
            _ => true,
        }
    }

    /// The message; `None` if its content depends on the run.
    pub(crate) fn message(&self, request: &RequestedBy) -> Option<MessageBody> {
        let signal = |name: &str, payload| MessageBody::signal_by(name, payload, request.clone());
        Some(match self {
            Self::Pause => MessageBody::Pause(request.clone()),
            Self::Resume => MessageBody::Resume(request.clone()),
            Self::Cancel => MessageBody::Cancel(request.clone()),
            Self::Terminate => MessageBody::Terminate(request.clone()),
            Self::Signal { name, payload } => signal(name, Payload::of(payload)),
            Self::Steer { text } => signal(Note::SIGNAL, Payload::of(&Note(text.clone()))),
            Self::Approve | Self::Deny => return None,
        })
    }
}

/// Whether a run is paused, or is to pause.
fn is_paused(run: &RunLine) -> bool {
    run.header.status == State::Paused
        || run.pending.iter().any(|entry| entry.action.what == ActionKind::Pause)
}
