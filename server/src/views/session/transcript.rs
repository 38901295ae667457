//! The transcript of a session.

use longhaul_workflows::projection::TranscriptEntry;
use longhaul_workflows::settings::Driver;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Name, View};
use super::FoundSession;

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
    /// The driver that runs it.
    pub driver: Driver,
    /// Whether the session is over.
    pub is_over: bool,
    /// Whether a process runs this log.
    pub is_running: bool,
    /// The file with the output of the agent, once it has ended. A session of the built-in agent
    /// has none: its conversation is in its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The entries, in order.
    pub entries: Vec<TranscriptEntry>,
}

impl View<'_> {
    pub(in crate::views) fn transcript(
        &self,
        found: &FoundSession,
        from: usize,
    ) -> TranscriptDocument {
        let FoundSession { run, summary, view } = found;
        TranscriptDocument {
            session: run.to_string(),
            driver: view.driver(),
            is_over: summary.status.is_terminal(),
            is_running: self.owner.is_running,
            log: view.report.as_ref().and_then(|report| self.output_file(&report.log)),
            entries: view.transcript().iter().skip(from).cloned().collect(),
        }
    }
}
