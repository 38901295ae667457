//! `longhaul export` and `longhaul backup`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::Utc;
use longhaul_storage::Scope;
use schemars::JsonSchema;
use serde::Serialize;

use super::scratch::Scratch;
use super::{below, counted, send};
use crate::arguments::{Backup, Export, Output};
use crate::command::{named, reach, refuse_to_write_over};
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::{Client, Exported};

/// The result of an export.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ExportDocument<'a> {
    /// The file.
    file: String,
    /// Whether it is a backup of the whole log.
    backup: bool,
    /// How many runs are in it.
    runs: u64,
    /// How many events are in it.
    events: u64,
    /// Runs that could not be read.
    left_out: Vec<UnreadableRun<'a>>,
    /// Unreadable pages of the log, each with its known content.
    unreadable: &'a [String],
}

/// A run that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
struct UnreadableRun<'a> {
    /// The id of the run.
    run: &'a str,
    /// Why it is missing.
    reason: &'a str,
}

/// The target of an export, and its output.
struct ExportTarget<'a> {
    file: Option<&'a Path>,
    force: bool,
    output: Output,
    backup: bool,
}

pub(crate) async fn run(data_dir: &Path, arguments: &Export) -> Result<Exit> {
    let access = reach(data_dir).await?;
    let which = &arguments.which;
    let scope = match (&which.run, &which.project) {
        (Some(run), _) => Scope::Run(named::run(&access, run, &arguments.scope.dir).await?),
        (None, Some(project)) => below(&access, project).await?,
        (None, None) => Scope::All,
    };
    let target = ExportTarget {
        file: arguments.output_file.as_deref(),
        force: arguments.force,
        output: arguments.output,
        backup: false,
    };
    write(data_dir, access, scope, target).await
}

pub(crate) async fn backup(data_dir: &Path, arguments: &Backup) -> Result<Exit> {
    let named =
        || PathBuf::from(format!("longhaul-{}.backup.zst", Utc::now().format("%Y%m%dT%H%M%SZ")));
    let file = arguments.output_file.clone().unwrap_or_else(named);
    let force = arguments.force;
    let output = arguments.output;
    write(
        data_dir,
        reach(data_dir).await?,
        Scope::All,
        ExportTarget { file: Some(&file), force, output, backup: true },
    )
    .await
}

async fn write(
    data_dir: &Path,
    access: Client,
    scope: Scope,
    out: ExportTarget<'_>,
) -> Result<Exit> {
    let backup = out.backup;
    let Some(file) = out.file.filter(|file| *file != Path::new("-")) else {
        if out.output == Output::Json {
            return Err(usage(
                "the runs go to standard output, so a report cannot: name a file with -O",
            ));
        }
        let scratch = Scratch::in_dir(data_dir);
        let export = longhaul_server::Export {
            scope,
            file: scratch.path().to_owned(),
            compress: false,
            backup,
        };
        let written = Written(send(access, export).await?);
        let exit = written.say("standard output");
        term::pass_on(
            File::open(scratch.path())
                .with_context(|| format!("cannot read {}", scratch.path().display()))?,
        );
        return Ok(exit);
    };
    let shown = file.display();
    refuse_to_write_over(file, out.force)?;
    let compress = file.extension().is_some_and(|extension| extension == "zst");
    let unwritable = || format!("cannot write {shown}");
    let written = if is_stream(file) {
        // A regular file is replaced by a rename; a device or a pipe must be written in place.
        let scratch = Scratch::in_dir(data_dir);
        let export =
            longhaul_server::Export { scope, file: scratch.path().to_owned(), compress, backup };
        let written = Written(send(access, export).await?);
        let mut stream = File::options().write(true).open(file).with_context(unwritable)?;
        std::io::copy(&mut File::open(scratch.path())?, &mut stream).with_context(unwritable)?;
        written
    } else {
        let full = std::path::absolute(file).with_context(unwritable)?;
        Written(
            send(access, longhaul_server::Export { scope, file: full, compress, backup }).await?,
        )
    };
    let exit = written.say(&shown.to_string());
    match out.output {
        Output::Json => document::print(written.document(file, backup))?,
        Output::Table if backup => term::print(shown),
        Output::Table => {}
    }
    Ok(exit)
}

/// Whether the path is neither a file nor a directory: a device, a pipe.
fn is_stream(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The report.
struct Written(Exported);

impl Written {
    fn say(&self, shown: &str) -> Exit {
        for reason in &self.0.unreadable {
            term::say(format!("longhaul: {reason}"));
        }
        for (run, reason) in &self.0.damaged {
            term::say(format!("longhaul: run {run} is left out: {reason}; see `longhaul check`"));
        }
        term::say(format!(
            "wrote {}, {} to {shown}",
            counted(self.0.runs, "run"),
            counted(self.0.events, "event")
        ));
        if !self.0.unreadable.is_empty() {
            term::say(
                "this is what can be read; `longhaul check --repair` makes a log of it; a whole \
                 backup holds more",
            );
            return Exit::Operational;
        }
        match (self.0.damaged.is_empty(), self.0.runs) {
            (true, _) => Exit::Ok,
            (false, 0) => Exit::Operational,
            (false, _) => Exit::Partial,
        }
    }

    fn document(&self, file: &Path, backup: bool) -> ExportDocument<'_> {
        let left_out =
            self.0.damaged.iter().map(|(run, reason)| UnreadableRun { run: run.as_str(), reason });
        let runs = self.0.runs;
        let events = self.0.events;
        let file = file.display().to_string();
        let left_out = left_out.collect();
        ExportDocument { file, backup, runs, events, left_out, unreadable: &self.0.unreadable }
    }
}
