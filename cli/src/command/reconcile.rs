//! `longhaul reconcile`.

use std::path::Path;

use anyhow::{Context, Result};

use super::steer::OrderDocument;
use crate::arguments::{Output, Reconcile};
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;

pub(super) async fn run(data_dir: &Path, arguments: &Reconcile) -> Result<Exit> {
    let result = arguments.result.as_deref().map(serde_json::from_str).transpose();
    let output =
        result.context("--result is not JSON").map_err(|error| usage(format!("{error:#}")))?;
    let access = super::reach(data_dir).await?;
    let run = super::named::run(&access, &arguments.one.run, &arguments.one.scope.dir).await?;
    let request = arguments.request.request();
    let happened = arguments.happened;
    let reconcile =
        longhaul_server::Reconcile { run: run.clone(), happened, output, request: request.clone() };
    let waits = super::call(&access, reconcile).await?.waits();
    let word = if happened { "happened" } else { "did not happen" };
    term::say(format!("run {run}: recorded as {word}; it continues when its project runs"));
    if arguments.output == Output::Json {
        document::print(OrderDocument::of_one("reconcile", run.as_str(), waits, &request))?;
    }
    Ok(Exit::Ok)
}
