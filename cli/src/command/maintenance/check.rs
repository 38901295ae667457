//! `longhaul check`.

use std::path::Path;

use anyhow::Result;
use longhaul_engine::StoreError;
use longhaul_storage::{CheckReport, Damage, check_at_rest};
use schemars::JsonSchema;
use serde::Serialize;

use super::{counted, send};
use crate::arguments::{Check, Output};
use crate::command::{reach, terminal};
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::{Client, refuse_within_session};

pub(crate) async fn run(data_dir: &Path, arguments: &Check) -> Result<Exit> {
    let repair = arguments.repair;
    if repair {
        refuse_within_session("check --repair", data_dir)?;
    }
    let (report, in_use) = match reach(data_dir).await {
        Ok(access @ Client::Remote(_)) => {
            (send(access, longhaul_server::Check { repair }).await?, true)
        }
        Ok(Client::Local(service)) => {
            // A rewrite needs the log closed and opened again.
            drop(service);
            (check_at_rest(data_dir, repair).await?, false)
        }
        Err(error) if is_damaged(&error) => (check_at_rest(data_dir, repair).await?, false),
        Err(error) => return Err(error),
    };
    let is_repaired = report.damages.iter().all(|damage| damage.repaired);
    match arguments.output {
        Output::Json => document::print(CheckDocument::of(&report))?,
        Output::Table => show(&report),
    }
    if report.unused > 0 {
        say_unused(report.unused);
    }
    if !is_repaired {
        term::say(advice(repair, in_use && report.needs_rewrite));
    }
    Ok(if is_repaired { Exit::Ok } else { Exit::Operational })
}

fn is_damaged(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(longhaul_server::Error::Store(StoreError::Unopenable { .. }))
    )
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct CheckDocument {
    /// How many runs were checked.
    runs: u64,
    /// How many records of all kinds were checked.
    records: u64,
    /// How many large payloads are stored next to the log.
    blobs: u64,
    /// How many of these have no reference, which is no damage.
    unused: u64,
    /// The damage found.
    damages: Vec<DamageLine>,
    /// The files into which damaged records were moved.
    quarantined: Vec<String>,
    /// The new place of the damaged log, if a new one has replaced it.
    kept: Option<String>,
}

/// One damaged item.
#[derive(Debug, Serialize, JsonSchema)]
struct DamageLine {
    /// The record or file.
    record: String,
    /// The damage.
    what: String,
    /// The repair.
    repair: String,
    /// Whether the repair was done.
    repaired: bool,
}

impl CheckDocument {
    fn of(report: &CheckReport) -> Self {
        let damage = |damage: &Damage| {
            let Damage { record, what, repair, repaired } = damage.clone();
            DamageLine { record, what, repair, repaired }
        };
        Self {
            runs: report.runs,
            records: report.records,
            blobs: report.blobs,
            unused: report.unused,
            damages: report.damages.iter().map(damage).collect(),
            quarantined: report.quarantined.iter().map(|file| file.display().to_string()).collect(),
            kept: report.kept.as_ref().map(|place| place.display().to_string()),
        }
    }
}

fn show(report: &CheckReport) {
    for Damage { record, what, repair, repaired } in &report.damages {
        let word = if *repaired { "done" } else { "repair" };
        terminal::print(format!("{record}: {what}\n    {word}: {repair}"));
    }
    if let Some(kept) = &report.kept {
        term::say(format!("the damaged log is kept as {}", kept.display()));
    }
    for file in &report.quarantined {
        term::say(format!("moved into {}", file.display()));
    }
    let found = match report.damages.len() as u64 {
        0 => "no damage found".to_owned(),
        number => counted(number, "damaged record"),
    };
    let looked_at = [
        counted(report.runs, "run"),
        counted(report.records, "record"),
        counted(report.blobs, "blob"),
    ];
    terminal::print(format!("{}: {found}", looked_at.join(", ")));
}

fn say_unused(count: u64) {
    let files = counted(count, "payload file");
    term::say(format!(
        "{files} without a reference: no damage; `longhaul check --repair` removes them"
    ));
}

/// The remedy for the remaining damage.
fn advice(repair: bool, needs_log_at_rest: bool) -> &'static str {
    if needs_log_at_rest {
        "the repair needs the log for itself: end the process that runs it (Ctrl-C or SIGTERM), \
         then run `longhaul check --repair`"
    } else if repair {
        "the remaining damage is in records in use: run `longhaul check --repair` after the \
         process that runs this log has ended"
    } else {
        "`longhaul check --repair` performs these repairs and keeps the replaced files. A backup \
         may hold more: `longhaul restore`"
    }
}
