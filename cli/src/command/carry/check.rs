//! `longhaul check`.

use std::path::Path;

use anyhow::Result;
use longhaul_storage::{CheckReport, Damage};
use serde_json::json;

use super::{counted, send};
use crate::arguments::{Check, Output};
use crate::command::{reach, unasked};
use crate::exit::Exit;
use crate::owner::{Carried, Errand};
use crate::term;

pub(crate) async fn run(data_dir: &Path, arguments: &Check) -> Result<Exit> {
    let access = reach(data_dir).await?;
    let Carried::Checked(report) = send(&access, Errand::Check { repair: arguments.repair }).await? else {
        return Err(unasked());
    };
    let left = report.damages.iter().filter(|damage| !damage.mended).count();
    match arguments.output {
        Output::Json => term::print(serde_json::to_string_pretty(&document(&report))?),
        Output::Table => show(&report, arguments.repair),
    }
    Ok(if left == 0 { Exit::Ok } else { Exit::Operational })
}

fn document(report: &CheckReport) -> serde_json::Value {
    json!({
        "schema": "longhaul.check/1",
        "runs": report.runs,
        "records": report.records,
        "blobs": report.blobs,
        "damages": report.damages,
        "quarantined": report.quarantined,
    })
}

fn show(report: &CheckReport, repair: bool) {
    for Damage { record, what, repair, mended } in &report.damages {
        let word = if *mended { "done" } else { "repair" };
        term::print(format!("{record}: {what}\n    {word}: {repair}"));
    }
    for file in &report.quarantined {
        term::say(format!("moved into {}", file.display()));
    }
    let found = match report.damages.len() as u64 {
        0 => "whole".to_owned(),
        number => counted(number, "damage"),
    };
    let looked_at = [counted(report.runs, "run"), counted(report.records, "record"), counted(report.blobs, "blob")];
    term::print(format!("{}: {found}", looked_at.join(", ")));
    if !report.damages.is_empty() && !repair {
        term::say("`longhaul check --repair` does what is said above; make a copy of the data directory before");
    }
}
