//! `longhaul reconcile`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::arguments::Reconcile;
use crate::exit::{Exit, usage};
use crate::owner::{Answer, Ask};
use crate::term;

pub(super) async fn run(data_dir: &Path, arguments: &Reconcile) -> Result<Exit> {
    let output = arguments.output.as_deref().map(serde_json::from_str).transpose();
    let output = output.context("--output is not JSON").map_err(|error| usage(format!("{error:#}")))?;
    let access = super::reach(data_dir).await?;
    let run = super::named::run(&access, &arguments.run, &arguments.dir).await?;
    let request = super::requested(&arguments.why);
    let question = Ask::Reconcile { run: run.clone(), landed: arguments.landed, output, request };
    if let Answer::Told { .. } = super::ask(&access, question).await? {
        let word = if arguments.landed { "landed" } else { "not landed" };
        term::say(format!("run {run}: recorded as {word}; it goes on when its project runs"));
    }
    Ok(Exit::Ok)
}
