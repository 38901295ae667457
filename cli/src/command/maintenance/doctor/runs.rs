//! Stuck runs: the program diverges from their histories, or a record is unreadable.

use std::path::Path;

use super::Finding;
use crate::term;
use longhaul_server::{Client, StuckRuns, advice};

pub(super) async fn look(data_dir: &Path) -> Vec<Finding> {
    // Other checks report a missing or unreadable log.
    let Ok(Some(access)) = Client::reach(data_dir, term::notice).await else { return Vec::new() };
    let Ok(runs) = access.call(StuckRuns {}).await else { return Vec::new() };
    let finding = |run: longhaul_server::status::StuckRun| {
        let advice = format!(
            "{} shows the recorded events; {} ends it",
            advice::on("history", &run.run),
            advice::on("terminate", &run.run)
        );
        Finding::problem("run", format!("{} cannot go on: {}", run.run, run.reason), advice)
    };
    runs.into_iter().map(finding).collect()
}
