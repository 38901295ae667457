//! Workflows: deterministic code that decides, and the registry that finds it by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::context::{Context, Stop};
use crate::payload::Payload;

/// How a workflow ends this segment of its run.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The run is over, with this result.
    Complete(Payload),
    /// The run continues as new, with fresh input and an empty history.
    ContinueAsNew(Payload),
}

/// A workflow definition: the same commands for the same history, every time.
#[async_trait]
pub trait Workflow: Send + Sync + 'static {
    /// Decides through the context only: no clock, no randomness, no I/O of its own.
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop>;
}

/// The workflows of an engine, by name.
#[derive(Clone, Default)]
pub struct Workflows(BTreeMap<&'static str, Arc<dyn Workflow>>);

impl Workflows {
    /// No workflows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a workflow.
    ///
    /// # Panics
    /// If there is a workflow of this name already: a bug in the program.
    #[must_use]
    pub fn with(mut self, name: &'static str, workflow: impl Workflow) -> Self {
        assert!(self.0.insert(name, Arc::new(workflow)).is_none(), "`{name}` has two workflows");
        self
    }

    /// The workflow of a name.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Workflow>> {
        self.0.get(name).cloned()
    }
}
