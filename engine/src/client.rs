//! The trait [`Client`]: programs outside of workflows start, signal and observe runs of an engine
//! through it.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::context::EngineError;
use crate::event::{Outcome, RequestedBy};
use crate::id::RunId;
use crate::payload::Payload;

/// A run to start.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id: starting an id that exists joins that run.
    pub run: RunId,
    /// Its workflow.
    pub workflow: String,
    /// Its input.
    pub input: Payload,
    /// Labels for people and filters.
    pub labels: BTreeMap<String, String>,
}

/// The result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// The run is new.
    New,
    /// The run existed and continues.
    Joined,
    /// The run existed and is over.
    Over,
}

/// Starts and signals runs, and reads their results.
#[async_trait]
pub trait Client: Send + Sync {
    /// Starts a run, or joins it if it exists.
    async fn start(&self, new: NewRun) -> Result<Started, EngineError>;

    /// Sends a signal to a run. `false`: the run is over.
    async fn signal(&self, run: &RunId, name: &str, payload: Payload) -> Result<bool, EngineError>;

    /// Asks a run to end. `false`: the run is over.
    async fn cancel(&self, run: &RunId, request: RequestedBy) -> Result<bool, EngineError>;

    /// Waits for the end of a run.
    async fn outcome(&self, run: &RunId) -> Result<Outcome, EngineError>;

    /// The values that a run has published and not removed.
    async fn published(&self, run: &RunId) -> Result<BTreeMap<String, Payload>, EngineError>;
}
