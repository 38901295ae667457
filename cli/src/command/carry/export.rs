//! `longhaul export` and `longhaul backup`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::Utc;
use longhaul_storage::Scope;

use super::scratch::Scratch;
use super::{below, counted, send};
use crate::arguments::{Backup, Export};
use crate::command::{named, reach, unasked};
use crate::exit::{Exit, usage};
use crate::owner::{Access, Carried, Errand};
use crate::term;

pub(crate) async fn run(data_dir: &Path, arguments: &Export) -> Result<Exit> {
    let access = reach(data_dir).await?;
    let which = &arguments.which;
    let scope = match (&which.run, &which.project) {
        (Some(run), _) => Scope::Run(named::run(&access, run, &arguments.dir).await?),
        (None, Some(project)) => below(&access, project).await?,
        (None, None) => Scope::All,
    };
    write(data_dir, &access, scope, arguments.output_file.as_deref(), false).await
}

pub(crate) async fn backup(data_dir: &Path, arguments: &Backup) -> Result<Exit> {
    let named = || PathBuf::from(format!("longhaul-{}.backup.zst", Utc::now().format("%Y%m%dT%H%M%SZ")));
    let file = arguments.output_file.clone().unwrap_or_else(named);
    let access = reach(data_dir).await?;
    write(data_dir, &access, Scope::All, Some(&file), true).await
}

async fn write(data_dir: &Path, access: &Access, scope: Scope, file: Option<&Path>, backup: bool) -> Result<Exit> {
    let Some(file) = file.filter(|file| *file != Path::new("-")) else {
        let scratch = Scratch::in_dir(data_dir);
        let exit = write_to(access, scope, scratch.path(), false, backup, "standard output").await?;
        let mut written =
            File::open(scratch.path()).with_context(|| format!("cannot read {}", scratch.path().display()))?;
        match std::io::copy(&mut written, &mut std::io::stdout().lock()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(error).context("cannot write to standard output");
            }
            _ => return Ok(exit),
        }
    };
    if file.is_dir() {
        return Err(usage(format!("{} is a directory: name a file", file.display())));
    }
    let compress = file.extension().is_some_and(|extension| extension == "zst");
    let full = std::path::absolute(file).with_context(|| format!("cannot write {}", file.display()))?;
    let exit = write_to(access, scope, &full, compress, backup, &file.display().to_string()).await?;
    if backup {
        term::print(file.display());
    }
    Ok(exit)
}

async fn write_to(
    access: &Access,
    scope: Scope,
    file: &Path,
    compress: bool,
    backup: bool,
    shown: &str,
) -> Result<Exit> {
    let errand = Errand::Export { scope, file: file.to_owned(), compress, backup };
    let Carried::Exported { runs, events, damaged, unreadable } = send(access, errand).await? else {
        return Err(unasked());
    };
    for reason in &unreadable {
        term::say(format!("longhaul: {reason}"));
    }
    for (run, reason) in &damaged {
        term::say(format!("longhaul: run {run} is left out: {reason}; see `longhaul check`"));
    }
    term::say(format!("wrote {}, {} to {shown}", counted(runs, "run"), counted(events, "event")));
    if !unreadable.is_empty() {
        term::say("this is what can be read; a backup that is whole brings back the rest: `longhaul restore`");
        return Ok(Exit::Operational);
    }
    match (damaged.is_empty(), runs) {
        (true, _) => Ok(Exit::Ok),
        (false, 0) => Ok(Exit::Operational),
        (false, _) => Ok(Exit::Partial),
    }
}
