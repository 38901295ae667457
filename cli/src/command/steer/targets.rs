//! Resolves the targets of an order: names on the command line or standard input, or a filter.

use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result};
use longhaul_engine::RunId;

use crate::arguments::OrderArguments;
use crate::command::named::Lookup;
use crate::command::selection::Reach;
use crate::command::{confirmed, named, selection};
use crate::exit::usage;
use longhaul_server::{Client, Order};

/// A named target.
pub(super) struct Target {
    /// The name as given.
    pub(super) name: String,
    /// The run, or why the name does not resolve.
    pub(super) run: Result<RunId, String>,
}

/// The names, with `-` replaced by the lines of standard input.
pub(in crate::command) fn read_names(named: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in named {
        if name != "-" {
            names.push(name.clone());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.context("cannot read standard input").map_err(usage)?;
            // The id is the first word of a line; the rest is for people.
            names.extend(line.split_whitespace().next().map(str::to_owned));
        }
    }
    Ok(names)
}

/// The named targets, or those that the filters select.
pub(super) async fn find(
    access: &Client,
    names: &[String],
    arguments: &OrderArguments,
    order: &Order,
) -> Result<Vec<Target>> {
    if !arguments.selection.filters.is_empty() {
        return filtered(access, arguments, order).await;
    }
    let mut targets = Vec::new();
    for name in names {
        targets.push(target(access, name, &arguments.scope.dir).await?);
    }
    Ok(targets)
}

async fn filtered(
    access: &Client,
    arguments: &OrderArguments,
    order: &Order,
) -> Result<Vec<Target>> {
    // A blocked feature is tried again.
    let reach = if *order == Order::Resume { Reach::All } else { Reach::Open };
    let mut runs = selection::select(access, &arguments.selection.filters, reach).await?;
    runs.retain(|run| order.applies_to(run));
    if !matches!(order, Order::Signal { .. }) {
        runs = selection::without_covered(runs);
    }
    let runs = runs.into_iter().filter_map(|line| line.header.run);
    Ok(runs.map(|run| Target { name: run.to_string(), run: Ok(run) }).collect())
}

/// Resolves a name: a run, a feature of the project in `dir`, or the directory of a project.
async fn target(access: &Client, name: &str, dir: &Path) -> Result<Target> {
    let run = match named::run_or_dir(access, name, dir).await? {
        Lookup::Found(run) => Ok(run),
        Lookup::Unknown(unknown) => Err(named::sentence(&unknown)),
    };
    Ok(Target { name: name.to_owned(), run })
}

/// Asks for confirmation of several runs; refuses without a terminal.
pub(super) fn confirm(count: usize, order: &Order) -> Result<()> {
    let verb = order.verb();
    confirmed(&format!("{verb} {count} runs"), &format!("{count} runs are selected"))
}
