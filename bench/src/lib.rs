//! The measurements of `longhaul bench`: this machine, compared with its disk and sled alone.
//!
//! Seven things are measured with the code that also runs projects, in a temporary directory:
//!
//! 1. **Steps**: runs of ten sequential no-op activities with 100 bytes of input and of output,
//!    each durable before the next begins, with 1, 16 and 256 of them in flight. Right after each
//!    round come the ceilings, with histories of the same length, records of the same size and
//!    groups of the same size: a plain file (append, `fdatasync`) and sled (`apply_batch`, `flush`,
//!    `fdatasync`). Rates and ratios are medians of rounds, latencies percentiles over all of them.
//! 2. **Open**: a log of 10,000 runs with 100 events each, 1,000 of them active: half in the middle
//!    of activities, half with an unread message. A new process opens it, with a cold page cache
//!    where the system allows that, and is done when each of the 1,000 is replayed and its next
//!    step is durable.
//! 3. **Waiting**: 10,000 runs that wait for a message, in a new process: with the default limits,
//!    under which most of them leave memory, and with all of them in it.
//! 4. **Scheduler**: a backlog of 100,000 features with three dependencies each, worked off from
//!    start to end.
//! 5. **Feature**: a project of small features, one after the other, with an agent that only writes
//!    a file; beside it, a shell script that does the same with git alone: a work tree, the agent,
//!    a commit, a check, a merge, the check again.
//! 6. **Sessions**: sessions of the built-in agent on a scripted model service: the time of a turn
//!    without the model, with one session and with 50; the bytes of a turn in the log of a session
//!    of 1,000 turns; the memory of 500 sessions that wait for a person.
//! 7. **Batch**: 40 projects of five features each with eight agents, which take one second: how
//!    many agents are at work while there is work, and how long a feature is under way.
//!
//! Absolute figures hold for one machine and one moment, so the targets are ratios, except those of
//! time and memory.

mod batch;
mod ceiling;
mod feature;
mod machine;
mod open;
mod report;
mod scheduler;
mod sessions;
mod steps;
mod target;
mod waiting;
mod workload;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::process::Command;

use report::Measurements;
pub use report::Report;

longhaul_server::documents! {
    "bench" 1 Report,
}

/// The environment variable that hands a part to a child process.
const PART_VARIABLE: &str = "LONGHAUL_BENCH_PART";

/// A part that is measured in a process of its own, so that the memory of the process is that of
/// the part.
#[derive(Debug, Serialize, Deserialize)]
enum Part {
    /// Open a log and continue its active runs.
    Open { directory: PathBuf, active: u32 },
    /// Hold runs that wait.
    Waiting { directory: PathBuf, runs: usize, resident: bool },
    /// Hold sessions that wait for a person; the URL is that of their model.
    Asking { directory: PathBuf, url: String, sessions: usize, resident: bool },
}

impl Part {
    /// Measures this part in a new process of this program.
    async fn measure<T: DeserializeOwned>(&self) -> Result<T> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bench").env(PART_VARIABLE, serde_json::to_string(self)?);
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
        let output = command.output().await.context("cannot start this program again")?;
        if !output.status.success() {
            bail!("a part of the measurement failed ({}): {self:?}", output.status);
        }
        serde_json::from_slice(&output.stdout)
            .context("a part of the measurement printed no figures")
    }
}

/// Measures the part that this process was started for and returns its figures as JSON; `None` in
/// the first process.
pub async fn part() -> Result<Option<String>> {
    let Ok(part) = std::env::var(PART_VARIABLE) else { return Ok(None) };
    let figures = match serde_json::from_str(&part).context(PART_VARIABLE)? {
        Part::Open { directory, active } => {
            serde_json::to_string(&open::resume(&directory, active).await?)?
        }
        Part::Waiting { directory, runs, resident } => {
            serde_json::to_string(&waiting::hold(&directory, runs, resident).await?)?
        }
        Part::Asking { directory, url, sessions, resident } => {
            serde_json::to_string(&sessions::hold(&directory, &url, sessions, resident).await?)?
        }
    };
    Ok(Some(figures))
}

/// Measures everything in a temporary directory within `parent`; with `quick`, a tenth of the work.
///
/// `progress` is called at the beginning of each measurement.
pub async fn measure(parent: &Path, quick: bool, progress: fn(&str)) -> Result<Report> {
    let parent = std::path::absolute(parent)?;
    let existed = parent.exists();
    std::fs::create_dir_all(&parent)
        .with_context(|| format!("cannot create {}", parent.display()))?;
    let directory = tempfile::Builder::new().prefix("bench-").tempdir_in(&parent)?;
    let report = measure_in(directory.path(), quick, progress).await;
    drop(directory);
    if !existed {
        let _ = std::fs::remove_dir(parent);
    }
    report
}

async fn measure_in(directory: &Path, quick: bool, progress: fn(&str)) -> Result<Report> {
    let scale = if quick { 10 } else { 1 };
    let mut steps = Vec::new();
    for in_flight in steps::IN_FLIGHT {
        progress(&format!("bench: steps, {in_flight} in flight"));
        steps.push(steps::measure(directory, in_flight, quick).await?);
    }
    progress("bench: writing a log to open");
    let open = open::measure(&directory.join("open"), scale).await?;
    progress("bench: waiting runs");
    let waiting = waiting::measure(directory, scale).await?;
    progress("bench: scheduling a backlog");
    let scheduler = tokio::task::spawn_blocking(move || scheduler::measure(scale)).await??;
    progress("bench: a project of small features");
    let feature = feature::measure(&directory.join("feature"), quick).await?;
    progress("bench: sessions of the built-in agent");
    let sessions = sessions::measure(&directory.join("sessions"), scale).await?;
    progress("bench: a batch of small projects");
    let batch = batch::measure(&directory.join("batch"), scale).await?;
    let machine = machine::describe(directory);
    let measured =
        Measurements { machine, steps, open, waiting, scheduler, feature, sessions, batch };
    Ok(Report::new(quick, measured))
}
