//! `longhaul fork`, `restart`, `rollback`, `checkpoint` and `checkpoints`.

mod documents;

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use longhaul_engine::Request;

use super::named;
use super::page::{self, Page};
use crate::arguments::{Checkpoint, Checkpoints, Fork, Output, Restart, Rollback};
use crate::document;
use crate::exit::Exit;
use crate::place::Project;
use crate::term;
use longhaul_server::{self, Again, Answer, Ask, Client, From, Limits, Listener, Report, Row};

pub(super) use documents::{CheckpointDocument, CheckpointsDocument, ForkDocument, RollbackDocument};

pub(super) async fn fork(data_dir: &Path, arguments: Fork) -> Result<Exit> {
    let access = super::reach(data_dir).await?;
    let run = named::run(&access, &arguments.run, &arguments.within.dir).await?;
    let request = arguments.asked.request();
    let Fork { from, note, set, output, .. } = arguments;
    let again = Again::Fork { run, from, note, set, request: request.clone() };
    ask(&access, again, &request, output).await
}

pub(super) async fn restart(data_dir: &Path, arguments: Restart) -> Result<Exit> {
    let access = super::reach(data_dir).await?;
    let run = named::run(&access, &arguments.run, &arguments.within.dir).await?;
    let request = arguments.asked.request();
    let again = Again::Fork { run, from: From::Start, note: None, set: Vec::new(), request: request.clone() };
    ask(&access, again, &request, arguments.output).await
}

pub(super) async fn rollback(data_dir: &Path, arguments: Rollback) -> Result<Exit> {
    let project = Project::at(&arguments.dir).await?.id;
    let request = arguments.asked.request();
    let again = Again::Rollback { project, to: arguments.to, request: request.clone() };
    let desk = loop {
        if let access @ Client::Remote(_) = super::reach(data_dir).await? {
            return ask(&access, again, &request, arguments.output).await;
        }
        // Nobody runs the log: we do, for as long as its project needs to go back. It is halted, so no agent is started.
        match longhaul_server::open(data_dir, Limits { agents: 1, checks: 1 }).await {
            Ok(desk) => break desk,
            // Somebody was faster, and is to be asked.
            Err(error) if error.is_owned() => {}
            Err(error) => return Err(error.into()),
        }
    };
    let _server = Listener::start(data_dir, Arc::clone(&desk))?;
    let exit = ask(&Client::Local(Arc::clone(&desk)), again, &request, arguments.output).await;
    desk.stop().await;
    exit
}

pub(super) async fn checkpoint(data_dir: &Path, arguments: Checkpoint) -> Result<Exit> {
    let access = super::reach(data_dir).await?;
    let run = named::run(&access, &arguments.run, &arguments.within.dir).await?;
    let request = arguments.asked.request();
    let again = Again::Checkpoint { run, note: arguments.note, request: request.clone() };
    ask(&access, again, &request, arguments.output).await
}

pub(super) async fn checkpoints(data_dir: &Path, arguments: &Checkpoints) -> Result<Exit> {
    let access = super::reach(data_dir).await?;
    let target = arguments.target.clone().unwrap_or_else(|| arguments.within.dir.to_string_lossy().into_owned());
    let target = named::run_or_dir(&access, &target, &arguments.within.dir).await?;
    let target = target.map_err(|unknown| named::refusal(&unknown))?;
    let answer = super::ask(&access, Ask::Again { again: Again::Checkpoints { target } }).await?;
    let Answer::Again { report: Report::Checkpoints { rows } } = answer else { return Ok(Exit::Ok) };
    drop(access);
    match arguments.output {
        Output::Json => document::print(CheckpointsDocument::of(rows))?,
        Output::Table => term::print(table(&rows)),
    }
    Ok(Exit::Ok)
}

/// For people.
fn table(rows: &[Row]) -> String {
    let row = |Row { run, name, fork, rollback, checkpoint }: &Row| {
        let takes = [(*fork, "fork"), (*rollback, "rollback")].into_iter().filter(|(takes, _)| *takes);
        let takes: Vec<&str> = takes.map(|(_, verb)| verb).collect();
        let at = page::time(checkpoint.at);
        let commit = checkpoint.commit.chars().take(10).collect();
        let position = checkpoint.position.to_string();
        let name = if *fork { name.clone() } else { String::new() };
        vec![run.to_string(), name, position, takes.join(", "), at, commit, page::safe(&checkpoint.step)]
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    Page::here().table(&["RUN", "FROM", "POSITION", "FOR", "TIME", "COMMIT", "STEP"], &rows)
}

/// Asks, and says what came of it.
async fn ask(access: &Client, again: Again, request: &Request, output: Output) -> Result<Exit> {
    let Request { by, why } = request;
    match super::ask(access, Ask::Again { again }).await? {
        Answer::Again { report: Report::Forked { run, origin, asked, position, commit } } => {
            if position != asked {
                term::say(format!(
                    "position {asked} is within a step: it goes on behind {position}, the last one that is whole before it"
                ));
            }
            let on =
                commit.as_ref().map_or_else(|| "with a fresh work tree".into(), |commit| format!("on commit {commit}"));
            term::say(format!(
                "{run}: goes on from {origin}@{position} {on}; `longhaul run` goes on with it if nothing runs it now"
            ));
            match output {
                Output::Table => term::print(run.to_string()),
                Output::Json => {
                    let (run, origin) = (run.to_string(), origin.to_string());
                    document::print(ForkDocument { run, origin, asked, position, commit, by, why })?;
                }
            }
        }
        Answer::Again { report: Report::RolledBack { to, kept, undone } } => {
            let shown = if undone.is_empty() { "no feature".to_owned() } else { undone.join(", ") };
            term::say(format!(
                "rolled back to {to}; to be done again: {shown}; the old tip is kept: {kept}; `longhaul run` goes on from \
                 there"
            ));
            if output == Output::Json {
                document::print(RollbackDocument { to, kept, undone, by, why })?;
            }
        }
        Answer::Again { report: Report::Kept { run, number, commit } } => {
            let name = format!("checkpoint:{number}");
            term::say(format!("{run}: kept as commit {commit}; `longhaul fork {run} --from {name}`"));
            match output {
                Output::Table => term::print(name),
                Output::Json => {
                    let run = run.to_string();
                    document::print(CheckpointDocument { run, name, commit, by, why })?;
                }
            }
        }
        Answer::Again { report: Report::Said { text } } => term::say(text),
        Answer::Again { report: Report::Held { reason } } => {
            term::say(format!("longhaul: {reason}"));
            return Ok(Exit::Suspended);
        }
        Answer::Again { report: Report::Diverged { reason } } => {
            term::say(format!("longhaul: {reason}"));
            return Ok(Exit::Finding);
        }
        _ => {}
    }
    Ok(Exit::Ok)
}
