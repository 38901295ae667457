//! `longhaul restore`: builds a log next to its target and renames it when complete.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longhaul_storage::FileError;
use longhaul_storage::bundle::Reader;
use longhaul_storage::{Archive, SledStore};
use schemars::JsonSchema;
use serde::Serialize;

use super::counted;
use crate::arguments::{Output, Restore};
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;

/// A restored log.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct RestoreDocument {
    /// Its data directory.
    data_dir: String,
    /// How many runs are in it.
    runs: u64,
}

pub(crate) async fn run(data_dir: &Path, arguments: &Restore) -> Result<Exit> {
    refuse_if_used(data_dir)?;
    let input: Box<dyn Read> = if arguments.file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let shown = arguments.file.display();
        Box::new(
            File::open(&arguments.file)
                .map_err(|error| usage(format!("cannot read {shown}: {error}")))?,
        )
    };
    let making = NewDirectory::beside(data_dir)?;
    let runs = fill(&making.0, input).await.with_context(|| {
        format!("{} cannot be restored; nothing was changed", arguments.file.display())
    })?;
    refuse_if_used(data_dir)?;
    making.place(data_dir)?;
    term::say(format!("restored {} into {}", counted(runs, "run"), data_dir.display()));
    if arguments.output == Output::Json {
        document::print(RestoreDocument { data_dir: data_dir.display().to_string(), runs })?;
    }
    term::say(
        "projects go on where the backup was made; do not run both logs on the same checkouts",
    );
    Ok(Exit::Ok)
}

fn refuse_if_used(data_dir: &Path) -> Result<()> {
    match std::fs::read_dir(data_dir).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(true) => Err(usage(format!(
            "{} is not empty: a backup is restored into an empty data directory only; name \
             another one with --data-dir",
            data_dir.display()
        ))),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", data_dir.display())),
    }
}

async fn fill(dir: &Path, input: Box<dyn Read>) -> Result<u64> {
    let reader = Reader::new(input)?;
    let backup = reader.header().backup;
    let log = SledStore::open(dir)?;
    let mut runs = 0;
    for record in reader {
        log.import(record.map_err(|error: FileError| anyhow::anyhow!(error))?).await?;
        runs += 1;
    }
    if let Some(backup) = backup {
        log.follow_on(backup.epoch).await?;
    }
    tokio::task::spawn_blocking(move || log.close()).await?;
    Ok(runs)
}

/// A data directory in construction, removed on drop unless it is renamed.
struct NewDirectory(PathBuf);

impl NewDirectory {
    fn beside(data_dir: &Path) -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let parent = data_dir.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
        let mut name = data_dir.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.restoring", uuid::Uuid::now_v7().simple()));
        let dir = parent.join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        made.with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Self(dir))
    }

    fn place(&self, data_dir: &Path) -> Result<()> {
        // The rename replaces an empty directory.
        std::fs::rename(&self.0, data_dir)
            .with_context(|| format!("cannot name the restored log {}", data_dir.display()))?;
        let parent = data_dir.parent().unwrap_or(Path::new("/"));
        File::open(parent)
            .and_then(|dir| dir.sync_all())
            .with_context(|| format!("cannot sync {}", parent.display()))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
