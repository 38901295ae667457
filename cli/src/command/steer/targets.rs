//! Whom an order is for: names on the command line or on standard input, or what a filter finds.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use longhaul_engine::RunId;

use crate::arguments::Tell;
use crate::command::{call, named};
use crate::exit::usage;
use longhaul_server::{self, Client, Order, SelectRuns};

/// One of those that are named.
pub(super) struct Target {
    /// As it was written.
    pub(super) asked: String,
    /// The run that is meant, or why nobody knows.
    pub(super) run: Result<RunId, String>,
}

/// The names, with the lines of standard input, to its end, for `-`.
pub(super) fn written(named: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in named {
        if name != "-" {
            names.push(name.clone());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.context("cannot read standard input").map_err(usage)?;
            // Whatever stands behind the id is for people.
            names.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    Ok(names)
}

/// Those that are named, or that a filter finds.
pub(super) async fn find(
    access: &Client,
    names: &[String],
    tell: &Tell,
    order: &Order,
) -> Result<Vec<Target>> {
    if !tell.filters.is_empty() {
        return filtered(access, tell, order).await;
    }
    let mut targets = Vec::new();
    for name in names {
        targets.push(target(access, name, &tell.within.dir).await?);
    }
    Ok(targets)
}

async fn filtered(access: &Client, tell: &Tell, order: &Order) -> Result<Vec<Target>> {
    let runs = call(access, SelectRuns { filters: tell.filters.clone() }).await?;
    let concerned = runs.into_iter().filter(|run| order.concerns(run)).collect();
    let meant = match order {
        Order::Signal { .. } => concerned,
        _ => longhaul_server::without_covered(concerned),
    };
    Ok(meant
        .into_iter()
        .map(|run| Target { asked: run.run.to_string(), run: Ok(run.run) })
        .collect())
}

/// What is meant: a run, a feature of the project in `dir`, or the directory of a project.
async fn target(access: &Client, name: &str, dir: &Path) -> Result<Target> {
    let run = named::run_or_dir(access, name, dir).await?;
    Ok(Target { asked: name.to_owned(), run: run.map_err(|unknown| named::sentence(&unknown)) })
}

/// Asks whether so many are meant; where nobody can be asked, they are not.
pub(super) fn confirm(count: usize, order: &Order) -> Result<()> {
    let verb = order.verb();
    if !std::io::stdin().is_terminal() {
        return Err(usage(format!(
            "{count} runs are meant: say --yes to {verb} them all, or look with --dry-run"
        )));
    }
    let _ = write!(std::io::stderr(), "{verb} {count} runs? [y/N] ");
    let mut word = String::new();
    std::io::stdin().lock().read_line(&mut word).context("cannot read the answer")?;
    if matches!(word.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(usage("nobody was told")) }
}
