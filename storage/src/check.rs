//! Looking through a whole log: every record, every blob, and what is derived from histories; and mending what can be.

mod look;
mod mend;
mod quarantine;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use longhaul_engine::{Event, Payload, RunId, StoreError, Summary};
use sled::IVec;

use crate::blob::{BlobStore, Source};
use crate::sled_store::{SledStore, blocking, guarded};
use crate::snapshot::{Records, Scope, take};
use crate::sweep::Names;

/// What was found in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CheckReport {
    /// How many runs were looked at.
    pub runs: u64,
    /// How many records, of all kinds.
    pub records: u64,
    /// How many blobs.
    pub blobs: u64,
    /// What is damaged, run by run.
    pub damages: Vec<Damage>,
    /// The files into which damaged records were moved.
    pub quarantined: Vec<PathBuf>,
}

/// One damage.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Damage {
    /// Which record or file.
    pub record: String,
    /// What is wrong with it.
    pub what: String,
    /// What repairing it means.
    pub repair: String,
    /// Whether that was done.
    pub mended: bool,
}

/// Something wrong, and what can be done about it.
#[derive(Debug)]
struct Finding {
    record: String,
    what: String,
    remedy: Remedy,
}

/// What can be done.
#[derive(Debug)]
enum Remedy {
    /// Write the summary that the history amounts to.
    Summarise(RunId, Summary),
    /// Write the values that the history has published.
    Publish(RunId, BTreeMap<String, Payload>),
    /// Move the run with all its records into a file.
    MoveRun(RunId, Vec<Event>),
    /// Move one record into a file.
    MoveRecord(RunId, (IVec, IVec)),
    /// Remove a blob.
    RemoveBlob([u8; 32], PathBuf),
    /// Remove a directory that a dead process half made.
    RemoveDirectory(PathBuf),
    /// Nothing that could be done here.
    Restore,
    /// Nothing.
    Leave,
}

impl Finding {
    fn to_damage(&self, mended: bool) -> Damage {
        let (record, what, repair) = (self.record.clone(), self.what.clone(), self.remedy.words().into());
        Damage { record, what, repair, mended }
    }
}

/// Whether nothing happens to a run any more; not if that cannot be read.
fn is_over(records: &Records, blobs: &BlobStore) -> bool {
    let summary = guarded(|| records.summary(Source::Store(blobs)).transpose());
    summary.is_ok_and(|summary| summary.is_some_and(|summary| summary.status.is_terminal()))
}

impl Remedy {
    /// The run that loses records by it.
    fn takes_from(&self) -> Option<&RunId> {
        match self {
            Self::MoveRun(run, _) | Self::MoveRecord(run, _) => Some(run),
            _ => None,
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Summarise(..) => "write the summary anew from the history",
            Self::Publish(..) => "write the published values anew from the history",
            Self::MoveRun(..) => "move the run into a file in quarantine/, with the events that can be read",
            Self::MoveRecord(..) => "move the record into a file in quarantine/",
            Self::RemoveBlob(..) => "remove the file: no record names it",
            Self::RemoveDirectory(_) => "remove the directory: the log was made in another one",
            Self::Restore => {
                "restore a backup (`longhaul restore`); before that, `longhaul export --all` saves what can be read"
            }
            Self::Leave => "leave it: this version does not know what it is",
        }
    }
}

/// All that was found.
#[derive(Debug, Default)]
struct Findings {
    report: CheckReport,
    found: Vec<Finding>,
}

impl SledStore {
    /// Looks through the whole log, and mends what it finds if that is asked. Commits with large payloads wait until the
    /// records are taken down.
    ///
    /// # Errors
    /// If the log cannot be looked through at all, or not be mended. What is found is no error.
    pub async fn check(&self, repair: bool) -> Result<CheckReport, StoreError> {
        let (findings, records) = self.findings().await?;
        let Findings { mut report, found } = findings;
        for finding in &found {
            let mended = repair && self.mend(&finding.remedy, &records, &mut report.quarantined).await?;
            report.damages.push(finding.to_damage(mended));
        }
        self.sweep_after(&report).await;
        Ok(report)
    }

    /// What only records named that were moved out is named by nobody now.
    async fn sweep_after(&self, report: &CheckReport) {
        if !report.quarantined.is_empty()
            && let Err(error) = self.sweep().await
        {
            tracing::debug!(%error, "blobs that no record names are left to the next check");
        }
    }

    /// The same for a log in which runs go on, with mending. Left alone is what a log at rest is needed for: the records of
    /// runs that are worked on and not over. What follows from a history is written anew only if that has not grown.
    ///
    /// # Errors
    /// As those of [`SledStore::check`].
    pub async fn mend_in_use(&self, is_worked_on: impl Fn(&RunId) -> bool) -> Result<CheckReport, StoreError> {
        let (findings, records) = self.findings().await?;
        let Findings { mut report, found } = findings;
        let (blobs, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|finding| matches!(finding.remedy, Remedy::RemoveBlob(..)));
        for finding in &others {
            let needs_rest = finding.remedy.takes_from().is_some_and(|run| {
                let records = records.get(run);
                is_worked_on(run) && !records.is_some_and(|records| is_over(records, &self.shared.reader.blobs))
            });
            let mended = !needs_rest && self.mend(&finding.remedy, &records, &mut report.quarantined).await?;
            let damage = finding.to_damage(mended);
            let rest = if needs_rest { ", when nothing runs it: it is worked on now" } else { "" };
            report.damages.push(Damage { repair: damage.repair + rest, ..damage });
        }
        // A commit may name a blob anew at any time, so they are swept away, which looks again with the writers kept off.
        let swept = blobs.is_empty() || self.sweep().await.is_ok();
        let is_gone = |finding: &Finding| matches!(&finding.remedy, Remedy::RemoveBlob(_, path) if !path.exists());
        if blobs.is_empty() {
            self.sweep_after(&report).await;
        }
        report.damages.extend(blobs.iter().map(|finding| finding.to_damage(swept && is_gone(finding))));
        Ok(report)
    }

    async fn findings(&self) -> Result<(Findings, BTreeMap<RunId, Records>), StoreError> {
        let _kept = self.shared.pictures.read().await;
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
            let names = RefCell::new(Names::new());
            let source = Source::Noting { store: &shared.reader.blobs, names: &names, payloads: true };
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
                findings.files(&shared.directory, there, &names.into_inner());
            } else {
                // Which blobs are named is not known.
                findings.half_made(&shared.directory);
            }
            Ok((findings, snapshot.runs))
        })
        .await
    }
}
