//! Forks of one run, of several named ones, or of all that a filter selects.

use longhaul_server::RunKind;
use std::path::Path;

use anyhow::Result;
use longhaul_engine::{RequestedBy, RunId};

use super::documents::{ForkDocument, ForksDocument, RefusedFork};
use crate::arguments::{Output, Runs};
use crate::command::selection::Reach;
use crate::command::steer::read_names;
use crate::command::{call, confirmed, named, reach, selection};
use crate::document;
use crate::exit::{self, Exit, usage};
use crate::term;
use longhaul_server::{Client, Fork, ForkPoint, Forked};

/// The parts of a fork, apart from the run.
pub(super) struct Order {
    pub(super) from: ForkPoint,
    pub(super) note: Option<String>,
    pub(super) set: Vec<(String, String)>,
    pub(super) request: RequestedBy,
}

pub(super) async fn run(
    data_dir: &Path,
    runs: &Runs,
    order: &Order,
    output: Output,
) -> Result<Exit> {
    if !runs.targets.is_empty() && !runs.selection.filters.is_empty() {
        return Err(usage("give either names or --filter, not both"));
    }
    let names = read_names(&runs.targets)?;
    let mut client = reach(data_dir).await?;
    let mut found = selected(&client, runs, &names).await?;
    found.truncate(runs.selection.limit.unwrap_or(usize::MAX));
    let is_bulk = !runs.selection.filters.is_empty() || runs.targets.iter().any(|name| name == "-");
    if is_bulk && found.len() > 1 && !runs.selection.dry_run && !runs.selection.yes {
        // A person may take long, which must not block other commands.
        drop(client);
        let count = found.len();
        confirmed(&format!("fork {count} runs"), &format!("{count} runs are selected"))?;
        client = reach(data_dir).await?;
    }
    let is_single = !is_bulk && found.len() == 1;
    let mut forks = Vec::new();
    let mut refused = Vec::new();
    for run in found {
        let fork = Fork {
            run: run.clone(),
            from: order.from,
            note: order.note.clone(),
            set: order.set.clone(),
            request: order.request.clone(),
            dry_run: runs.selection.dry_run,
        };
        match call(&client, fork).await {
            Ok(forked) => {
                say(&forked, runs.selection.dry_run);
                forks.push(forked);
            }
            Err(error) if is_single => return Err(error),
            Err(error) => {
                term::say(format!("{run}  not forked: {error:#}"));
                refused.push((run, error));
            }
        }
    }
    drop(client);
    print(&forks, &refused, order, runs.selection.dry_run, is_single, output)?;
    let exits = forks.iter().map(|_| Exit::Ok);
    Ok(Exit::of_all(exits.chain(refused.iter().map(|(_, error)| exit::of(error)))))
}

/// The named runs, or the last runs of the selected features.
async fn selected(client: &Client, runs: &Runs, names: &[String]) -> Result<Vec<RunId>> {
    if runs.selection.filters.is_empty() {
        let mut found = Vec::new();
        for name in names {
            found.push(named::run(client, name, &runs.scope.dir).await?);
        }
        return Ok(found);
    }
    let selected = selection::select(client, &runs.selection.filters, Reach::Ended).await?;
    let of_features = selected.into_iter().filter(|run| run.workflow == RunKind::Feature);
    let last: Vec<RunId> = of_features.filter_map(|run| run.header.run).collect();
    if last.is_empty() {
        term::say("no run matches");
    }
    Ok(last)
}

fn say(forked: &Forked, dry_run: bool) {
    let Forked { run, origin, requested, position, commit, invalidates } = forked;
    if position != requested {
        term::say(format!(
            "position {requested} is within a step: the run continues after {position}, the end \
             of the step before"
        ));
    }
    let on = commit
        .as_ref()
        .map_or_else(|| "in a new work tree".into(), |commit| format!("on commit {commit}"));
    let continues = if dry_run { "would continue" } else { "continues" };
    let how = if dry_run { "" } else { "; `longhaul run` continues it if no process runs it now" };
    let from = if *position == 0 {
        format!("the beginning of {origin}")
    } else {
        format!("{origin}@{position}")
    };
    term::say(format!("{run}: {continues} from {from} {on}{how}"));
    if !invalidates.is_empty() {
        term::say(format!("{run}: checks run again: {}", invalidates.join(", ")));
    }
}

fn print(
    forks: &[Forked],
    refused: &[(RunId, anyhow::Error)],
    order: &Order,
    dry_run: bool,
    is_single: bool,
    output: Output,
) -> Result<()> {
    let RequestedBy { by, why } = &order.request;
    let document = |forked: &Forked| ForkDocument {
        run: forked.run.to_string(),
        origin: forked.origin.to_string(),
        requested: forked.requested,
        position: forked.position,
        commit: forked.commit.clone(),
        invalidates: forked.invalidates.clone(),
        by: by.clone(),
        why: why.clone(),
    };
    match (output, forks) {
        (Output::Table, _) => forks.iter().for_each(|forked| term::print(forked.run.to_string())),
        (Output::Json, [forked]) if is_single => document::print(document(forked))?,
        (Output::Json, _) => {
            let refused = refused.iter().map(|(run, error)| RefusedFork {
                run: run.to_string(),
                reason: format!("{error:#}"),
            });
            document::print(ForksDocument {
                dry_run,
                forks: forks.iter().map(document).collect(),
                refused: refused.collect(),
            })?;
        }
    }
    Ok(())
}
