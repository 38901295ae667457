//! Replaces the log by another one. At every moment the directory has the log, or a complete
//! `log.next` that the next open moves into its place.

use std::path::Path;

use longhaul_engine::StoreError;

use crate::directory::{new_log, open_sled, until_released};
use crate::error::{catch_sled_panic, io, unreadable};
use crate::space::{RESERVE, free_bytes, probe_of};
use crate::{files, key, shutdown_marker};

/// A log that is being written.
const DRAFT: &str = "log.new";
/// A complete log that is about to replace the current one.
const NEXT: &str = "log.next";
/// A replaced log, to be removed.
const OLD: &str = "log.old";

/// The number of records per batch.
const BATCH: usize = 1000;

/// Upper bound of disk bytes for each byte of a record while a log is written.
const OVERHEAD: u64 = 3;

/// Creates an empty log and moves it into place.
pub(crate) fn create(directory: &Path) -> Result<(), StoreError> {
    prepare(directory, |_| Ok(()))?;
    put_in_place(directory)
}

/// Writes a log beside the current one, durably. [`swap`] replaces the current log by it.
pub(crate) fn prepare(
    directory: &Path,
    fill: impl FnOnce(&sled::Db) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let draft = directory.join(DRAFT);
    let next = directory.join(NEXT);
    for stale in [&draft, &next] {
        remove(stale)?;
    }
    new_log(&draft, fill)?;
    until_released(&draft)?;
    files::sync_tree(&draft)?;
    std::fs::rename(&draft, &next).map_err(|error| io("naming", &next, &error))?;
    files::sync_directory(directory)
}

/// Moves the log to `old`, and the prepared one into its place.
pub(crate) fn swap(directory: &Path, old: &Path) -> Result<(), StoreError> {
    let log = directory.join("log");
    until_released(&log)?;
    std::fs::rename(&log, old).map_err(|error| io("moving", &log, &error))?;
    files::sync_directory(directory)?;
    put_in_place(directory)
}

/// Completes an interrupted replacement, and removes its leftovers. The caller holds the lock of
/// the directory.
pub(crate) fn finish(directory: &Path) -> Result<(), StoreError> {
    if !directory.join("log").exists() && directory.join(NEXT).exists() {
        put_in_place(directory)?;
    }
    for left in [DRAFT, NEXT, OLD] {
        remove(&directory.join(left))?;
    }
    shutdown_marker::remove_temporary(directory)
}

/// The last step. The shutdown marker of the old log does not apply to the new one.
fn put_in_place(directory: &Path) -> Result<(), StoreError> {
    shutdown_marker::remove(directory)?;
    // Removed first: a power cut that kept only the rename would leave the old marker with the new
    // log.
    files::sync_directory(directory)?;
    let log = directory.join("log");
    std::fs::rename(directory.join(NEXT), &log).map_err(|error| io("naming", &log, &error))?;
    files::sync_directory(directory)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("removing", path, &error))
        }
        _ => Ok(()),
    }
}

/// Whether a log was pruned and not rewritten since.
pub(crate) fn is_pruned(db: &sled::Db) -> sled::Result<bool> {
    db.contains_key(key::PRUNED)
}

/// Rewrites a log without the space of removed records, and reopens it, because sled does not
/// return that space. The log stays unchanged if a part is unreadable or the disk has no room for a
/// second copy.
pub(crate) fn rewrite(directory: &Path, db: sled::Db) -> Result<sled::Db, StoreError> {
    let copied =
        catch_sled_panic(|| prepare_copy(directory, &db).map_err(|error| error.to_string()));
    if let Err(error) = copied.unwrap_or_else(Err) {
        tracing::warn!(error, "the space of pruned histories is not reclaimed yet");
        remove(&directory.join(DRAFT))?;
        return Ok(db);
    }
    drop(db);
    let old = directory.join(OLD);
    swap(directory, &old)?;
    remove(&old)?;
    open_sled(&directory.join("log"))
}

fn prepare_copy(directory: &Path, db: &sled::Db) -> Result<(), StoreError> {
    let unreadable = |error: sled::Error| unreadable(&error);
    let mut bytes = 0;
    for entry in db.iter() {
        let (key, value) = entry.map_err(unreadable)?;
        bytes += (key.len() + value.len()) as u64;
    }
    let free = free_bytes(&probe_of(directory))?;
    let needed = bytes * OVERHEAD + RESERVE;
    if free < needed {
        let free = free >> 20;
        let needed = needed >> 20;
        return Err(StoreError::Full(format!(
            "a rewrite of the log needs {needed} MiB, {free} MiB are free"
        )));
    }
    prepare(directory, |new| {
        let records =
            db.iter().filter(|entry| !entry.as_ref().is_ok_and(|(key, _)| *key == key::PRUNED));
        write_all(new, records.map(|entry| entry.map_err(unreadable)))?;
        let same =
            new.iter().filter(|entry| !entry.as_ref().is_ok_and(|(key, _)| *key == key::FORMAT));
        let expected = db.iter().filter(|entry| {
            !entry.as_ref().is_ok_and(|(key, _)| *key == key::FORMAT || *key == key::PRUNED)
        });
        if same.eq(expected) {
            Ok(())
        } else {
            Err(StoreError::Unusable("the copy of the log differs from it".into()))
        }
    })
}

/// Writes records in batches.
pub(crate) fn write_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    db: &sled::Db,
    records: impl Iterator<Item = Result<(K, V), StoreError>>,
) -> Result<(), StoreError> {
    let failed = |error: sled::Error| {
        StoreError::Unusable(format!("the new log cannot be written: {error}"))
    };
    let mut batch = sled::Batch::default();
    for (number, record) in records.enumerate() {
        let (key, value) = record?;
        batch.insert(key.as_ref(), value.as_ref());
        if number % BATCH == BATCH - 1 {
            db.apply_batch(std::mem::take(&mut batch)).map_err(failed)?;
        }
    }
    db.apply_batch(batch).map_err(failed)
}
