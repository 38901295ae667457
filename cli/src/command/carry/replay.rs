//! `longhaul replay`: by this program itself, also when another process owns the log.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longhaul_engine::{RunId, Workflows};
use longhaul_storage::Scope;
use longhaul_storage::bundle::{BundleError, Reader};

use super::scratch::Scratch;
use super::verdict::{self, Line, Report, Verdict};
use super::{below, send};
use crate::arguments::{Output, Replay};
use crate::command::{page, reach, unasked};
use crate::document;
use crate::exit::{Exit, usage};
use crate::owner::{self, Carried, Errand};

pub(crate) async fn run(data_dir: &Path, arguments: &Replay) -> Result<Exit> {
    let workflows = owner::workflows();
    let mut lines = Vec::new();
    if arguments.all {
        lines = of_log(data_dir, Scope::All, &workflows).await?;
    } else if let Some(project) = &arguments.project {
        lines = of_log(data_dir, below(project).await?, &workflows).await?;
    }
    for target in &arguments.targets {
        lines.extend(of_target(data_dir, target, &workflows).await?);
    }
    let report = Report::of(lines);
    match arguments.output {
        Output::Json => document::print(&report)?,
        Output::Table => page::print(report.text()),
    }
    Ok(report.exit())
}

async fn of_target(data_dir: &Path, target: &str, workflows: &Workflows) -> Result<Vec<Line>> {
    let path = Path::new(target);
    if target == "-" {
        return Ok(read(std::io::stdin().lock(), "standard input", workflows));
    }
    if path.is_dir() {
        let files = files_in(path)?;
        if files.is_empty() {
            return Err(usage(format!("{target} has no files that end in .jsonl or .zst")));
        }
        return Ok(files.iter().flat_map(|file| of_file(file, workflows)).collect());
    }
    if path.is_file() {
        return Ok(of_file(path, workflows));
    }
    // The id of a run ends with a number, or with that of a project.
    if is_history(path) {
        return Err(usage(format!("there is no file {target}")));
    }
    let run = RunId::new(target).map_err(|error| usage(format!("{error}, and there is no file of that name")))?;
    of_log(data_dir, Scope::Run(run), workflows).await
}

/// Whether a file, by its name, holds histories.
fn is_history(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "jsonl" || end == "zst")
}

fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.is_file() && is_history(file));
    files.sort_unstable();
    Ok(files)
}

fn of_file(file: &Path, workflows: &Workflows) -> Vec<Line> {
    let shown = file.display().to_string();
    match File::open(file) {
        Ok(input) => read(input, &shown, workflows),
        Err(error) => vec![unreadable(&shown, &error.into())],
    }
}

/// The verdicts on all runs of a file, up to where it cannot be read any more.
fn read(input: impl Read, shown: &str, workflows: &Workflows) -> Vec<Line> {
    let reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(error) => return vec![unreadable(shown, &error)],
    };
    let line = |carried: Result<longhaul_storage::Carried, BundleError>| match carried {
        Ok(carried) => Line {
            verdict: verdict::of(workflows, &carried),
            events: carried.events.len() as u64,
            run: Some(carried.run),
            file: Some(shown.to_owned()),
        },
        Err(error) => unreadable(shown, &error),
    };
    reader.map(line).collect()
}

fn unreadable(file: &str, error: &BundleError) -> Line {
    let verdict = Verdict::Unreadable { reason: error.to_string() };
    Line { run: None, file: Some(file.to_owned()), events: 0, verdict }
}

/// The runs of a log, through a copy: whoever owns it may be another version of this program.
async fn of_log(data_dir: &Path, scope: Scope, workflows: &Workflows) -> Result<Vec<Line>> {
    let access = reach(data_dir).await?;
    let scratch = Scratch::in_dir(data_dir);
    let file = scratch.path().to_owned();
    let errand = Errand::Export { scope, file, compress: false, backup: false };
    let Carried::Exported { damaged, .. } = send(access, errand).await? else { return Err(unasked()) };
    let mut lines = of_file(scratch.path(), workflows);
    for line in &mut lines {
        line.file = None;
    }
    lines.extend(damaged.into_iter().map(|(run, reason)| Line {
        run: Some(run),
        file: None,
        events: 0,
        verdict: Verdict::Unreadable { reason },
    }));
    lines.sort_by(|one, other| one.run.cmp(&other.run));
    Ok(lines)
}
