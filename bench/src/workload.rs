//! The activity of the measured runs, and the parts of an engine.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use longhaul_engine::{
    Activity, Attempt, Engine, Failure, Handler, Handlers, NewRun, Options, Parts, Payload, RunId,
    SystemClock, Workflows,
};
use longhaul_storage::SledStore;

/// Returns its input.
pub(super) struct Echo;

impl Activity for Echo {
    const NAME: &'static str = "bench.echo";
    type Input = String;
    type Output = String;
}

#[async_trait]
impl Handler<Echo> for Echo {
    async fn perform(&self, input: String, _attempt: &Attempt) -> Result<String, Failure> {
        Ok(input)
    }
}

/// A string that is 100 bytes of JSON, a different one for each number up to 9999.
pub(super) fn text(number: usize) -> String {
    const REST: &str = "of a step: the input and the output of an activity, padded to the usual \
                        number of bytes.......";
    format!("{number:04}{REST}")
}

/// An engine on a log.
pub(super) async fn engine(
    store: &Arc<SledStore>,
    workflows: Workflows,
    options: Options,
) -> Result<Engine> {
    let parts = Parts {
        store: Arc::clone(store) as _,
        workflows,
        handlers: Handlers::new().with::<Echo>(Echo),
        clock: Arc::new(SystemClock),
        options,
    };
    Ok(Engine::open(parts).await?)
}

/// Opens a log on a blocking thread.
pub(super) async fn store(directory: &Path) -> Result<Arc<SledStore>> {
    let directory = directory.to_owned();
    Ok(Arc::new(tokio::task::spawn_blocking(move || SledStore::open(&directory)).await??))
}

/// A run to start.
pub(super) fn new_run(run: String, workflow: &str, input: Payload) -> Result<NewRun> {
    Ok(NewRun { run: RunId::new(run)?, workflow: workflow.into(), input, labels: [].into() })
}
