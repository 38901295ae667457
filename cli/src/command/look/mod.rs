//! The commands that look: they ask the log and show what it says.

mod describe;
mod graph;
mod history;
mod list;
mod logs;
mod tree;
mod why;

use std::path::Path;

use anyhow::Result;

use super::page;
use crate::arguments::look::Look;
use crate::exit::{Complaint, Exit, usage};
use crate::look::list::RunLine;
use crate::look::{Document, Name, Nameless, Question, Unknown};
use crate::owner::{Access, Answer, Ask};
use crate::place::{self, Project};
use crate::term;

pub(super) async fn run(data_dir: &Path, look: Look) -> Result<Exit> {
    match look {
        Look::List(arguments) => list::run(data_dir, arguments).await,
        Look::Describe(arguments) => describe::run(data_dir, &arguments).await,
        Look::History(arguments) => history::run(data_dir, &arguments).await,
        Look::Logs(arguments) => logs::run(data_dir, &arguments).await,
        Look::Tree(arguments) => tree::run(data_dir, &arguments).await,
        Look::Graph(arguments) => graph::run(data_dir, &arguments).await,
        Look::Why(arguments) => why::run(data_dir, &arguments).await,
        Look::Schema(arguments) => super::schema::run(&arguments),
    }
}

/// Asks the log; `None` if there is none yet.
async fn ask(data_dir: &Path, question: Question) -> Result<Option<Document>> {
    let Some(access) = Access::reach(data_dir).await? else { return Ok(None) };
    match super::ask(&access, Ask::Look { what: question }).await? {
        Answer::Looked { document } => match *document {
            Document::Unknown(unknown) => Err(refusal(&unknown)),
            document => Ok(Some(document)),
        },
        answer => Err(unexpected(&answer)),
    }
}

/// Asks the log, which has to be there.
async fn ask_log(data_dir: &Path, question: Question) -> Result<Document> {
    ask(data_dir, question).await?.ok_or_else(|| super::no_log(data_dir))
}

/// Whether whoever gave the command is to correct it.
fn is_usage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Complaint>().is_some_and(|complaint| complaint.exit == Exit::Usage)
}

/// An answer to something else than what was asked.
fn unexpected(answer: &impl std::fmt::Debug) -> anyhow::Error {
    anyhow::anyhow!("the running Longhaul answers something else than what was asked: {answer:?}")
}

/// A run or a feature as a person names it. Outside of a project only runs can be named.
async fn name(text: &str, dir: &Path) -> Result<Name> {
    place::is_there(dir)?;
    let project = Project::known_at(dir).await.map(|project| project.id);
    Ok(Name { text: text.to_owned(), project })
}

/// Says that nothing is being done, if something is to be done.
fn say_if_idle<'a>(is_running: bool, runs: impl IntoIterator<Item = &'a RunLine>) {
    if !is_running && runs.into_iter().any(|run| run.status == "running") {
        term::say("no process runs this log now: what is running there goes on with `longhaul run`");
    }
}

fn refusal(unknown: &Unknown) -> anyhow::Error {
    let Unknown { name, why, meant } = unknown;
    match why {
        Nameless::NoRun => usage(format!("the feature `{name}` has had no run yet: `longhaul why {name}` says why")),
        Nameless::Several => {
            usage(format!("`{name}` is the name of several runs; write more of one of these: {}", meant.join(", ")))
        }
        Nameless::Nothing if meant.is_empty() => {
            usage(format!("the log knows no run or feature `{name}`; `longhaul list` shows the runs"))
        }
        Nameless::Nothing => {
            usage(format!("the log knows no run or feature `{name}`; did you mean one of these? {}", meant.join(", ")))
        }
    }
}
