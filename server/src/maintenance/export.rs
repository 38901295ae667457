//! Writes runs to a file atomically: into a temporary file, then renamed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::Utc;
use longhaul_engine::StoreError;
use longhaul_storage::FileError;
use longhaul_storage::bundle::{Backup, Header, Writer};
use longhaul_storage::{Scope, Snapshot};

use super::{Export, Exported};
use crate::service::Service;

pub(crate) async fn run(service: &Service, export: Export) -> Result<Exported, StoreError> {
    let Export { scope, file, compress, backup } = export;
    let snapshot = service.log.snapshot(scope.clone()).await?;
    let is_unknown = snapshot.is_empty() && snapshot.unreadable().is_empty();
    if let (true, Scope::Run(run) | Scope::Below(run)) = (is_unknown, scope) {
        return Err(StoreError::UnknownRun(run));
    }
    let backup = backup.then(|| Backup { epoch: snapshot.epoch(), at: Utc::now() });
    let written = tokio::task::spawn_blocking(move || {
        let written = write(&snapshot, &file, compress, Header { backup });
        written.map_err(|error| StoreError::Io {
            doing: format!("writing {}", file.display()),
            reason: error.to_string(),
        })
    });
    written.await.unwrap_or_else(|error| {
        Err(StoreError::Unusable(format!("the export did not end: {error}")))
    })
}

fn write(
    snapshot: &Snapshot,
    file: &Path,
    compress: bool,
    header: Header,
) -> Result<Exported, FileError> {
    let part = PartialFile::beside(file)?;
    let out = BufWriter::new(part.file.try_clone()?);
    let exported = if compress {
        let encoder = longhaul_storage::bundle::compressed(out)?;
        let (encoder, exported) = write_to(snapshot, encoder, header)?;
        encoder.finish()?.flush()?;
        exported
    } else {
        let (mut out, exported) = write_to(snapshot, out, header)?;
        out.flush()?;
        exported
    };
    part.keep(file)?;
    Ok(exported)
}

fn write_to<W: Write>(
    snapshot: &Snapshot,
    out: W,
    header: Header,
) -> Result<(W, Exported), FileError> {
    let mut writer = Writer::new(out, header)?;
    let mut runs = 0;
    let mut events = 0;
    let mut damaged = Vec::new();
    for (run, record) in snapshot.iter() {
        let written = record.map_err(|error| error.to_string()).and_then(|record| {
            match writer.write(&record) {
                Ok(()) => Ok(Ok(record.events.len() as u64)),
                Err(error @ FileError::Unwritable { .. }) => Err(error.to_string()),
                Err(error) => Ok(Err(error)),
            }
        });
        match written {
            Ok(length) => {
                events += length?;
                runs += 1;
            }
            Err(reason) => damaged.push((run.clone(), reason)),
        }
    }
    let unreadable = snapshot.unreadable();
    Ok((writer.finish()?, Exported { runs, events, damaged, unreadable }))
}

/// A temporary target file, removed on drop unless it is kept.
struct PartialFile {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl PartialFile {
    fn beside(file: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", uuid::Uuid::now_v7().simple()));
        let path = file.with_file_name(name);
        // A history contains texts of people and agents, so only the owner may read the file.
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file, kept: false })
    }

    fn keep(mut self, at: &Path) -> std::io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, at)?;
        self.kept = true;
        match at.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
