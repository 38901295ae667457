//! The commands: one a file.

mod again;
mod bench;
mod completions;
mod demo;
mod feature;
mod init;
mod reconcile;
mod run;
mod status;
mod steer;

use anyhow::Result;
use longhaul_engine::Request;

use crate::arguments::{Arguments, Command};
use crate::exit::{Exit, usage};
use crate::owner::{Access, Answer, Ask};
use crate::place;

/// Runs a command.
pub(crate) async fn run(arguments: Arguments) -> Result<Exit> {
    let data_dir = place::data_dir(arguments.data_dir.as_deref())?;
    match arguments.command {
        Command::Init(init) => init::run(&init).await,
        Command::Run(run) => run::run(&data_dir, &run).await,
        Command::Status(show) => status::run(&data_dir, &show).await,
        Command::Feature(feature) => feature::run(&data_dir, feature).await,
        Command::Pause(steer) => steer::run(&data_dir, &steer, crate::owner::Order::Pause).await,
        Command::Resume(steer) => steer::run(&data_dir, &steer, crate::owner::Order::Resume).await,
        Command::Cancel(steer) => steer::run(&data_dir, &steer, crate::owner::Order::Cancel).await,
        Command::Fork(fork) => again::fork(&data_dir, fork).await,
        Command::Restart(restart) => again::restart(&data_dir, restart).await,
        Command::Rollback(rollback) => again::rollback(&data_dir, rollback).await,
        Command::Checkpoint(checkpoint) => again::checkpoint(&data_dir, checkpoint).await,
        Command::Checkpoints(checkpoints) => again::checkpoints(&data_dir, &checkpoints).await,
        Command::Reconcile(reconcile) => reconcile::run(&data_dir, &reconcile).await,
        Command::Demo(demo) => demo::run(&data_dir, &demo).await,
        Command::Bench(bench) => bench::run(&data_dir, &bench).await,
        Command::Completions(completions) => Ok(completions::run(&completions)),
    }
}

/// Who gives this command.
fn requested(why: &str) -> Request {
    let by = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".into());
    Request { by, why: why.to_owned() }
}

/// Asks, and makes an error of every answer that is a no.
async fn ask(access: &Access, question: Ask) -> Result<Answer> {
    match access.ask(question).await? {
        Answer::Unknown { run } => Err(usage(format!("the log knows no project or run `{run}`"))),
        Answer::Refused { reason } => Err(usage(reason)),
        Answer::Failed { reason } => Err(anyhow::anyhow!(reason)),
        answer => Ok(answer),
    }
}
