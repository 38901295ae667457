//! The transcript of a session of the built-in agent.

use longhaul_workflows::projection::TranscriptEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Name, View};
use super::{Called, Found, Hosted};

/// The entries of a transcript.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Transcript {
    /// The session.
    pub name: Name,
    /// How many entries to leave out.
    pub from: usize,
}

/// The transcript of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptDocument {
    /// The session.
    pub session: String,
    /// Whether the session is over.
    pub is_over: bool,
    /// Whether a process runs this log.
    pub is_running: bool,
    /// The file with the output of the agent. A session of the built-in agent has none: its
    /// conversation is in its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The entries, in order.
    pub entries: Vec<TranscriptEntry>,
}

impl View<'_> {
    pub(in crate::views) fn transcript(&self, found: &Found, from: usize) -> TranscriptDocument {
        match found {
            Found::Run(hosted) => {
                let Hosted { run, summary, view } = &**hosted;
                TranscriptDocument {
                    session: run.to_string(),
                    is_over: summary.status.is_terminal(),
                    is_running: self.is_running,
                    log: None,
                    entries: view.transcript().iter().skip(from).cloned().collect(),
                }
            }
            Found::Activity(called) => {
                let Called { run, session, .. } = &**called;
                TranscriptDocument {
                    session: super::id(run, session),
                    is_over: session.ended_at.is_some(),
                    is_running: self.is_running,
                    log: session.log.clone(),
                    entries: Vec::new(),
                }
            }
        }
    }
}
