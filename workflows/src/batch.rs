//! What happens to a batch: many projects, some after others, under one id that can be submitted
//! again.
//!
//! A batch is a durable run of its own and not only a list of labels: which project may begin is a
//! decision, and belongs into a history that can be replayed. What only the owner of the log can do
//! - beginning a project, seeing that it has come to rest - it does when the published state says
//! so, and tells the batch by a signal.

mod overrides;
mod plan;
mod state;

use async_trait::async_trait;
use longhaul_engine::{
    Context, ContextExt, Ending, Filter, InvalidRunId, Payload, Received, RunId, Stop, Workflow,
};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::project::Skipped;

pub use overrides::Overrides;
pub use plan::{Entry, Plan, PlanError};
use state::Memory;
pub use state::{BatchInput, BatchView, ProjectState};

/// The workflow `batch`: one run for each batch, for ever.
#[derive(Debug, Clone, Copy)]
pub struct BatchWorkflow;

/// After how many commands a batch goes on as new, besides some for each project.
const SEGMENT: usize = 2000;

impl BatchWorkflow {
    /// Its name in histories.
    pub const NAME: &'static str = "batch";

    /// The run of a batch.
    pub fn run_id(batch: &str) -> Result<RunId, InvalidRunId> {
        RunId::new(format!("batch/{batch}"))
    }
}

/// The signal `submit`: somebody wants this plan done. What is in it already goes on, what is new
/// is added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submit {
    /// Published as `submitted` when it was taken in.
    pub id: String,
    /// The plan.
    pub plan: Plan,
}

/// The signal `now`: a project is seen to be in another state than the published one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The submission for which it is true; a word on an earlier one comes too late.
    pub submission: String,
    /// The name of the project in the plan.
    pub name: FeatureId,
    /// Its state.
    pub state: ProjectState,
}

impl Submit {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "submit";
}

impl Now {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "now";
}

#[async_trait]
impl Workflow for BatchWorkflow {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let mut memory = Memory::from_input(input.read()?);
        loop {
            memory.begin_what_may();
            memory.publish(context).await?;
            if context.commands() as usize > SEGMENT + 4 * memory.len() {
                return Ok(Ending::ContinueAsNew(Payload::of(&memory.into_input())));
            }
            let Some(Received::Signal { name, payload, from }) =
                context.receive(&Filter::any(), None).await?
            else {
                continue;
            };
            let skipped = match (name.as_str(), &from) {
                (Submit::SIGNAL, None) => match payload.read() {
                    Ok(submit) => {
                        memory.submit(submit);
                        continue;
                    }
                    Err(error) => format!("it cannot be read: {error}"),
                },
                (Now::SIGNAL, None) => match payload.read() {
                    Ok(now) => {
                        memory.now(now);
                        continue;
                    }
                    Err(error) => format!("it cannot be read: {error}"),
                },
                (_, Some(_)) => "a run cannot send it to a batch".to_owned(),
                (_, None) => "a batch takes no signal of this name".to_owned(),
            };
            context.set(Skipped::KEY, &Skipped { signal: name, from, reason: skipped }).await?;
        }
    }
}

impl Memory {
    /// Publishes the projects that changed, then the batch.
    async fn publish(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        for name in self.take_changed() {
            if let Some(state) = self.state(&name) {
                context.set(&ProjectState::key(&name), state).await?;
            }
        }
        if let Some(view) = self.take_view() {
            context.set(BatchView::KEY, &view).await?;
        }
        Ok(())
    }
}
