//! Opening a data directory: one owner, a known format, an epoch, and every file and name durable before any use.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::Utc;
use longhaul_engine::StoreError;

use crate::blob::Source;
use crate::flaw::io;
use crate::ledger::{page, unreadable};
use crate::quiet::caught;
use crate::salvage::{end, guard};
use crate::wire::v1;
use crate::witness::{self, State, Witness};
use crate::{files, key, record, replace};

/// The version of the keyspace.
const KEYSPACE: u32 = 1;

/// What sled may keep in memory.
const CACHE: u64 = 64 * 1024 * 1024;

/// How long to wait for the threads of a store that was just closed to let go of the file.
const PATIENCE: Duration = Duration::from_secs(30);

/// An opened log.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) db: sled::Db,
    /// Our own descriptor of sled's file.
    pub(crate) file: File,
    pub(crate) epoch: u64,
    /// Held for as long as the log is open; let go last.
    pub(crate) lock: File,
}

/// Opens or creates the log in a data directory.
pub(crate) fn open(directory: &Path) -> Result<Opened, StoreError> {
    files::private_directory(directory)?;
    let lock = lock(directory)?;
    let opened = caught(|| open_locked(directory, lock));
    let damaged = |reason| StoreError::Unopenable { log: directory.join("log").display().to_string(), reason };
    match opened {
        Ok(Err(StoreError::Damaged { record, reason })) => Err(damaged(format!("{record}: {reason}"))),
        Ok(opened) => opened,
        Err(panic) => Err(damaged(panic)),
    }
}

fn open_locked(directory: &Path, lock: File) -> Result<Opened, StoreError> {
    let log = directory.join("log");
    replace::finish(directory)?;
    let witness = Witness::read(directory);
    if !log.join("db").exists() {
        if log.exists() || witness.is_some() {
            let log = log.join("db").display().to_string();
            return Err(StoreError::Unopenable { log, reason: "it is missing".into() });
        }
        replace::create(directory)?;
    }
    remove_half_written_snapshots(&log)?;
    guard(&log, witness.as_ref())?;
    witness.map_or(Ok(()), |witness| witness.opening(directory))?;
    let mut db = open_sled(&log)?;
    check_format(&db, directory)?;
    let last = last_epoch(&db)?;
    witness::check(&db, directory, last)?;
    if replace::is_pruned(&db).map_err(|error| unreadable(&error))? {
        db = replace::rewrite(directory, db, open_sled)?;
    }
    let path = log.join("db");
    let file = File::options().write(true).open(&path).map_err(|error| io("opening", &path, &error))?;
    let epoch = take_epoch(&db, last)?;
    // What the last owner wrote and did not sync is read as true from now on, so it is made durable now.
    files::sync_tree(&log)?;
    files::sync_directory(directory)?;
    sync_parent(directory)?;
    Witness { epoch, state: State::Open, end: end(&log)? }.write(directory)?;
    Ok(Opened { db, file, epoch, lock })
}

/// Takes the lock and leaves our process id for whoever finds it taken.
pub(crate) fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("lock");
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
    Ok(file)
}

/// Makes a log with what `fill` writes. The caller makes it durable.
pub(crate) fn new_log(path: &Path, fill: impl FnOnce(&sled::Db) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let db = open_sled(path)?;
    let format = record::encode_small(key::FORMAT, &v1::Format { version: KEYSPACE })?;
    fill(&db)?;
    db.insert(key::FORMAT, format).and_then(|_| db.flush()).map_err(|error| unwritable(&error))?;
    Ok(())
}

/// sled refuses for good to open a log in which its last owner died while it wrote a snapshot.
fn remove_half_written_snapshots(log: &Path) -> Result<(), StoreError> {
    for path in files::entries(log)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            std::fs::remove_file(&path).map_err(|error| io("removing", &path, &error))?;
        }
    }
    Ok(())
}

fn open_sled(path: &Path) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new().path(path).flush_every_ms(None).mode(sled::Mode::LowSpace).cache_capacity(CACHE);
    let damaged = |reason: String| StoreError::Unopenable {
        log: path.join("db").display().to_string(),
        reason: reason.lines().next().unwrap_or_default().to_owned(),
    };
    let begun = Instant::now();
    loop {
        let opened = caught(|| config.open());
        match opened.map_err(|panic| damaged(format!("sled panicked: {panic}")))? {
            Ok(db) => return Ok(db),
            // We hold the lock, so this is a thread of a store that this process has just closed.
            Err(sled::Error::Io(error)) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            // An error without a number is sled's own, about what it has read.
            Err(sled::Error::Io(error)) if error.raw_os_error().is_some() => {
                return Err(io("opening the log", path, &error));
            }
            Err(sled::Error::Io(error)) => return Err(damaged(error.to_string())),
            Err(error @ sled::Error::Corruption { .. }) => {
                let reason = format!("{} is not what was written, or the file was cut", page(&error));
                return Err(damaged(reason));
            }
            Err(error) => return Err(damaged(error.to_string())),
        }
    }
}

fn is_busy(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock || error.to_string().contains("could not acquire lock")
}

fn check_format(db: &sled::Db, directory: &Path) -> Result<(), StoreError> {
    let Some(value) = db.get(key::FORMAT).map_err(|error| unreadable(&error))? else {
        let log = directory.join("log").display().to_string();
        return Err(StoreError::Unopenable { log, reason: "the record of its format is missing".into() });
    };
    let directory = directory.display();
    let format: v1::Format = record::decode(key::FORMAT, &value, Source::Nowhere)
        .map_err(|flaw| flaw.in_record(|| format!("format of the log in {directory}")))?;
    if format.version > KEYSPACE {
        return Err(StoreError::Unusable(format!(
            "the log in {directory} has format {}, this longhaul knows formats up to {KEYSPACE}; use the newer longhaul \
             that wrote it, or another data directory",
            format.version
        )));
    }
    Ok(())
}

/// The epoch of the last owner; zero if there was none.
fn last_epoch(db: &sled::Db) -> Result<u64, StoreError> {
    let last = db.scan_prefix(key::OWNER).keys().next_back().transpose().map_err(|error| unreadable(&error))?;
    Ok(last.and_then(|key| key::number_of(&key)).unwrap_or(0))
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

/// The record that says that this process owns the log in an epoch.
pub(crate) fn owner_record(epoch: u64) -> Result<crate::order::Write, StoreError> {
    record_of_this(key::owner(epoch))
}

/// The record that says that this process closed the log.
pub(crate) fn closed_record(epoch: u64) -> Result<crate::order::Write, StoreError> {
    record_of_this(key::closed(epoch))
}

/// The record that says that histories were removed: the next open rewrites the log without their space.
pub(crate) fn pruned_record() -> Result<crate::order::Write, StoreError> {
    record_of_this(key::PRUNED.to_vec())
}

fn record_of_this(key: Vec<u8>) -> Result<crate::order::Write, StoreError> {
    let owner = v1::Owner { pid: std::process::id(), at: Utc::now().into() };
    let value = record::encode_small(&key, &owner)?;
    Ok((key.into(), Some(value.into())))
}

fn unwritable(error: &sled::Error) -> StoreError {
    StoreError::Unusable(format!("the log cannot be written: {error}"))
}

/// The name of the data directory itself; somebody who may not open its parent cannot have just created it.
fn sync_parent(directory: &Path) -> Result<(), StoreError> {
    let full: PathBuf = directory.canonicalize().map_err(|error| io("resolving", directory, &error))?;
    let Some(parent) = full.parent() else {
        return Ok(());
    };
    match File::open(parent) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        _ => files::sync_directory(parent),
    }
}
