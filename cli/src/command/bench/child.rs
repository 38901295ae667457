//! Parts that are measured in a process of their own, so that its memory is that of the part.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{open, waiting};
use crate::term;

/// How the part is handed over: in the environment, since it is nothing that a person would ask for.
const VARIABLE: &str = "LONGHAUL_BENCH_PART";

/// What a child is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Part {
    /// Open a log, and go on with the runs that are not over.
    Open { directory: PathBuf, in_flight: u32 },
    /// Hold runs that wait.
    Waiting { directory: PathBuf, runs: usize, resident: bool },
}

/// The part that this process is started for, if it is a child.
pub(super) fn asked() -> Option<Part> {
    serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
}

/// Does a part and prints what came of it.
pub(super) async fn answer(part: Part) -> Result<()> {
    let answer = match part {
        Part::Open { directory, in_flight } => serde_json::to_string(&open::resume(&directory, in_flight).await?)?,
        Part::Waiting { directory, runs, resident } => {
            serde_json::to_string(&waiting::hold(&directory, runs, resident).await?)?
        }
    };
    term::print(answer);
    Ok(())
}

/// Has a part done by a new process.
pub(super) async fn ask<T: DeserializeOwned>(part: &Part) -> Result<T> {
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let mut command = tokio::process::Command::new(program);
    command.arg("bench").env(VARIABLE, serde_json::to_string(part)?).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.kill_on_drop(true).output().await.context("cannot start this program again")?;
    if !output.status.success() {
        bail!("a part of the measurement failed ({}): {part:?}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("a part of the measurement gave something else than figures")
}
