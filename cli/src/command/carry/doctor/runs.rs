//! Runs that cannot go on: the program does not decide as their histories say, or a record cannot
//! be read.

use std::path::Path;

use super::Finding;
use crate::term;
use longhaul_server::{Client, StuckRuns};

pub(super) async fn look(data_dir: &Path) -> Vec<Finding> {
    // That there is no log, or that it cannot be opened, is reported elsewhere.
    let Ok(Some(access)) = Client::reach(data_dir, term::notice).await else { return Vec::new() };
    let Ok(runs) = access.call(StuckRuns {}).await else { return Vec::new() };
    let finding = |run: longhaul_server::status::StuckRun| {
        let advice = format!(
            "`longhaul history {0}` shows what was recorded; `longhaul terminate {0}` ends it",
            run.run
        );
        Finding::problem("run", format!("{} cannot go on: {}", run.run, run.reason), advice)
    };
    runs.into_iter().map(finding).collect()
}
