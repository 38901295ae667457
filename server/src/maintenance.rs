//! Requests about whole runs and the log itself. The owner of the log reads and writes the files.

mod export;
mod import;
mod prune;

use std::collections::HashSet;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use longhaul_storage::{CheckReport, Scope, Swept};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::projection::{ProjectView, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::perform::request;
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::service::Service;
use crate::views::LatestRuns;

/// Writes runs to a file, as a backup or as an export.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Export {
    /// The runs.
    pub scope: Scope,
    /// Absolute path of the target file.
    pub file: PathBuf,
    /// Whether to compress it with zstd.
    pub compress: bool,
    /// Whether the file is a whole backup, which names the epoch of the log.
    pub backup: bool,
}

/// The result of an export: counts and read errors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exported {
    /// How many runs were written.
    pub runs: u64,
    /// How many events these runs have.
    pub events: u64,
    /// Omitted runs with the reason.
    pub damaged: Vec<(RunId, String)>,
    /// Unreadable pages and records.
    pub unreadable: Vec<String>,
}

/// Imports the runs of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Import {
    /// Absolute path of the source file.
    pub file: PathBuf,
    /// Dry run.
    pub dry_run: bool,
}

/// Checks the log for damage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Check {
    /// Whether to repair the damage.
    pub repair: bool,
}

/// Drops the histories of runs that ended before a point in time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Prune {
    /// The runs.
    pub scope: Scope,
    /// Runs that ended later are kept.
    pub ended_before: DateTime<Utc>,
    /// Only runs that ended with one of these statuses.
    pub statuses: Vec<State>,
    /// Dry run.
    pub dry_run: bool,
}

/// The result of a prune.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pruned {
    /// The runs, in the order of their ids.
    pub runs: Vec<PrunedRun>,
    /// How many payload files were removed.
    pub files: u64,
    /// The size of the payload files.
    pub bytes: u64,
    /// Why payload files were kept, if they were.
    pub problem: Option<String>,
}

/// Requests the open runs and the features that have not passed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unfinished {}

/// The open runs and the features that have not passed (`project/feature`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnfinishedRuns {
    /// The runs that are not closed.
    pub runs: Vec<RunId>,
    /// The features that have not passed, and those that were removed from their list after a run.
    /// A removed feature that returns to the list continues from its work.
    pub resumable: Vec<String>,
}

/// Reads every page of the log and looks for unreferenced payloads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InspectPages {
    /// Whether to remove unreferenced payloads.
    pub sweep: bool,
}

/// Unreadable pages, and payloads without a reference (before any removal).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pages {
    /// Unreadable pages and records.
    pub unreadable: Vec<String>,
    /// The payload files without a reference; `None` if the records of a damaged log do not show
    /// which payloads are referenced.
    pub unused: Option<UnusedPayloads>,
}

/// Payload files without a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnusedPayloads {
    /// How many files.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Runs that are new to the log.
    pub new: Vec<RunId>,
    /// Runs that the log has with the same content.
    pub same: Vec<RunId>,
    /// Runs that differ from the log, and how. If there is any, nothing is imported.
    pub differ: Vec<(RunId, String)>,
    /// The error in the file. If there is one, nothing is imported.
    pub unreadable: Option<String>,
}

/// A pruned run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedRun {
    /// The run.
    #[schemars(with = "String")]
    pub run: RunId,
    /// How it ended: `passed`, `blocked`, `failed` or `cancelled`.
    pub status: State,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// How many events were dropped; unknown in a dry run.
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
        let served = service.served();
        let is_worked_on = |run: &RunId| {
            served.iter().any(|root| run.is_within(root.as_str())) || service.batches.count(run) > 0
        };
        Ok(service.log.mend_in_use(is_worked_on).await?)
    }
}

request!(Prune, "prune" -> Pruned, command: Some("prune"),
    |self, service| Ok(prune::run(&service, self).await?));

request!(InspectPages, "inspect_pages" -> Pages, command: self.sweep.then_some("doctor --fix"),
    |self, service| self.run(&service).await);

impl InspectPages {
    async fn run(self, service: &Service) -> Result<Pages, RequestError> {
        let unreadable = service.log.snapshot(Scope::All).await?.unreadable();
        let unused =
            if self.sweep { service.log.sweep().await } else { service.log.unused().await };
        let unused = unused.ok().map(|Swept { files, bytes }| UnusedPayloads { files, bytes });
        Ok(Pages { unreadable, unused })
    }
}

request!(Unfinished, "unfinished" -> UnfinishedRuns, |self, service| self.run(&service).await);

impl Unfinished {
    async fn run(self, service: &Service) -> Result<UnfinishedRuns, RequestError> {
        let all = service.store.runs("").await?;
        let latest = LatestRuns::of(&all);
        let mut resumable = Vec::new();
        for (project, _) in
            all.iter().filter(|(_, summary)| RunKind::of(summary) == RunKind::Project)
        {
            let view = ProjectView::of(&service.store.published(project).await?);
            let is_open = |id: &&FeatureId| !view.feature(id).is_some_and(|known| known.passes);
            let open = view.backlog.iter().map(|feature| &feature.id).filter(is_open);
            resumable.extend(open.map(|feature| format!("{project}/{feature}")));
            let listed: HashSet<&FeatureId> =
                view.backlog.iter().map(|feature| &feature.id).collect();
            let removed = latest.of_project(project).filter(|(id, _)| !listed.contains(id));
            resumable.extend(removed.map(|(id, _)| format!("{project}/{id}")));
        }
        let open = all.into_iter().filter(|(_, summary)| !summary.status.is_terminal());
        Ok(UnfinishedRuns { runs: open.map(|(run, _)| run).collect(), resumable })
    }
}
