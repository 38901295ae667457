//! `longhaul fork`, `restart`, `rollback`, `checkpoint` and `checkpoints`.

mod documents;
mod forks;
mod rollback;

use std::path::Path;

use anyhow::Result;
use longhaul_engine::RequestedBy;

use super::named;
use super::terminal::{self, Terminal};
use crate::arguments::{self, Checkpoint, Checkpoints, Output, Restart};
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::advice;
use longhaul_server::{ForkPoint, ListCheckpoints, RewindPoint, TakeCheckpoint, TakenCheckpoint};

pub(super) use documents::{
    CheckpointDocument, CheckpointsDocument, ForkDocument, ForksDocument, RollbackDocument,
    RollbacksDocument,
};
pub(super) use rollback::rollback;

pub(super) async fn fork(data_dir: &Path, arguments: arguments::Fork) -> Result<Exit> {
    let request = arguments.request.request();
    let arguments::Fork { runs, from, note, set, output, .. } = arguments;
    forks::run(data_dir, &runs, &forks::Order { from, note, set, request }, output).await
}

pub(super) async fn restart(data_dir: &Path, arguments: Restart) -> Result<Exit> {
    let request = arguments.request.request();
    let order = forks::Order { from: ForkPoint::Start, note: None, set: Vec::new(), request };
    forks::run(data_dir, &arguments.runs, &order, arguments.output).await
}

pub(super) async fn checkpoint(data_dir: &Path, arguments: Checkpoint) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = named::run(&client, &arguments.one.run, &arguments.one.scope.dir).await?;
    let request = arguments.request.request();
    let take = TakeCheckpoint { run, note: arguments.note, request: request.clone() };
    let TakenCheckpoint { run, number, commit, is_open } = super::call(&client, take).await?;
    let name = format!("checkpoint:{number}");
    let fork = advice::command(["fork", run.as_str(), "--from", &*name]);
    term::say(if is_open {
        let cancel = advice::on("cancel", &run);
        format!(
            "{run}: kept as commit {commit}; {cancel} ends the run, and after its end {fork} \
             continues from there"
        )
    } else {
        format!("{run}: kept as commit {commit}; {fork} continues from there")
    });
    match arguments.output {
        Output::Table => term::print(name),
        Output::Json => {
            let run = run.to_string();
            let RequestedBy { by, why } = &request;
            document::print(CheckpointDocument { run, name, commit, by, why })?;
        }
    }
    Ok(Exit::Ok)
}

pub(super) async fn checkpoints(data_dir: &Path, arguments: &Checkpoints) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let target = named::target(&client, &arguments.target).await?;
    let rows = super::call(&client, ListCheckpoints { target }).await?;
    drop(client);
    match arguments.output {
        Output::Json => document::print(CheckpointsDocument::of(rows))?,
        Output::Table => term::print(table(&rows)),
    }
    Ok(Exit::Ok)
}

/// The table for people.
fn table(rows: &[RewindPoint]) -> String {
    let row = |RewindPoint { run, name, fork, rollback, checkpoint }: &RewindPoint| {
        let takes =
            [(*fork, "fork"), (*rollback, "rollback")].into_iter().filter(|(takes, _)| *takes);
        let takes: Vec<&str> = takes.map(|(_, verb)| verb).collect();
        let at = terminal::time(checkpoint.at);
        let commit = checkpoint.commit.chars().take(10).collect();
        let position = checkpoint.position.to_string();
        let name = if *fork { name.clone() } else { String::new() };
        vec![
            run.to_string(),
            name,
            position,
            takes.join(", "),
            at,
            commit,
            terminal::safe(&checkpoint.step.to_string()),
        ]
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    Terminal::here().table(&["RUN", "FROM", "POSITION", "FOR", "TIME", "COMMIT", "STEP"], &rows)
}
