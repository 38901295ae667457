//! `longhaul bench`: what this machine gives, beside what its disk and sled would give alone.
//!
//! Five things are measured with the code that also runs projects, in a directory of its own that is removed afterwards:
//!
//! 1. **Steps**: runs of ten sequential no-op activities with 100 bytes of input and of output, each durable before the
//!    next begins, with 1, 16 and 256 of them in flight. Right after each round come the ceilings, with histories of the
//!    same length (a record to begin, one a step, one to end), records of the same size, groups of the same size: a
//!    plain file (append, `fdatasync`) and sled (`apply_batch`, `flush`, `fdatasync`). Rates and ratios are medians of
//!    rounds, latencies percentiles over all of them.
//! 2. **Open**: a log of 10,000 runs with 100 events each, 1,000 of them not over: half in the middle of activities, half
//!    with an unread message. A new process opens it, cold where the system allows that to be asked for, and is done
//!    when each of the 1,000 has been replayed and its next step is durable.
//! 3. **Waiting**: 10,000 runs that wait for a message, in a new process: with the usual limits, under which most of
//!    them leave memory, and with all of them in it.
//! 4. **Scheduler**: a backlog of 100,000 features with 300,000 dependencies, worked off from start to end.
//! 5. **Feature**: a project of small features, one after the other, with an agent that only writes a file; beside it, a
//!    shell script that does the same with git alone: a work tree, the agent, a commit, a check, a merge, the check again.
//!
//! Absolute figures hold for one machine and one moment; so the targets are ratios, except those of time and memory. A
//! target that is missed is a finding about the machine and does not change the exit code. `longhaul schema bench` says what
//! each figure of the document is.

mod ceiling;
mod child;
mod feature;
mod machine;
mod open;
mod place;
mod report;
mod samples;
mod scheduler;
mod steps;
mod table;
mod waiting;
mod workload;

use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{self, Output};
use crate::document;
use crate::exit::Exit;
use crate::term;

use place::Place;
pub(super) use report::Document;

pub(super) async fn run(data_dir: &Path, arguments: &arguments::Bench) -> Result<Exit> {
    if let Some(part) = child::asked() {
        child::answer(part).await?;
        return Ok(Exit::Ok);
    }
    if cfg!(debug_assertions) {
        term::say("longhaul: compiled without optimisation: these figures say little; build with --release");
    }
    let place = Place::within(arguments.dir.as_deref().unwrap_or(data_dir))?;
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    // Whatever ends this function drops `place`, and that removes the directory.
    let document = tokio::select! {
        measured = measure(place.path(), arguments.quick) => measured?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    };
    drop(place);
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => term::print(table::of(&document)),
    }
    Ok(Exit::Ok)
}

async fn measure(directory: &Path, quick: bool) -> Result<Document> {
    let scale = if quick { 10 } else { 1 };
    let mut steps = Vec::new();
    for in_flight in steps::IN_FLIGHT {
        term::say(format!("bench: steps, {in_flight} in flight"));
        steps.push(steps::measure(directory, in_flight, quick).await?);
    }
    term::say("bench: writing a log to open");
    let open = open::measure(&directory.join("open"), scale).await?;
    term::say("bench: waiting runs");
    let waiting = waiting::measure(directory, scale).await?;
    term::say("bench: scheduling a backlog");
    let scheduler = tokio::task::spawn_blocking(move || scheduler::measure(scale)).await??;
    term::say("bench: a project of small features");
    let feature = feature::measure(&directory.join("feature"), quick).await?;
    Ok(Document::new(quick, machine::describe(directory), steps, open, waiting, scheduler, feature))
}
