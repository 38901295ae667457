//! Errands with whole runs, done by whoever has the log open: files are written and read here, not sent through a socket.

mod export;
mod import;
mod prune;

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use longhaul_engine::{RunId, StoreError};
use longhaul_storage::{CheckReport, Scope, Swept};
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::project::ProjectWorkflow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::overlay;

use crate::select::is_at_or_below;
use crate::service::{Answer, Service};

/// Something to do with whole runs. Paths are absolute.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "errand", rename_all = "snake_case")]
pub enum Errand {
    /// Write runs to a file, as a backup or as an export.
    Export { scope: Scope, file: PathBuf, compress: bool, backup: bool },
    /// Take in the runs of a file.
    Import { file: PathBuf, dry_run: bool },
    /// Look through the log.
    Check { repair: bool },
    /// Let go of histories of runs that ended before a time.
    Prune { scope: Scope, ended_before: DateTime<Utc>, statuses: Vec<String>, dry_run: bool },
    /// List the runs that are not over, and the features that are blocked.
    Unfinished,
    /// Read every page of the log, and look for payloads that no record names.
    Pages { sweep: bool },
}

impl Errand {
    /// The verb, if it changes the log or writes a file.
    pub(crate) fn changes(&self) -> Option<&'static str> {
        match self {
            Self::Export { backup: true, .. } => Some("backup"),
            Self::Export { .. } => Some("export"),
            Self::Import { .. } => Some("import"),
            Self::Check { repair: true } => Some("check --repair"),
            Self::Prune { .. } => Some("prune"),
            Self::Pages { sweep: true } => Some("doctor --fix"),
            Self::Check { repair: false } | Self::Unfinished | Self::Pages { sweep: false } => None,
        }
    }
}

/// What an errand came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "snake_case")]
pub enum Carried {
    /// How much was written, and what could not be read.
    Exported { runs: u64, events: u64, damaged: Vec<(RunId, String)>, unreadable: Vec<String> },
    /// What was, or would be, taken in.
    Imported(Imported),
    /// What was found.
    Checked(CheckReport),
    /// What was, or would be, pruned.
    Pruned { runs: Vec<PrunedRun>, files: u64, bytes: u64, problem: Option<String> },
    /// The runs that are not over, and the features that are blocked: `project/feature`.
    Unfinished {
        runs: Vec<RunId>,
        #[serde(default)]
        blocked: Vec<String>,
    },
    /// What lies on pages that cannot be read, and the payloads that no record names, or named until they were removed.
    Pages { unreadable: Vec<String>, unused: u64, bytes: u64 },
}

/// What a file means for a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Runs that the log did not have.
    pub new: Vec<RunId>,
    /// Runs that it has, exactly so.
    pub same: Vec<RunId>,
    /// Runs that it has otherwise, and how. If there is one, nothing is taken in.
    pub differ: Vec<(RunId, String)>,
    /// What is wrong with the file. If anything is, nothing is taken in.
    pub unreadable: Option<String>,
}

/// A run whose history was, or would be, let go of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedRun {
    #[schemars(with = "String")]
    pub run: RunId,
    /// How it ended: `completed`, `failed` or `cancelled`.
    pub status: String,
    pub ended_at: Option<DateTime<Utc>>,
    /// How many events are gone; not known before it is done.
    pub events: Option<u64>,
}

/// Does an errand.
pub(crate) async fn answer(desk: &Arc<Service>, errand: Errand) -> Result<Answer, StoreError> {
    let carried = match errand {
        Errand::Export { scope, file, compress, backup } => export::run(desk, scope, &file, compress, backup).await?,
        Errand::Import { file, dry_run } => Carried::Imported(import::run(desk, file, dry_run).await?),
        Errand::Check { repair: true } if desk.engine.is_some() => {
            let engaged = desk.engaged();
            let is_worked_on = |run: &RunId| {
                engaged.iter().any(|root| is_at_or_below(run, root.as_str())) || desk.batches.count(run) > 0
            };
            Carried::Checked(desk.log.mend_in_use(is_worked_on).await?)
        }
        Errand::Check { repair } => Carried::Checked(desk.log.check(repair).await?),
        Errand::Prune { scope, ended_before, statuses, dry_run } => {
            prune::run(desk, &scope, ended_before, &statuses, dry_run).await?
        }
        Errand::Pages { sweep } => {
            let unreadable = desk.log.snapshot(Scope::All).await?.unreadable();
            let unused = if sweep { desk.log.sweep().await } else { desk.log.unused().await };
            // Of a damaged log it is not known what its records name.
            let Swept { files, bytes } = unused.unwrap_or_default();
            Carried::Pages { unreadable, unused: files, bytes }
        }
        Errand::Unfinished => {
            let mut going = desk.store.runs("").await?;
            going.retain(|(_, summary)| !summary.status.is_terminal());
            let mut blocked = Vec::new();
            for (project, _) in going.iter().filter(|(_, summary)| summary.workflow == ProjectWorkflow::NAME) {
                let features = overlay::said(&desk.store.published(project).await?);
                let held = features.into_iter().filter(|(_, view)| view.status == FeatureStatus::Blocked);
                blocked.extend(held.map(|(feature, _)| format!("{project}/{feature}")));
            }
            Carried::Unfinished { runs: going.into_iter().map(|(run, _)| run).collect(), blocked }
        }
    };
    Ok(Answer::Carried { what: Box::new(carried) })
}
