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

use super::named::{self, name, refusal};
use super::page;
use crate::arguments::look::Look;
use crate::exit::{self, Exit, usage};
use crate::term;
use longhaul_server::views::list::RunLine;
use longhaul_server::views::{Document, Question};
use longhaul_server::{Answer, Ask, Client};

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
    let Some(access) = Client::reach(data_dir, term::notice).await? else { return Ok(None) };
    ask_at(&access, question).await.map(Some)
}

async fn ask_at(access: &Client, question: Question) -> Result<Document> {
    match super::ask(access, Ask::Look { what: question }).await? {
        Answer::Looked { document } => match *document {
            Document::Unknown(unknown) => Err(refusal(&unknown)),
            Document::Gone(reason) => Err(usage(reason)),
            document => Ok(document),
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
    exit::of(error) == Exit::Usage
}

/// An answer to something else than what was asked.
fn unexpected(answer: &impl std::fmt::Debug) -> anyhow::Error {
    anyhow::anyhow!("the running Longhaul answers something else than what was asked: {answer:?}")
}

/// Says that nothing is being done, if something is to be done.
fn say_if_idle<'a>(is_running: bool, runs: impl IntoIterator<Item = &'a RunLine>) {
    if !is_running && runs.into_iter().any(|run| run.status == "running") {
        term::say("no process runs this log now: what is running there goes on with `longhaul run`");
    }
}
