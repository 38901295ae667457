//! Checks a whole log: every record, every blob, and the data derived from histories; repairs what
//! it can.

mod awaited;
mod look;
mod mend;
mod quarantine;
mod rest;
mod undelivered;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use longhaul_engine::store::Delivery;
use longhaul_engine::{Event, Payload, RunId, StoreError, Summary};
use sled::IVec;

use crate::blob::{BlobStore, Source};
use crate::error::{blocking, catch_damage};
use crate::sled_store::SledStore;
use crate::snapshot::{Records, Scope, take};
use crate::sweep::Names;

use awaited::Children;
pub use rest::check_at_rest;
use undelivered::MessageIndex;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CheckReport {
    /// The number of runs checked.
    pub runs: u64,
    /// The number of records, of all kinds.
    pub records: u64,
    /// The number of blobs.
    pub blobs: u64,
    /// The damage, by run.
    pub damages: Vec<Damage>,
    /// The number of payloads that no record names. They are not damage: a process died between
    /// writing a payload and its record.
    #[serde(default)]
    pub unused: u64,
    /// The quarantine files, into which damaged records were moved.
    pub quarantined: Vec<PathBuf>,
    /// Whether a page cannot be read, so that the log must be rewritten from its readable part.
    #[serde(default)]
    pub needs_rewrite: bool,
    /// The path of the damaged log, if it was replaced.
    #[serde(default)]
    pub kept: Option<PathBuf>,
}

/// One damaged record or file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Damage {
    /// The record or file.
    pub record: String,
    /// The defect.
    pub what: String,
    /// The repair that is possible.
    pub repair: String,
    /// Whether the repair was done.
    pub repaired: bool,
}

/// A defect and its repair.
#[derive(Debug)]
struct Finding {
    record: String,
    what: String,
    remedy: Remedy,
}

/// The possible repairs.
#[derive(Debug)]
enum Remedy {
    /// Write the summary computed from the history.
    Summarise(RunId, Summary),
    /// Write the published values computed from the history.
    Publish(RunId, BTreeMap<String, Payload>),
    /// Move the run with all its records into a file.
    MoveRun(RunId, Vec<Event>),
    /// Recreate a run with this event.
    Begin(RunId, Event),
    /// Deliver a message to a run again.
    Deliver(Delivery),
    /// Move records of a run into a file.
    MoveRecords(RunId, Vec<(IVec, IVec)>),
    /// Move a record whose key names no run, or has no number, into a file.
    MoveStray((IVec, IVec)),
    /// Rewrite the log from its readable part, while no process has it open.
    Rewrite,
}

impl Finding {
    fn to_damage(&self, repaired: bool) -> Damage {
        Damage {
            record: self.record.clone(),
            what: self.what.clone(),
            repair: self.remedy.words().into(),
            repaired,
        }
    }
}

/// Whether the run is over; `false` if that cannot be read.
fn is_over(records: &Records, blobs: &BlobStore) -> bool {
    let summary = catch_damage(|| records.summary(Source::Store(blobs)).transpose());
    summary.is_ok_and(|summary| summary.is_some_and(|summary| summary.status.is_terminal()))
}

impl Remedy {
    /// The run that must not be active during the repair: it loses records, or would miss its new
    /// message.
    fn needs_rest_of(&self) -> Option<&RunId> {
        match self {
            Self::MoveRun(run, _) | Self::MoveRecords(run, _) => Some(run),
            Self::Deliver(delivery) => Some(&delivery.to),
            _ => None,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Summarise(..) => "rewrite the summary from the history",
            Self::Publish(..) => "rewrite the published values from the history",
            Self::MoveRun(..) => {
                "move the run into a file in quarantine/, with the events that can be read"
            }
            Self::Begin(..) => "create the run again, as it was started",
            Self::Deliver(_) => "deliver the message again, as it was sent",
            Self::MoveRecords(..) | Self::MoveStray(_) => "move it into a file in quarantine/",
            Self::Rewrite => REWRITE,
        }
    }
}

