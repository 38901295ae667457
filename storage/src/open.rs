//! Opens a data directory: one owner, a known format, an epoch, and every file and name durable
//! before any use.

use std::fs::File;
use std::path::{Path, PathBuf};

use longhaul_engine::StoreError;

use crate::blob::Source;
use crate::directory::{DirectoryLock, KEYSPACE, lock, open_sled, owner_record, unwritable};
use crate::error::{catch_sled_panic, io, unreadable};
use crate::salvage::{end, guard};
use crate::shutdown_marker::{self, ShutdownMarker, State};
use crate::wire::v1;
use crate::{files, key, record, replace};

/// An opened log.
#[derive(Debug)]
pub(crate) struct OpenedLog {
    pub(crate) db: sled::Db,
    /// A separate descriptor of sled's file.
    pub(crate) file: File,
    pub(crate) epoch: u64,
    /// Held while the log is open; released last.
    pub(crate) lock: DirectoryLock,
}

/// Opens or creates the log in a data directory.
pub(crate) fn open(directory: &Path) -> Result<OpenedLog, StoreError> {
    files::private_directory(directory)?;
    let lock = lock(directory)?;
    let opened = catch_sled_panic(|| open_locked(directory, lock));
    let damaged = |reason| StoreError::Unopenable {
        log: directory.join("log").display().to_string(),
        reason,
    };
    match opened {
        Ok(Err(StoreError::Damaged { record, reason })) => {
            Err(damaged(format!("{record}: {reason}")))
        }
        Ok(opened) => opened,
        Err(panic) => Err(damaged(panic)),
    }
}

fn open_locked(directory: &Path, lock: DirectoryLock) -> Result<OpenedLog, StoreError> {
    let log = directory.join("log");
    replace::finish(directory)?;
    let marker = ShutdownMarker::read(directory);
    if !log.join("db").exists() {
        if log.exists() || marker.is_some() {
            let log = log.join("db").display().to_string();
            return Err(StoreError::Unopenable { log, reason: "it is missing".into() });
        }
        replace::create(directory)?;
    }
    remove_half_written_snapshots(&log)?;
    guard(&log, marker.as_ref())?;
    marker.map_or(Ok(()), |marker| marker.opening(directory))?;
    let mut db = open_sled(&log)?;
    check_format(&db, directory)?;
    let last = last_epoch(&db)?;
    shutdown_marker::check(&db, directory, last)?;
    if replace::is_pruned(&db).map_err(|error| unreadable(&error))? {
        db = replace::rewrite(directory, db)?;
    }
    let path = log.join("db");
    let file =
        File::options().write(true).open(&path).map_err(|error| io("opening", &path, &error))?;
    let epoch = take_epoch(&db, last)?;
    // Data that the last owner wrote but did not sync is now read as committed, so it is made
    // durable first.
    files::sync_tree(&log)?;
    files::sync_directory(directory)?;
    sync_parent(directory)?;
    ShutdownMarker { epoch, state: State::Open, end: end(&log)? }.write(directory)?;
    Ok(OpenedLog { db, file, epoch, lock })
}

/// sled permanently refuses to open a log whose last owner died while writing a snapshot.
fn remove_half_written_snapshots(log: &Path) -> Result<(), StoreError> {
    for path in files::entries(log)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            std::fs::remove_file(&path).map_err(|error| io("removing", &path, &error))?;
        }
    }
    Ok(())
}

fn check_format(db: &sled::Db, directory: &Path) -> Result<(), StoreError> {
    let Some(value) = db.get(key::FORMAT).map_err(|error| unreadable(&error))? else {
        let log = directory.join("log").display().to_string();
        return Err(StoreError::Unopenable {
            log,
            reason: "the record of its format is missing".into(),
        });
    };
    let directory = directory.display();
    let format: v1::Format = record::decode(key::FORMAT, &value, Source::Nowhere)
        .map_err(|error| error.in_record(|| format!("format of the log in {directory}")))?;
    if format.version > KEYSPACE {
        return Err(StoreError::Unusable(format!(
            "the log in {directory} has format {}, this longhaul knows formats up to {KEYSPACE}; \
             use the newer longhaul that wrote it, or another data directory",
            format.version
        )));
    }
    Ok(())
}

/// The epoch of the last owner; zero if there was none.
fn last_epoch(db: &sled::Db) -> Result<u64, StoreError> {
    for key in db.scan_prefix(key::OWNER).keys().rev() {
        let key = key.map_err(|error| unreadable(&error))?;
        if let Some(epoch) = key::number_of(&key) {
            return Ok(epoch);
        }
    }
    Ok(0)
}

/// Records this process as the owner. The caller makes it durable.
fn take_epoch(db: &sled::Db, last: u64) -> Result<u64, StoreError> {
    let epoch = last + 1;
    let (key, value) = owner_record(epoch)?;
    let value = value.unwrap_or_default();
    db.insert(key, value).and_then(|_| db.flush()).map_err(|error| match error {
        sled::Error::Corruption { .. } => unreadable(&error),
        error => unwritable(&error),
    })?;
    Ok(epoch)
}

/// Syncs the name of the data directory itself. A user without read permission on its parent has
/// not just created it.
fn sync_parent(directory: &Path) -> Result<(), StoreError> {
    let full: PathBuf =
        directory.canonicalize().map_err(|error| io("resolving", directory, &error))?;
    let Some(parent) = full.parent() else {
        return Ok(());
    };
    match File::open(parent) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        _ => files::sync_directory(parent),
    }
}
