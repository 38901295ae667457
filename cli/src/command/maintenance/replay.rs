//! `longhaul replay`: always replays with this program, also when another process owns the log.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longhaul_engine::Workflows;
use longhaul_storage::FileError;
use longhaul_storage::Scope;
use longhaul_storage::bundle::Reader;

use super::scratch::Scratch;
use super::verdict::{self, Line, Report, Verdict};
use super::{below, send};
use crate::arguments::{Output, Replay};
use crate::command::terminal::Terminal;
use crate::command::{named, reach};
use crate::document;
use crate::exit::{Exit, usage};
use crate::place;
use crate::term;
use longhaul_server::pruned;
use longhaul_server::{self, Client, Export, Exported};

/// Files need neither a log nor a data directory.
pub(crate) async fn run(data_dir: Option<&Path>, arguments: &Replay) -> Result<Exit> {
    let workflows = longhaul_server::workflows();
    let mut lines = Vec::new();
    if arguments.all || arguments.project.is_some() {
        let data_dir = place::data_dir(data_dir)?;
        let access = reach(&data_dir).await?;
        let scope = match &arguments.project {
            Some(project) => below(&access, project).await?,
            None => Scope::All,
        };
        lines = of_log(&data_dir, access, scope, &workflows).await?;
    }
    for target in &arguments.targets {
        match of_files(target, &workflows)? {
            Some(found) => lines.extend(found),
            None => lines.push(of_run(data_dir, target, &arguments.scope.dir, &workflows).await?),
        }
    }
    let report = Report::of(lines);
    match arguments.output {
        Output::Json => document::print(&report)?,
        Output::Table => term::print(report.text(Terminal::here())),
    }
    Ok(report.exit())
}

/// The runs of files; `None` if there is no such file.
fn of_files(target: &str, workflows: &Workflows) -> Result<Option<Vec<Line>>> {
    let path = Path::new(target);
    if target == "-" {
        return Ok(Some(read(std::io::stdin().lock(), "standard input", workflows)));
    }
    if path.is_dir() {
        let files = files_in(path)?;
        if files.is_empty() {
            return Err(usage(format!("{target} has no files that end in .jsonl or .zst")));
        }
        return Ok(Some(files.iter().flat_map(|file| of_file(file, workflows)).collect()));
    }
    if path.is_file() {
        return Ok(Some(of_file(path, workflows)));
    }
    // The id of a run ends with a number or with that of a project, never with a file extension.
    if is_history(path) {
        return Err(usage(format!("there is no file {target}")));
    }
    Ok(None)
}

/// A run of the log by name.
async fn of_run(
    data_dir: Option<&Path>,
    name: &str,
    dir: &Path,
    workflows: &Workflows,
) -> Result<Line> {
    let data_dir = place::data_dir(data_dir)?;
    let access = reach(&data_dir).await?;
    let run = named::run(&access, name, dir).await?;
    let lines = of_log(&data_dir, access, Scope::Run(run), workflows).await?;
    let line = lines.into_iter().next().context("the run is not in the log any more")?;
    match (&line.verdict, &line.run) {
        (Verdict::Pruned { at: Some(at) }, Some(run)) => Err(usage(pruned::refusal(run, *at))),
        _ => Ok(line),
    }
}

/// Whether a file name belongs to a history.
fn is_history(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "jsonl" || end == "zst")
}

fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
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

/// The verdicts on the runs of a file, up to the first unreadable line.
fn read(input: impl Read, shown: &str, workflows: &Workflows) -> Vec<Line> {
    let reader = match Reader::new(input) {
        Ok(reader) => reader,
        Err(error) => return vec![unreadable(shown, &error)],
    };
    let line = |record: Result<longhaul_storage::RunRecord, FileError>| match record {
        Ok(record) => Line {
            verdict: verdict::of(workflows, &record),
            events: record.events.len() as u64,
            run: Some(record.run),
            file: Some(shown.to_owned()),
        },
        Err(error) => unreadable(shown, &error),
    };
    reader.map(line).collect()
}

fn unreadable(file: &str, error: &FileError) -> Line {
    let verdict = Verdict::Unreadable { reason: error.to_string() };
    Line { run: None, file: Some(file.to_owned()), events: 0, verdict }
}

/// The runs of a log, through an export: the owner of the log may be another version of Longhaul.
async fn of_log(
    data_dir: &Path,
    access: Client,
    scope: Scope,
    workflows: &Workflows,
) -> Result<Vec<Line>> {
    let scratch = Scratch::in_dir(data_dir);
    let file = scratch.path().to_owned();
    let export = Export { scope, file, compress: false, backup: false };
    let Exported { damaged, unreadable, .. } = send(access, export).await?;
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
    let verdict = |reason| Verdict::Unreadable { reason };
    let of_log = |reason| Line {
        run: None,
        file: Some("the log".into()),
        events: 0,
        verdict: verdict(reason),
    };
    lines.extend(unreadable.into_iter().map(of_log));
    lines.sort_by(|one, other| one.run.cmp(&other.run));
    Ok(lines)
}
