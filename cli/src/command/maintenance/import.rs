//! `longhaul import`.

use std::path::Path;

use anyhow::{Context, Result};
use longhaul_engine::RunId;
use schemars::JsonSchema;
use serde::Serialize;

use super::scratch::Scratch;
use super::{counted, send};
use crate::arguments::{Import, Output};
use crate::command::terminal;
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::{Client, Imported};

pub(crate) async fn run(data_dir: &Path, arguments: &Import) -> Result<Exit> {
    let from_input = arguments.file == Path::new("-");
    if !from_input && !arguments.file.is_file() {
        return Err(usage(format!("there is no file {}", arguments.file.display())));
    }
    // Read standard input first: the process that writes it may need the log.
    let scratch = from_input.then(|| Scratch::of_input(data_dir)).transpose()?;
    let file = scratch.as_ref().map_or(arguments.file.as_path(), Scratch::path);
    let file =
        std::path::absolute(file).with_context(|| format!("cannot read {}", file.display()))?;
    let dry_run = arguments.dry_run;
    // Without a log, a dry run uses a temporary one.
    let nowhere = (dry_run && !data_dir.join("lock").exists()).then(Scratch::nowhere);
    let access =
        Client::reach_or_create(nowhere.as_ref().map_or(data_dir, Scratch::path), term::notice)
            .await?;
    let imported = send(access, longhaul_server::Import { file, dry_run }).await?;
    let taken = imported.unreadable.is_none() && imported.differ.is_empty();
    match arguments.output {
        Output::Json => document::print(ImportDocument::of(&imported, taken, arguments.dry_run))?,
        Output::Table => show(&imported, taken, arguments.dry_run),
    }
    if let Some(reason) = &imported.unreadable {
        term::say(format!("longhaul: {}: {reason}", arguments.file.display()));
        return Ok(Exit::Operational);
    }
    Ok(if taken { Exit::Ok } else { Exit::Finding })
}

/// The result of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ImportDocument {
    /// Whether it was a dry run.
    dry_run: bool,
    /// Whether its runs were imported: all new ones, or none.
    imported: bool,
    /// Runs that are new to the log.
    new: Vec<String>,
    /// Runs that the log has with the same content.
    same: Vec<String>,
    /// Runs that differ from the log. If there is any, nothing is imported.
    differ: Vec<DifferingRun>,
    /// The error in the file. If there is one, nothing is imported.
    problem: Option<String>,
}

/// A run that differs from the one in the log.
#[derive(Debug, Serialize, JsonSchema)]
struct DifferingRun {
    /// The id of the run.
    run: String,
    /// The difference.
    how: String,
}

impl ImportDocument {
    fn of(imported: &Imported, taken: bool, dry_run: bool) -> Self {
        let names = |runs: &[RunId]| runs.iter().map(ToString::to_string).collect();
        let differing =
            |(run, how): &(RunId, String)| DifferingRun { run: run.to_string(), how: how.clone() };
        Self {
            dry_run,
            imported: taken && !dry_run,
            new: names(&imported.new),
            same: names(&imported.same),
            differ: imported.differ.iter().map(differing).collect(),
            problem: imported.unreadable.clone(),
        }
    }
}

fn show(imported: &Imported, taken: bool, dry_run: bool) {
    let word = match (taken, dry_run) {
        (true, false) => "imported",
        (true, true) => "would be imported",
        (false, _) => "not imported",
    };
    for run in &imported.new {
        terminal::print(format!("{run}  {word}"));
    }
    for run in &imported.same {
        terminal::print(format!("{run}  skipped: the log has it already, exactly so"));
    }
    for (run, how) in &imported.differ {
        terminal::print(format!("{run}  refused: {how}"));
    }
    if imported.unreadable.is_some() {
        term::say("nothing was imported");
    } else if taken {
        let new = counted(imported.new.len() as u64, "run");
        let same = imported.same.len();
        term::say(format!("{new} {word}, {same} skipped"));
    } else {
        term::say(
            "nothing was imported: a run that differs in the log cannot be replaced; import into \
             another log",
        );
    }
}
