//! Imports the runs of a file: reads and compares the whole file first, then writes each new run in
//! one commit.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_engine::StoreError;
use longhaul_storage::FileError;
use longhaul_storage::bundle::Reader;
use longhaul_storage::{Archive, SledStore};
use tokio::runtime::Handle;

use super::Imported;
use crate::service::Service;

pub(crate) async fn run(
    service: &Arc<Service>,
    file: PathBuf,
    dry_run: bool,
) -> Result<Imported, StoreError> {
    let log = Arc::clone(&service.log);
    let handle = Handle::current();
    let work = tokio::task::spawn_blocking(move || import(&log, &handle, &file, dry_run));
    let imported = work.await.unwrap_or_else(|error| {
        Err(StoreError::Unusable(format!("the import did not end: {error}")))
    })?;
    if let (Some(engine), false) = (&service.engine, dry_run) {
        for project in service.served() {
            if imported
                .new
                .iter()
                .any(|run| longhaul_storage::Scope::Below(project.clone()).has(run))
            {
                engine.adopt(project.as_str()).await?;
            }
        }
    }
    Ok(imported)
}

fn import(
    log: &SledStore,
    handle: &Handle,
    file: &Path,
    dry_run: bool,
) -> Result<Imported, StoreError> {
    let imported = match compare(log, handle, file) {
        Ok(imported) => imported,
        Err(Problem::File(error)) => {
            return Ok(Imported { unreadable: Some(error.to_string()), ..Imported::default() });
        }
        Err(Problem::Store(error)) => return Err(error),
    };
    if dry_run || !imported.differ.is_empty() {
        return Ok(imported);
    }
    let new: BTreeSet<_> = imported.new.iter().collect();
    let changed = |error: FileError| {
        StoreError::Unusable(format!("the file changed while it was read: {error}"))
    };
    for record in open(file).map_err(changed)? {
        let record = record.map_err(changed)?;
        if new.contains(&record.run) {
            handle.block_on(log.import(record))?;
        }
    }
    Ok(imported)
}

enum Problem {
    File(FileError),
    Store(StoreError),
}

fn open(file: &Path) -> Result<Reader<'static>, FileError> {
    Reader::new(File::open(file)?)
}

/// Compares the whole file with the log.
fn compare(log: &SledStore, handle: &Handle, file: &Path) -> Result<Imported, Problem> {
    let mut imported = Imported::default();
    let mut seen = BTreeSet::new();
    for record in open(file).map_err(Problem::File)? {
        let record = record.map_err(Problem::File)?;
        let run = record.run.clone();
        if !seen.insert(run.clone()) {
            imported.differ.push((run, "the file has it twice".into()));
            continue;
        }
        match handle.block_on(log.export(&run)) {
            Ok(None) => imported.new.push(run),
            Ok(Some(here)) => match here.difference(&record) {
                None => imported.same.push(run),
                Some(difference) => imported.differ.push((run, difference)),
            },
            Err(error @ StoreError::Damaged { .. }) => {
                imported.differ.push((run, format!("the log has a {error}")));
            }
            Err(error) => return Err(Problem::Store(error)),
        }
    }
    Ok(imported)
}
