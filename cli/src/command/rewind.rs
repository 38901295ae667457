//! `longhaul fork`, `restart`, `rollback`, `checkpoint` and `checkpoints`.

mod documents;

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
    Error, Fork, Forked, From, Gone, Limits, ListCheckpoints, RollBack, RolledBack, Row,
    TakeCheckpoint, Taken,
};

pub(super) use documents::{
    CheckpointDocument, CheckpointsDocument, ForkDocument, RollbackDocument,
};

pub(super) async fn fork(data_dir: &Path, arguments: arguments::Fork) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = named::run(&client, &arguments.one.run, &arguments.one.within.dir).await?;
    let request = arguments.asked.request();
    let arguments::Fork { from, note, set, output, .. } = arguments;
    show_fork(
        super::call(&client, Fork { run, from, note, set, request: request.clone() }).await?,
        &request,
        output,
    )
}

pub(super) async fn restart(data_dir: &Path, arguments: Restart) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = named::run(&client, &arguments.one.run, &arguments.one.within.dir).await?;
    let request = arguments.asked.request();
    let fork =
        Fork { run, from: From::Start, note: None, set: Vec::new(), request: request.clone() };
    show_fork(super::call(&client, fork).await?, &request, arguments.output)
}

pub(super) async fn rollback(data_dir: &Path, arguments: Rollback) -> Result<Exit> {
    let Project { id: project, root } = Project::at(&arguments.dir).await?;
    let request = arguments.asked.request();
    let roll_back = RollBack { project, to: arguments.to, request: request.clone() };
    // Fails without a log, because owning the log would create one.
    drop(super::reach(data_dir).await?);
    // The project is halted, so this process starts no agent when it owns the log.
    let limits = Limits { agents: 1, checks: 1 };
    let rolled_back = owner::join_or_own(data_dir, limits, async |client, _| {
        super::call(client, roll_back.clone()).await.map_err(|error| match error.downcast_ref() {
            Some(Error::Gone(gone)) if !matches!(gone, Gone::Before) => operational(gone),
            _ => error,
        })
    });
    let Some(rolled_back) = rolled_back.await? else { return Ok(Exit::Suspended) };
    show_rollback(rolled_back, &root, &request, arguments.output)
}

pub(super) async fn checkpoint(data_dir: &Path, arguments: Checkpoint) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = named::run(&client, &arguments.one.run, &arguments.one.within.dir).await?;
    let request = arguments.asked.request();
    let take = TakeCheckpoint { run, note: arguments.note, request: request.clone() };
    let Taken { run, number, commit } = super::call(&client, take).await?;
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
    let target = arguments
        .target
        .clone()
        .unwrap_or_else(|| arguments.within.dir.to_string_lossy().into_owned());
    let target = named::run_or_dir(&client, &target, &arguments.within.dir).await?;
    let target = target.map_err(|unknown| named::refusal(&unknown))?;
    let rows = super::call(&client, ListCheckpoints { target }).await?;
    drop(client);
    match arguments.output {
        Output::Json => document::print(CheckpointsDocument::of(rows))?,
        Output::Table => term::print(table(&rows)),
    }
    Ok(Exit::Ok)
}

/// The table for people.
fn table(rows: &[Row]) -> String {
    let row = |Row { run, name, fork, rollback, checkpoint }: &Row| {
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

fn show_fork(forked: Forked, request: &RequestedBy, output: Output) -> Result<Exit> {
    let Forked { run, origin, asked, position, commit } = forked;
    if position != asked {
        term::say(format!(
            "position {asked} is within a step: the run continues after {position}, the end of the step before"
        ));
    }
    let on = commit
        .as_ref()
        .map_or_else(|| "with a fresh work tree".into(), |commit| format!("on commit {commit}"));
    term::say(format!(
        "{run}: continues from {origin}@{position} {on}; {} says how it continues",
        advice::on("why", &run)
    ));
    match output {
        Output::Table => term::print(run.to_string()),
        Output::Json => {
            let RequestedBy { by, why } = request;
            let run = run.to_string();
            let origin = origin.to_string();
            document::print(ForkDocument { run, origin, asked, position, commit, by, why })?;
        }
    }
    Ok(Exit::Ok)
}

fn show_rollback(
    rolled_back: RolledBack,
    root: &Path,
    request: &RequestedBy,
    output: Output,
) -> Result<Exit> {
    let RolledBack { to, kept, undone } = rolled_back;
    let shown = if undone.is_empty() { "no feature".to_owned() } else { undone.join(", ") };
    term::say(format!(
        "rolled back to {to}; to be done again: {shown}; the old tip is kept: {kept}; {} continues from there",
        advice::run(root)
    ));
    if output == Output::Json {
        let RequestedBy { by, why } = request;
        document::print(RollbackDocument { to, kept, undone, by, why })?;
    }
    Ok(Exit::Ok)
}
