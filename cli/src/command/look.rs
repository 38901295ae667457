//! The read-only commands: they query the log and print the response.

mod describe;
mod graph;
mod history;
mod list;
mod logs;
mod session;
pub(super) mod transcript;
mod tree;
mod usage;
pub(super) mod why;

use std::path::Path;

use anyhow::Result;

pub(super) use graph::{DagRow, dag_rows, sign};
pub(super) use history::HistoryDocument;
pub(super) use logs::SessionOutput;
pub(super) use session::list as sessions;

use super::named::{self, name};
use super::{call, explained, is_gone, reach, terminal};
use crate::arguments::look::Look;
use crate::exit::{self, Exit};
use crate::term;
use longhaul_server::Owner;
use longhaul_server::views::Name;
use longhaul_server::views::list::RunLine;
use longhaul_server::{Perform, advice};

pub(super) async fn run(data_dir: &Path, look: Look) -> Result<Exit> {
    match look {
        Look::List(arguments) => list::run(data_dir, arguments).await,
        Look::Describe(arguments) => describe::run(data_dir, &arguments).await,
        Look::History(arguments) => history::run(data_dir, &arguments).await,
        Look::Logs(arguments) => logs::run(data_dir, &arguments).await,
        Look::Tree(arguments) => tree::run(data_dir, &arguments).await,
        Look::Graph(arguments) => graph::run(data_dir, &arguments).await,
        Look::Why(arguments) => why::run(data_dir, &arguments).await,
        Look::Session(arguments) => session::run(data_dir, arguments).await,
        Look::Usage(arguments) => usage::run(data_dir, &arguments).await,
    }
}

/// Sends a request to an existing log.
async fn ask<R: Perform>(data_dir: &Path, request: R) -> Result<R::Response> {
    call(&reach(data_dir).await?, request).await
}

/// Whether the command is wrong rather than the log.
fn is_usage(error: &anyhow::Error) -> bool {
    exit::of(error) == Exit::Usage
}

/// The command that explains a run or a feature, from any directory.
fn why_of(name: &Name) -> String {
    let text = match &name.project {
        Some(project) if !name.text.starts_with(project.as_str()) => {
            format!("{project}/{}", name.text)
        }
        _ => name.text.clone(),
    };
    advice::command(["why", text.as_str()])
}

/// Prints a hint that no process runs the log, if there is work.
fn say_if_idle<'a>(is_running: bool, runs: impl IntoIterator<Item = &'a RunLine>) {
    let rests = |run: &RunLine| run.reason.as_deref() == Some(Owner::NOT_RUN);
    if !is_running && runs.into_iter().any(rests) {
        term::say("no process runs this log now; `longhaul status --all` shows its projects");
    }
}