/// The repair of a log with an unreadable part.
const REWRITE: &str = "build a new log from the readable part, and keep the damaged one \
    beside it; a backup may hold more";

/// All findings.
#[derive(Debug, Default)]
struct Findings {
    report: CheckReport,
    found: Vec<Finding>,
    children: Children,
    post: MessageIndex,
}

impl SledStore {
    /// Checks the whole log, and repairs it on request. Commits with large payloads wait until the
    /// records are collected. A log that must be rewritten is not repaired here: see
    /// [`check_at_rest`].
    ///
    /// # Errors
    /// If the log cannot be checked or repaired. Findings are not errors.
    pub async fn check(&self, repair: bool) -> Result<CheckReport, StoreError> {
        self.check_with(repair, |_| false).await
    }

    /// The same with repair for a log with active runs. Records of active, unfinished runs are
    /// reported but not repaired. Data derived from a history is rewritten only if that history has
    /// not grown.
    ///
    /// # Errors
    /// As those of [`SledStore::check`].
    pub async fn mend_in_use(
        &self,
        is_worked_on: impl Fn(&RunId) -> bool,
    ) -> Result<CheckReport, StoreError> {
        self.check_with(true, is_worked_on).await
    }

    async fn check_with(
        &self,
        repair: bool,
        is_worked_on: impl Fn(&RunId) -> bool,
    ) -> Result<CheckReport, StoreError> {
        let (findings, records) = self.findings().await?;
        let Findings { mut report, found, .. } = findings;
        for finding in &found {
            let needs_rest = finding.remedy.needs_rest_of().is_some_and(|run| {
                let records = records.get(run);
                is_worked_on(run)
                    && !records.is_some_and(|records| is_over(records, &self.shared.reader.blobs))
            });
            let may = repair && !needs_rest && !report.needs_rewrite;
            let repaired =
                may && self.mend(&finding.remedy, &records, &mut report.quarantined).await?;
            let mut damage = finding.to_damage(repaired);
            if needs_rest {
                damage.repair += ", when no process works on it";
            }
            report.damages.push(damage);
        }
        if repair && !report.needs_rewrite && (report.unused > 0 || !report.quarantined.is_empty())
        {
            self.remove_unused(&mut report).await;
        }
        Ok(report)
    }

    /// Removes the payloads that no record names, including those of quarantined records.
    async fn remove_unused(&self, report: &mut CheckReport) {
        match self.sweep().await {
            Ok(_) => report.unused = 0,
            Err(error) => {
                tracing::debug!(%error, "payloads that no record names are left to the next check");
            }
        }
    }

    async fn findings(&self) -> Result<(Findings, BTreeMap<RunId, Records>), StoreError> {
        let _kept = self.shared.snapshot_guards.read().await;
        let alone = self.shared.blobs_in_use.write().await;
        let shared = Arc::clone(&self.shared);
        let taken = blocking(move || {
            let there = shared.reader.blobs.all()?;
            Ok((there, take(&shared, &Scope::All)))
        });
        let (there, snapshot) = taken.await?;
        drop(alone);
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let mut findings = Findings::default();
            findings.report.blobs = there.len() as u64;
            findings.report.needs_rewrite = !snapshot.gaps.is_empty();
            let names = RefCell::new(Names::new());
            let source =
                Source::Noting { store: &shared.reader.blobs, names: &names, payloads: true };
            findings.gaps(&shared.directory, &snapshot.gaps, &snapshot.runs);
            for (run, records) in &snapshot.runs {
                if snapshot.gaps.iter().any(|gap| gap.touches(run)) {
                    findings.count(records);
                } else {
                    findings.look_at(run, records, source);
                }
            }
            findings.strays(&snapshot.strays);
            if snapshot.gaps.is_empty() {
                findings.lost_between_runs(&snapshot.runs);
                let named = names.into_inner();
                findings.report.unused =
                    there.iter().filter(|(hash, _)| !named.contains(hash)).count() as u64;
            }
            Ok((findings, snapshot.runs))
        })
        .await
    }
}
