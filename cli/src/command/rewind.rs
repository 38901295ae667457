//! `longhaul fork`, `restart`, `rollback`, `checkpoint` and `checkpoints`.

mod documents;
mod forks;

use std::path::Path;

use anyhow::Result;
use longhaul_engine::RequestedBy;

use super::terminal::{self, Terminal};
use super::{named, owner};
use crate::arguments::{self, Checkpoint, Checkpoints, Output, Restart, Rollback};
use crate::document;
use crate::exit::{Exit, operational};
use crate::place::Project;
use crate::term;
use longhaul_server::advice;
use longhaul_server::{
    Error, From, Gone, Limits, ListCheckpoints, RewindPoint, RollBack, RolledBack, TakeCheckpoint,
    TakenCheckpoint,
};

pub(super) use documents::{
    CheckpointDocument, CheckpointsDocument, ForkDocument, ForksDocument, RollbackDocument,
};

pub(super) async fn fork(data_dir: &Path, arguments: arguments::Fork) -> Result<Exit> {
    let request = arguments.asked.request();
    let arguments::Fork { runs, from, note, set, output, .. } = arguments;
    forks::run(data_dir, &runs, &forks::Order { from, note, set, request }, output).await
}

pub(super) async fn restart(data_dir: &Path, arguments: Restart) -> Result<Exit> {
    let request = arguments.asked.request();
    let order = forks::Order { from: From::Start, note: None, set: Vec::new(), request };
    forks::run(data_dir, &arguments.runs, &order, arguments.output).await
}

pub(super) async fn rollback(data_dir: &Path, arguments: Rollback) -> Result<Exit> {
    let Project { id: project, root } = Project::at(&arguments.dir).await?;
    let request = arguments.asked.request();
    let to = arguments.to.clone();
    let roll_back = RollBack { project, to, request: request.clone(), dry_run: arguments.dry_run };
    if arguments.dry_run || !arguments.yes {
        // Fails without a log, because owning the log would create one.
        let client = super::reach(data_dir).await?;
        let preview = RollBack { dry_run: true, ..roll_back.clone() };
        let preview = super::call(&client, preview).await?;
        drop(client);
        if arguments.dry_run {
            return show_rollback(preview, &arguments, &root, &request);
        }
        let count = preview.undone.len();
        if count > 1 {
            let features = preview.undone.join(", ");
            super::confirmed(
                &format!("undo {count} features ({features})"),
                &format!("{count} features would be done again: {features}"),
            )?;
        }
    } else {
        drop(super::reach(data_dir).await?);
    }
    // The project is halted, so this process starts no agent when it owns the log.
    let limits = Limits { agents: 1, checks: 1 };
    let rolled_back = owner::join_or_own(data_dir, limits, async |client, _| {
        super::call(client, roll_back.clone()).await.map_err(|error| match error.downcast_ref() {
            Some(Error::Gone(gone)) if !matches!(gone, Gone::Before) => operational(gone),
            _ => error,
        })
    });
    let Some(rolled_back) = rolled_back.await? else { return Ok(Exit::Suspended) };
    show_rollback(rolled_back, &arguments, &root, &request)
}

pub(super) async fn checkpoint(data_dir: &Path, arguments: Checkpoint) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = named::run(&client, &arguments.one.run, &arguments.one.within.dir).await?;
    let request = arguments.asked.request();
    let take = TakeCheckpoint { run, note: arguments.note, request: request.clone() };
    let TakenCheckpoint { run, number, commit } = super::call(&client, take).await?;
    let name = format!("checkpoint:{number}");
    term::say(format!("{run}: kept as commit {commit}; `longhaul fork {run} --from {name}`"));
    match arguments.output {
        Output::Table => term::print(name),
        Output::Json => {
            let (run, RequestedBy { by, why }) = (run.to_string(), &request);
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
            terminal::safe(&checkpoint.step),
        ]
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    Terminal::here().table(&["RUN", "FROM", "POSITION", "FOR", "TIME", "COMMIT", "STEP"], &rows)
}

fn show_rollback(
    rolled_back: RolledBack,
    arguments: &Rollback,
    root: &Path,
    request: &RequestedBy,
) -> Result<Exit> {
    let RolledBack { to, kept, undone } = rolled_back;
    let dry_run = arguments.dry_run;
    let shown = if undone.is_empty() { "no feature".to_owned() } else { undone.join(", ") };
    term::say(if dry_run {
        format!("would be rolled back to {to}; to be done again: {shown}")
    } else {
        format!(
            "rolled back to {to}; to be done again: {shown}; the old tip is kept: {kept}; {} continues from there",
            advice::run(root)
        )
    });
    if arguments.output == Output::Json {
        let RequestedBy { by, why } = request;
        document::print(RollbackDocument { dry_run, to, kept, undone, by, why })?;
    }
    Ok(Exit::Ok)
}
