//! Whom an order is for: names on the command line or on standard input, or what a filter finds.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use longhaul_engine::RunId;

use crate::arguments::Tell;
use crate::command::{ask, unasked};
use crate::exit::usage;
use crate::owner::{self, Access, Answer, Ask, Order};
use crate::place::{self, Project};

/// One of those that are named.
pub(super) struct Target {
    /// As it was written.
    pub(super) written: String,
    /// What it can mean: the first that exists.
    pub(super) runs: Vec<RunId>,
}

/// Those that are named; `-` stands for the lines of standard input, to its end.
pub(super) async fn named(named: &[String], dir: &Path, order: &Order) -> Result<Vec<Target>> {
    place::is_there(dir)?;
    let mut targets = Vec::new();
    for name in named {
        if name == "-" {
            for line in std::io::stdin().lock().lines() {
                let line = line.context("cannot read standard input").map_err(usage)?;
                // Whatever stands behind the id is for people.
                if let Some(id) = line.split_whitespace().next() {
                    targets.push(target(id, dir, order).await?);
                }
            }
        } else {
            targets.push(target(name, dir, order).await?);
        }
    }
    Ok(targets)
}

/// Those that a filter finds.
pub(super) async fn filtered(access: &Access, tell: &Tell, order: &Order) -> Result<Vec<Target>> {
    let Answer::Selected { runs } = ask(access, Ask::Select { filters: tell.filters.clone() }).await? else {
        return Err(unasked());
    };
    let concerned = runs.into_iter().filter(|run| order.concerns(run)).collect();
    let meant = match order {
        Order::Signal { .. } => concerned,
        _ => owner::without_covered(concerned),
    };
    Ok(meant.into_iter().map(|run| Target { written: run.run.to_string(), runs: vec![run.run] }).collect())
}

/// What is meant: a directory of a project, the id of a run, or a feature of the project in `dir`. What is for features
/// means a feature first.
async fn target(name: &str, dir: &Path, order: &Order) -> Result<Target> {
    let path = Path::new(name);
    let project = if path.is_dir() { Some(Project::at(path).await) } else { None };
    if let (Some(project), false) = (&project, order.is_for_features()) {
        let id = project.as_ref().map_err(|error| usage(format!("{error:#}")))?.id.clone();
        return Ok(Target { written: name.to_owned(), runs: vec![id] });
    }
    let is_name = !name.contains('/') && !matches!(name, "." | "..");
    let here = if is_name { Project::at(dir).await.ok() } else { None };
    let feature = here.and_then(|here| RunId::new(format!("{}/{name}", here.id)).ok());
    let project = project.and_then(Result::ok).map(|project| project.id);
    let runs: Vec<RunId> = feature.into_iter().chain(RunId::new(name).ok()).chain(project).collect();
    if runs.is_empty() {
        let error = RunId::new(name).err().map(|error| error.to_string()).unwrap_or_default();
        return Err(usage(format!("{error}, and there is no directory of that name")));
    }
    Ok(Target { written: name.to_owned(), runs })
}

/// Asks whether so many are meant; where nobody can be asked, they are not.
pub(super) fn confirm(count: usize, order: &Order) -> Result<()> {
    let verb = order.verb();
    if !std::io::stdin().is_terminal() {
        return Err(usage(format!("{count} runs are meant: say --yes to {verb} them all, or look with --dry-run")));
    }
    let _ = write!(std::io::stderr(), "{verb} {count} runs? [y/N] ");
    let mut word = String::new();
    std::io::stdin().lock().read_line(&mut word).context("cannot read the answer")?;
    if matches!(word.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(usage("nobody was told")) }
}
