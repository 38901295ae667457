//! `longhaul check`.

use std::path::Path;

use anyhow::Result;
use longhaul_storage::{CheckReport, Damage};
use schemars::JsonSchema;
use serde::Serialize;

use super::{counted, send};
use crate::arguments::{Check, Output};
use crate::command::{page, reach, unasked};
use crate::document;
use crate::exit::Exit;
use crate::owner::{Carried, Errand};
use crate::term;

pub(crate) async fn run(data_dir: &Path, arguments: &Check) -> Result<Exit> {
    let access = reach(data_dir).await?;
    let Carried::Checked(report) = send(access, Errand::Check { repair: arguments.repair }).await? else {
        return Err(unasked());
    };
    let left = report.damages.iter().filter(|damage| !damage.mended).count();
    match arguments.output {
        Output::Json => document::print(CheckDocument::of(&report))?,
        Output::Table => show(&report, arguments.repair),
    }
    Ok(if left == 0 { Exit::Ok } else { Exit::Operational })
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
