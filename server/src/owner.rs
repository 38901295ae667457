//! The work of the process that runs the log, for the views of it.

use std::collections::BTreeMap;

use longhaul_engine::{RunId, Stop};

use crate::pools::{AGENTS, CHECKS, TREES};

/// The process that runs the log. Without one, nothing is served.
#[derive(Debug, Clone, Default)]
pub struct Owner {
    /// Its stuck runs.
    pub stuck: BTreeMap<RunId, Stop>,
    /// Its runs with an activity that waits for a slot of a pool, and the pool.
    pub queued: BTreeMap<RunId, String>,
    /// Whether there is one.
    pub is_running: bool,
    /// The projects and batches that it runs. The others rest until a command runs them.
    pub served: Vec<RunId>,
}

impl Owner {
    /// Why a run that no process runs makes no progress.
    pub const NOT_RUN: &str = "no process runs it";

    /// Whether it runs this run.
    pub(crate) fn runs(&self, run: &RunId) -> bool {
        self.is_running && self.served.iter().any(|root| run.is_within(root.as_str()))
    }

    /// The free place for which a run waits. The turn at a provider is part of the agent's work.
    pub(crate) fn place_of(&self, run: &RunId) -> Option<&'static str> {
        match self.queued.get(run)?.as_str() {
            AGENTS | TREES => Some("waits for a free place among the agents"),
            CHECKS => Some("waits for a free place among the checks"),
            _ => None,
        }
    }
}
