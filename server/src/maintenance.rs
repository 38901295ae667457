//! Requests about whole runs and the log itself. The process that has the log open reads and writes
//! the files.

mod export;
mod import;
mod prune;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use longhaul_storage::{CheckReport, Scope, Swept};
use longhaul_workflows::project::ProjectWorkflow;
use longhaul_workflows::projection::{ProjectView, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::request::{RequestError, request};
use crate::service::Service;

/// Writes runs to a file, as a backup or as an export.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Export {
    /// The runs.
    pub scope: Scope,
    /// An absolute path.
    pub file: PathBuf,
    /// Whether to compress it with zstd.
    pub compress: bool,
    /// Whether the file is a whole backup: it names the epoch of the log.
    pub backup: bool,
}

/// How much was written, and what could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exported {
    /// How many runs were written.
    pub runs: u64,
    /// How many events they have.
    pub events: u64,
    /// Runs that were left out, and why.
    pub damaged: Vec<(RunId, String)>,
    /// Pages and records that could not be read.
    pub unreadable: Vec<String>,
}

/// Takes in the runs of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Import {
    /// An absolute path.
    pub file: PathBuf,
    /// Whether only to say what would happen.
    pub dry_run: bool,
}

/// Looks through the log for damage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Check {
    /// Whether to repair what is found.
    pub repair: bool,
}

/// Drops the histories of runs that ended before a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Prune {
    /// The runs.
    pub scope: Scope,
    /// Runs that ended later stay.
    pub ended_before: DateTime<Utc>,
    /// How they ended.
    pub statuses: Vec<State>,
    /// Whether only to say what would happen.
    pub dry_run: bool,
}

/// The runs that were, or would be, pruned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pruned {
    /// The runs, in the order of their ids.
    pub runs: Vec<PrunedRun>,
    /// How many payload files were removed.
    pub files: u64,
    /// The size of the payload files.
    pub bytes: u64,
    /// Why payload files were kept.
    pub problem: Option<String>,
}

/// The runs that are not over, and the features that are blocked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unfinished {}

/// The runs that are not over, and the features that are blocked: `project/feature`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnfinishedRuns {
    /// The runs that are not over.
    pub runs: Vec<RunId>,
    /// The blocked features of these projects.
    pub blocked: Vec<String>,
}

/// Reads every page of the log, and looks for payloads that no record names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InspectPages {
    /// Whether to remove these payloads.
    pub sweep: bool,
}

/// What lies on pages that cannot be read, and the payloads that no record names, or named until
/// they were removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pages {
    /// Pages and records that could not be read.
    pub unreadable: Vec<String>,
    /// How many payload files no record names.
    pub unused: u64,
    /// The size of the payload files.
    pub bytes: u64,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Runs that the log did not have.
    pub new: Vec<RunId>,
    /// Runs that it has, exactly so.
    pub same: Vec<RunId>,
    /// Runs that differ from those in the log, and how. If there is one, nothing is imported.
    pub differ: Vec<(RunId, String)>,
    /// The problem with the file. If there is one, nothing is imported.
    pub unreadable: Option<String>,
}

/// A run whose history was, or would be, let go of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedRun {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// How it ended: `completed`, `failed` or `cancelled`.
    pub status: State,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// How many events are gone; not known before it is done.
    pub events: Option<u64>,
}

request!(Export, "export" -> Exported, command: Some(if self.backup { "backup" } else { "export" }),
    |self, service| Ok(export::run(&service, self).await?));

request!(Import, "import" -> Imported, command: Some("import"),
    |self, service| Ok(import::run(&service, self.file, self.dry_run).await?));

request!(Check, "check" -> CheckReport, command: self.repair.then_some("check --repair"),
    |self, service| self.run(&service).await);

impl Check {
    async fn run(self, service: &Service) -> Result<CheckReport, RequestError> {
        if !self.repair || service.engine.is_none() {
            return Ok(service.log.check(self.repair).await?);
        }
        let engaged = service.engaged();
        let is_worked_on = |run: &RunId| {
            engaged.iter().any(|root| run.is_within(root.as_str()))
                || service.batches.count(run) > 0
        };
        Ok(service.log.mend_in_use(is_worked_on).await?)
    }
}

request!(Prune, "prune" -> Pruned, command: Some("prune"), |self, service| Ok(prune::run(&service, self).await?));

request!(InspectPages, "inspect_pages" -> Pages, command: self.sweep.then_some("doctor --fix"),
    |self, service| self.run(&service).await);

impl InspectPages {
    async fn run(self, service: &Service) -> Result<Pages, RequestError> {
        let unreadable = service.log.snapshot(Scope::All).await?.unreadable();
        let unused =
            if self.sweep { service.log.sweep().await } else { service.log.unused().await };
        // Of a damaged log it is not known what its records name.
        let Swept { files, bytes } = unused.unwrap_or_default();
        Ok(Pages { unreadable, unused: files, bytes })
    }
}

request!(Unfinished, "unfinished" -> UnfinishedRuns, |self, service| self.run(&service).await);

impl Unfinished {
    async fn run(self, service: &Service) -> Result<UnfinishedRuns, RequestError> {
        let mut going = service.store.runs("").await?;
        going.retain(|(_, summary)| !summary.status.is_terminal());
        let mut blocked = Vec::new();
        for (project, _) in
            going.iter().filter(|(_, summary)| summary.workflow == ProjectWorkflow::NAME)
        {
            let view = ProjectView::of(&service.store.published(project).await?);
            blocked.extend(
                view.in_state(State::Blocked)
                    .into_iter()
                    .map(|feature| format!("{project}/{feature}")),
            );
        }
        Ok(UnfinishedRuns { runs: going.into_iter().map(|(run, _)| run).collect(), blocked })
    }
}
