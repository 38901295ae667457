//! `longhaul pause`, `resume` and `cancel`.

use std::path::Path;

use anyhow::Result;
use longhaul_engine::RunId;

use crate::arguments::Steer;
use crate::exit::{Exit, usage};
use crate::owner::{Access, Answer, Ask, Order};
use crate::place::Project;
use crate::term;

pub(super) async fn run(data_dir: &Path, arguments: &Steer, order: Order) -> Result<Exit> {
    let Some(access) = Access::reach(data_dir).await? else {
        return Err(usage(format!("there is no log in {}: nothing has run yet", data_dir.display())));
    };
    let mut exits = Vec::new();
    for target in &arguments.targets {
        let run = target_run(target).await?;
        if order == Order::Resume && !Path::new(target).is_dir() {
            exits.push(super::again::resume(&access, run, &arguments.reason).await?);
            continue;
        }
        let request = super::requested(&arguments.reason);
        let answer = super::ask(&access, Ask::Steer { target: run.clone(), order, request }).await?;
        let Answer::Told { runs } = answer else { continue };
        let (done, later) = match order {
            Order::Pause => ("paused", "a session that is under way ends first"),
            Order::Resume => ("resumed", "`longhaul run` goes on with it if nothing runs it now"),
            Order::Cancel => ("cancelled", "what was done is kept; `longhaul run` goes on with it"),
        };
        let count = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
        term::say(format!("{run}: {done} ({count}); {later}"));
        exits.push(Exit::Ok);
    }
    Ok(Exit::of_all(exits))
}

/// What is meant: a directory of a project, or the id of a run.
pub(super) async fn target_run(target: &str) -> Result<RunId> {
    let path = Path::new(target);
    if path.is_dir() {
        return Ok(Project::at(path).await?.id);
    }
    RunId::new(target).map_err(|error| usage(format!("{error}, and there is no directory of that name")))
}
