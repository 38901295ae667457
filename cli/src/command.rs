//! The commands, one per file.

mod agent;
mod answer;
mod batch;
mod bench;
mod completions;
mod demo;
mod feature;
mod init;
mod look;
mod maintenance;
mod named;
mod overview;
mod owner;
mod reconcile;
mod rewind;
mod run;
mod schema;
mod selection;
pub(crate) mod status;
mod steer;
pub(crate) mod watch;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::arguments::{Arguments, Command};
use crate::exit::{Exit, usage};
use crate::place;
use crate::{term, terminal};
use longhaul_server::{Client, Error, Order, Perform, RequestError, advice, refuse_out_of_reach};

/// Runs a command.
pub(crate) async fn run(mut arguments: Arguments) -> Result<Exit> {
    // Not an `env` of the argument: usage errors would show the option as a required one.
    let variable = std::env::var_os("LONGHAUL_HOME").filter(|home| !home.is_empty());
    arguments.data_dir = arguments.data_dir.or_else(|| variable.clone().map(PathBuf::from));
    // Commands without a log also work without a data directory.
    let command = match arguments.command {
        Command::Init(init) => return init::run(&init).await,
        Command::Schema(schema) => return schema::run(&schema),
        Command::Replay(replay) => {
            return maintenance::replay(arguments.data_dir.as_deref(), &replay).await;
        }
        Command::Completions(completions) => return Ok(completions::run(&completions)),
        command => command,
    };
    let data_dir = place::data_dir(arguments.data_dir.as_deref())?;
    // Without the argument, advised commands find the data directory as this one does.
    let usual = place::data_dir(variable.as_deref().map(Path::new)).ok();
    if usual.as_ref() != Some(&data_dir) {
        term::advise_data_dir(advice::quoted(&data_dir.to_string_lossy()));
    }
    let outcome = Box::pin(run_on(&data_dir, command)).await;
    if outcome.is_err() {
        // A sandbox hides the project's repository, too, which looks damaged then.
        refuse_out_of_reach(&data_dir)?;
    }
    outcome
}

async fn run_on(data_dir: &Path, command: Command) -> Result<Exit> {
    match command {
        Command::Run(run) => run::run(data_dir, &run, None).await,
        Command::Batch(batch) => Box::pin(batch::run(data_dir, &batch)).await,
        Command::Status(show) => status::run(data_dir, &show).await,
        Command::Watch(arguments) => watch::run(data_dir, &arguments).await,
        Command::Feature(feature) => Box::pin(feature::run(data_dir, feature)).await,
        Command::Look(look) => look::run(data_dir, look).await,
        Command::Pause(steer) => steer::projects(data_dir, steer, Order::Pause).await,
        Command::Resume(steer) => steer::projects(data_dir, steer, Order::Resume).await,
        Command::Cancel(steer) => steer::projects(data_dir, steer, Order::Cancel).await,
        Command::Terminate(steer) => steer::projects(data_dir, steer, Order::Terminate).await,
        Command::Agent(agent) => Box::pin(agent::run(data_dir, agent)).await,
        Command::Signal(signal) => steer::signal(data_dir, signal).await,
        Command::Steer(arguments) => steer::steer(data_dir, arguments).await,
        Command::Answer(arguments) => answer::run(data_dir, arguments).await,
        Command::Approve(answer) => steer::verdict(data_dir, answer, Order::Approve).await,
        Command::Deny(answer) => steer::verdict(data_dir, answer, Order::Deny).await,
        Command::Fork(fork) => rewind::fork(data_dir, fork).await,
        Command::Restart(restart) => rewind::restart(data_dir, restart).await,
        Command::Rollback(rollback) => rewind::rollback(data_dir, rollback).await,
        Command::Checkpoint(checkpoint) => rewind::checkpoint(data_dir, checkpoint).await,
        Command::Checkpoints(checkpoints) => rewind::checkpoints(data_dir, &checkpoints).await,
        Command::Reconcile(reconcile) => reconcile::run(data_dir, &reconcile).await,
        Command::Export(export) => maintenance::export(data_dir, &export).await,
        Command::Import(import) => maintenance::import(data_dir, &import).await,
        Command::Backup(backup) => maintenance::backup(data_dir, &backup).await,
        Command::Restore(restore) => maintenance::restore(data_dir, &restore).await,
        Command::Check(check) => maintenance::check(data_dir, &check).await,
        Command::Prune(prune) => maintenance::prune(data_dir, &prune).await,
        Command::Doctor(doctor) => maintenance::doctor(data_dir, &doctor).await,
        Command::Demo(demo) => Box::pin(demo::run(data_dir, &demo)).await,
        Command::Bench(bench) => bench::run(data_dir, &bench).await,
        Command::Init(_) | Command::Schema(_) | Command::Replay(_) | Command::Completions(_) => {
            unreachable!("it has run already")
        }
    }
}

/// Connects to the log; an error if there is none.
async fn reach(data_dir: &Path) -> Result<Client> {
    Client::reach(data_dir, term::notice).await?.ok_or_else(|| no_log(data_dir))
}

fn no_log(data_dir: &Path) -> anyhow::Error {
    usage(format!("there is no log in {}: nothing has run yet", data_dir.display()))
}

/// Asks for the confirmation of an action; refuses without a terminal.
fn confirmed(action: &str, scope: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(usage(format!("{scope}: add --yes to confirm, or look with --dry-run")));
    }
    let _ = write!(std::io::stderr(), "{action}? [y/N] ");
    let mut word = String::new();
    std::io::stdin().lock().read_line(&mut word).context("cannot read the answer")?;
    let is_confirmed = matches!(word.trim(), "y" | "Y" | "yes");
    if is_confirmed { Ok(()) } else { Err(usage("not confirmed: nothing was changed")) }
}

/// Refuses to overwrite a file without --force.
fn refuse_to_write_over(file: &Path, force: bool) -> Result<()> {
    let shown = file.display();
    if file.is_dir() {
        return Err(usage(format!("{shown} is a directory: name a file")));
    }
    if file.exists() && !force {
        return Err(usage(format!(
            "{shown} exists: name another file, or overwrite it with --force"
        )));
    }
    Ok(())
}

/// Sends a request.
async fn call<R: Perform>(client: &Client, request: R) -> Result<R::Response> {
    client.call(request).await.map_err(explained)
}

/// The error of a request, with an explanation of an unresolved name.
fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::Request(RequestError::UnknownName(unknown)) => named::refusal(&unknown),
        error => error.into(),
    }
}

/// Whether the owner of the log exited before it responded.
fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Gone(_)))
}
