//! The batch workflow: many projects in dependency order, under one id that can be submitted again.
//!
//! A batch is a durable run: which project may begin is a decision, so it belongs in a history
//! that can be replayed. Beginning a project and observing its end are up to the owner of the log,
//! which follows the published state and reports to the batch by a signal.

mod overrides;
mod plan;
mod state;

use async_trait::async_trait;
use longhaul_engine::{
    Context, ContextExt, Ending, Filter, InvalidRunId, Payload, Received, RunId, Stop, Workflow,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::backlog::FeatureId;
use crate::finding::Skipped;

pub use overrides::Overrides;
pub use plan::{Entry, Plan, PlanError};
use state::BatchRun;
pub use state::{BatchInput, BatchView, EntryState};

/// The workflow `batch`: one long-lived run for each batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchWorkflow;

/// The number of commands after which a batch continues as new, which keeps its history and its
/// replay short. A batch of many projects gets some more for each: it repeats their states.
const MAX_COMMANDS: usize = 2000;

impl BatchWorkflow {
    /// Its name in histories.
    pub const NAME: &'static str = "batch";

    /// The run of a batch.
    pub fn run_id(batch: &str) -> Result<RunId, InvalidRunId> {
        RunId::new(format!("batch/{batch}"))
    }
}

/// The signal `submit`: requests the projects of this plan. Projects already in the batch continue,
/// new ones are added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submit {
    /// The id published as `submitted` once the plan is applied.
    pub id: String,
    /// The plan.
    pub plan: Plan,
}

/// The signal `state`: reports that a project has another state than the published one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReport {
    /// The submission that the report refers to; a report on an earlier one is stale.
    pub submission: String,
    /// The name of the project in the plan.
    pub name: FeatureId,
    /// Its state.
    pub state: EntryState,
}

impl Submit {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "submit";
}

impl StateReport {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "state";
}

#[async_trait]
impl Workflow for BatchWorkflow {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let mut run = BatchRun::from_input(input.read()?);
        loop {
            run.start_ready_projects();
            run.publish(context).await?;
            if context.commands() as usize > MAX_COMMANDS + 4 * run.len() {
                return Ok(Ending::ContinueAsNew(Payload::of(&run.into_input())));
            }
            let Some(Received::Signal { name, payload, from }) =
                context.receive(&Filter::any(), None).await?
            else {
                continue;
            };
            let taken = match (name.as_str(), &from) {
                (Submit::SIGNAL, None) => read(&payload).map(|submit| run.submit(submit)),
                (StateReport::SIGNAL, None) => read(&payload).map(|report| run.report(report)),
                (_, Some(_)) => Err("a run cannot send it to a batch".to_owned()),
                (_, None) => Err("a batch takes no signal of this name".to_owned()),
            };
            // A signal that cannot be applied must not stop the batch; `why` shows the reason.
            if let Err(reason) = taken {
                context.set(Skipped::KEY, &Skipped { signal: name, from, reason }).await?;
            }
        }
    }
}

fn read<T: DeserializeOwned>(payload: &Payload) -> Result<T, String> {
    payload.read().map_err(|error| format!("it cannot be read: {error}"))
}

impl BatchRun {
    /// Publishes the changed projects, then the batch.
    async fn publish(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        for name in self.take_changed() {
            if let Some(state) = self.state(&name) {
                context.set(&EntryState::key(&name), state).await?;
            }
        }
        if let Some(view) = self.take_view() {
            context.set(BatchView::KEY, &view).await?;
        }
        Ok(())
    }
}
