//! Runs that cannot go on: the program does not decide as their histories say, or a record cannot be read.

use std::path::Path;

use super::Finding;
use crate::term;
use longhaul_server::{Answer, Ask, Client};

pub(super) async fn look(data_dir: &Path) -> Vec<Finding> {
    let stuck = match Client::reach(data_dir, term::notice).await {
        Ok(Some(access)) => access.ask(Ask::Stuck).await,
        // That there is no log, or that it cannot be opened, is reported elsewhere.
        Ok(None) | Err(_) => return Vec::new(),
    };
    let Ok(Answer::Stuck { runs }) = stuck else { return Vec::new() };
    let finding = |run: longhaul_server::status::StuckRun| {
        let advice =
            format!("`longhaul history {0}` shows what was recorded; `longhaul terminate {0}` ends it", run.run);
        Finding::problem("run", format!("{} cannot go on: {}", run.run, run.reason), advice)
    };
    runs.into_iter().map(finding).collect()
}
