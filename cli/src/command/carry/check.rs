//! `longhaul check`.

use std::path::Path;

use anyhow::Result;
use longhaul_engine::StoreError;
use longhaul_storage::{CheckReport, Damage, Salvage, salvage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{counted, send};
use crate::arguments::{Check, Output};
use crate::command::{page, reach, unasked};
use crate::document;
use crate::exit::Exit;
use crate::owner::{Access, Carried, Errand};
use crate::term;

pub(crate) async fn run(data_dir: &Path, arguments: &Check) -> Result<Exit> {
    let report = match reach(data_dir).await {
        Ok(access) => checked(access, arguments.repair).await?,
        Err(error) => salvaged(data_dir, error, arguments.repair).await?,
    };
    let left = report.damages.iter().filter(|damage| !damage.mended).count();
    match arguments.output {
        Output::Json => document::print(CheckDocument::of(&report))?,
        Output::Table => show(&report, arguments.repair),
    }
    Ok(if left == 0 { Exit::Ok } else { Exit::Operational })
}

async fn checked(access: Access, repair: bool) -> Result<CheckReport> {
    match send(access, Errand::Check { repair }).await? {
        Carried::Checked(report) => Ok(report),
        _ => Err(unasked()),
    }
}

/// What can be read of a log that cannot be opened; if it is to be repaired, that takes its place.
async fn salvaged(data_dir: &Path, error: anyhow::Error, repair: bool) -> Result<CheckReport> {
    let Some(StoreError::Unopenable { log, reason }) = error.downcast_ref() else { return Err(error) };
    let Salvage { records, places, first, kept } = salvage(data_dir, repair)?;
    let at = first.map(|byte| format!(", the first at byte {byte}")).unwrap_or_default();
    let damage = Damage {
        record: log.clone(),
        what: format!(
            "it cannot be opened: {reason}; {} can be read, {} of the file cannot{at}",
            counted(records, "record"),
            counted(places, "place"),
        ),
        repair: "make a log of what can be read, and keep the damaged one beside it; a backup may hold more".into(),
        mended: kept.is_some(),
    };
    let Some(kept) = kept else { return Ok(CheckReport { records, damages: vec![damage], ..CheckReport::default() }) };
    term::say(format!("the damaged log is kept as {}", kept.display()));
    let mut report = checked(reach(data_dir).await?, repair).await?;
    report.damages.insert(0, damage);
    Ok(report)
}

/// What was found in a log.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct CheckDocument {
    /// How many runs were looked at.
    runs: u64,
    /// How many records, of all kinds.
    records: u64,
    /// How many large payloads that are kept beside the log.
    blobs: u64,
    damages: Vec<DamageLine>,
    /// The files into which damaged records were moved.
    quarantined: Vec<String>,
}

/// One damage.
#[derive(Debug, Serialize, JsonSchema)]
struct DamageLine {
    /// Which record or file.
    record: String,
    /// What is wrong with it.
    what: String,
    /// What repairing it means.
    repair: String,
    /// Whether that was done.
    mended: bool,
}

impl CheckDocument {
    fn of(report: &CheckReport) -> Self {
        let damage = |damage: &Damage| {
            let Damage { record, what, repair, mended } = damage.clone();
            DamageLine { record, what, repair, mended }
        };
        Self {
            runs: report.runs,
            records: report.records,
            blobs: report.blobs,
            damages: report.damages.iter().map(damage).collect(),
            quarantined: report.quarantined.iter().map(|file| file.display().to_string()).collect(),
        }
    }
}

fn show(report: &CheckReport, repair: bool) {
    for Damage { record, what, repair, mended } in &report.damages {
        let word = if *mended { "done" } else { "repair" };
        page::print(format!("{record}: {what}\n    {word}: {repair}"));
    }
    for file in &report.quarantined {
        term::say(format!("moved into {}", file.display()));
    }
    let found = match report.damages.len() as u64 {
        0 => "whole".to_owned(),
        number => counted(number, "damage"),
    };
    let looked_at = [counted(report.runs, "run"), counted(report.records, "record"), counted(report.blobs, "blob")];
    page::print(format!("{}: {found}", looked_at.join(", ")));
    if !report.damages.is_empty() && !repair {
        term::say("`longhaul check --repair` does what is said above; make a copy of the data directory before");
    }
}
