//! `longhaul bench`: measures this machine. A missed target does not change the exit code.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{self, Output};
use crate::document;
use crate::exit::Exit;
use crate::term;

pub(super) async fn run(data_dir: &Path, arguments: &arguments::Bench) -> Result<Exit> {
    if let Some(figures) = longhaul_bench::part().await? {
        term::print_data(figures);
        return Ok(Exit::Ok);
    }
    if cfg!(debug_assertions) {
        term::say(
            "longhaul: compiled without optimisation; build with --release for meaningful figures",
        );
    }
    let parent = arguments.dir.as_deref().unwrap_or(data_dir);
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    // An interrupted measurement is dropped, which removes its directory.
    let report = tokio::select! {
        report = longhaul_bench::measure(parent, arguments.quick, term::notice) => report?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    };
    match arguments.output {
        Output::Json => document::print(&report)?,
        Output::Table => term::print(report),
    }
    Ok(Exit::Ok)
}
