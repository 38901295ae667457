//! The parts of a data directory: its lock, its sled log, and the records about its owners.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use chrono::Utc;
use longhaul_engine::StoreError;

use crate::error::{catch_sled_panic, io, page_of};
use crate::record::Write;
use crate::wire::v1;
use crate::{files, key, record};

/// The version of the keyspace.
pub(crate) const KEYSPACE: u32 = 1;

/// The size of sled's page cache.
const CACHE: u64 = 64 * 1024 * 1024;

/// How long to wait until the threads of a store just closed release the file.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes the lock and writes the process id into it, for the error of another process.
pub(crate) fn lock(directory: &Path) -> Result<DirectoryLock, StoreError> {
    let path = directory.join("lock");
    files::must_be_file(&path)?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| io("opening", &path, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let _ = file.read_to_string(&mut owner);
            let owner = owner.trim().to_owned();
            return Err(StoreError::Owned { directory: directory.display().to_string(), owner });
        }
        Err(TryLockError::Error(error)) => return Err(io("locking", &path, &error)),
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(|error| io("writing", &path, &error))?;
    Ok(DirectoryLock(file))
}

/// The lock of a data directory.
#[derive(Debug)]
pub(crate) struct DirectoryLock(File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being spawned shares it until
        // exec.
        let _ = self.0.unlock();
    }
}

/// Creates a log with the content that `fill` writes. The caller makes it durable.
pub(crate) fn new_log(
    path: &Path,
    fill: impl FnOnce(&sled::Db) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let db = open_sled(path)?;
    let format = record::encode_small(key::FORMAT, &v1::Format { version: KEYSPACE })?;
    fill(&db)?;
    db.insert(key::FORMAT, format).and_then(|_| db.flush()).map_err(|error| unwritable(&error))?;
    Ok(())
}

pub(crate) fn open_sled(path: &Path) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new()
        .path(path)
        .flush_every_ms(None)
        .mode(sled::Mode::LowSpace)
        .cache_capacity(CACHE);
    let damaged = |reason: String| StoreError::Unopenable {
        log: path.join("db").display().to_string(),
        reason: reason.lines().next().unwrap_or_default().to_owned(),
    };
    for file in ["db", "conf"] {
        files::must_be_file(&path.join(file))?;
    }
    until_released(path)?;
    let opened = catch_sled_panic(|| config.open());
    match opened.map_err(|panic| damaged(format!("sled panicked: {panic}")))? {
        Ok(db) => Ok(db),
        // An IO error without an OS code is sled's own, about damaged content.
        Err(sled::Error::Io(error)) if error.raw_os_error().is_some() => {
            Err(io("opening the log", path, &error))
        }
        Err(sled::Error::Io(error)) => Err(damaged(error.to_string())),
        Err(error @ sled::Error::Corruption { .. }) => {
            let reason = format!("{} is damaged, or the file was truncated", page_of(&error));
            Err(damaged(reason))
        }
        Err(error) => Err(damaged(error.to_string())),
    }
}

/// Waits until no thread of sled has the file of a log that this process has closed: such a thread
/// still locks the file, and writes files into the directory by path.
pub(crate) fn until_released(log: &Path) -> Result<(), StoreError> {
    let path = log.join("db");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("opening", &path, &error)),
    };
    // A lock request has no timeout, so a thread makes it. A thread that comes too late releases
    // the lock at once.
    let (sender, released) = mpsc::channel();
    std::thread::spawn(move || {
        // Unlocked explicitly: a child process that is being spawned shares the file until exec.
        let _ = sender.send(file.lock().and_then(|()| file.unlock()));
    });
    match released.recv_timeout(RELEASE_TIMEOUT) {
        Ok(locked) => locked.map_err(|error| io("locking", &path, &error)),
        Err(_) => Err(StoreError::Unusable(format!(
            "{} is not released after {RELEASE_TIMEOUT:?}",
            path.display()
        ))),
    }
}

/// The record that this process owns the log in an epoch.
pub(crate) fn owner_record(epoch: u64) -> Result<Write, StoreError> {
    record_of_this(key::owner(epoch))
}

/// The record that this process closed the log.
pub(crate) fn closed_record(epoch: u64) -> Result<Write, StoreError> {
    record_of_this(key::closed(epoch))
}

/// The record that histories were removed: the next open rewrites the log without their space.
pub(crate) fn pruned_record() -> Result<Write, StoreError> {
    record_of_this(key::PRUNED.to_vec())
}

fn record_of_this(key: Vec<u8>) -> Result<Write, StoreError> {
    let owner = v1::Owner { pid: std::process::id(), at: Utc::now().into() };
    let value = record::encode_small(&key, &owner)?;
    Ok((key.into(), Some(value.into())))
}

pub(crate) fn unwritable(error: &sled::Error) -> StoreError {
    StoreError::Unusable(format!("the log cannot be written: {error}"))
}
