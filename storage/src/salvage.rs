//! Reading a log that sled cannot open any more: one damaged byte in the last segment of its file is enough for that.
//!
//! Each message of the file is taken by itself, oldest first, and each of our records has a checksum over its key and value.
//! So what is taken for a record was one, and a damaged place costs what it holds, less what older messages still say.

mod content;
mod file;
mod guard;
mod segment;

use std::path::{Path, PathBuf};

use chrono::Utc;
use longhaul_engine::StoreError;

use crate::flaw::io;
use crate::open::{lock, new_log, owner_record};
use crate::witness::Witness;
use crate::{files, key, witness};

pub(crate) use guard::guard;

use content::Content;
use file::SledFile;

/// Where a log is made that takes the place of a damaged one.
pub(crate) const SALVAGED: &str = "log.salvaged";

/// How many records are written at once.
const BATCH: usize = 1000;

/// What can be read of a log that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// How many records can be read.
    pub records: u64,
    /// How many places of the file cannot.
    pub places: u64,
    /// Where the first of them is, in bytes.
    pub first: Option<u64>,
    /// Where the damaged log was moved to, if it was replaced by one of what can be read.
    pub kept: Option<PathBuf>,
}

/// Looks for what can be read of a log that cannot be opened. With `replace`, a log of that takes its place, and the damaged
/// one is kept beside it.
///
/// # Errors
/// If somebody owns the log, or the file cannot be read, or the new one not be written.
pub fn salvage(directory: &Path, replace: bool) -> Result<Salvage, StoreError> {
    let _lock = lock(directory)?;
    let (content, places) = read(directory.join("log/db"))?;
    let records = content.records().len() as u64;
    let kept = if replace { Some(put(directory, &content)?) } else { None };
    Ok(Salvage { records, places: places.len() as u64, first: places.first().copied(), kept })
}

/// What a file of sled's holds, and the places that cannot be read.
fn read(path: PathBuf) -> Result<(Content, Vec<u64>), StoreError> {
    let mut file = SledFile::open(path)?;
    let (mut order, mut places) = (Vec::new(), Vec::new());
    for start in file.starts() {
        match file.segment(start)? {
            Ok(segment) => order.push((segment.number(), start)),
            Err(nothing) if nothing.is_used => places.push(start),
            Err(_) => {}
        }
    }
    order.sort_unstable();
    let last = order.last().copied();
    let mut content = Content::default();
    for place in order {
        if let Ok(segment) = file.segment(place.1)? {
            places.extend(segment.walk(Some(place) == last, |message| content.take(&message)));
        }
    }
    places.sort_unstable();
    Ok((content, places))
}

/// Makes a log of this content and puts it in the place of the damaged one. If this process dies between the two renames,
/// the next that opens the directory does the second.
fn put(directory: &Path, content: &Content) -> Result<PathBuf, StoreError> {
    let (log, new) = (directory.join("log"), directory.join(SALVAGED));
    if new.exists() {
        std::fs::remove_dir_all(&new).map_err(|error| io("removing", &new, &error))?;
    }
    // Numbers of messages are made of epochs, so none may come again.
    let owner = Witness::read(directory).map(|witness| owner_record(witness.epoch)).transpose()?;
    let write = |db: &sled::Db| {
        let mut batch = sled::Batch::default();
        for (number, (key, value)) in content.records().iter().filter(|(key, _)| *key != key::FORMAT).enumerate() {
            batch.insert(key.as_slice(), value.as_slice());
            if number % BATCH == BATCH - 1 {
                db.apply_batch(std::mem::take(&mut batch))?;
            }
        }
        if let Some((key, Some(value))) = owner.filter(|(key, _)| !content.records().contains_key(key.as_ref())) {
            batch.insert(key, value);
        }
        db.apply_batch(batch)
    };
    new_log(&new, write)?;
    let kept = directory.join(format!("log.damaged-{}", Utc::now().format("%Y%m%dT%H%M%S%.3fZ")));
    std::fs::rename(&log, &kept).map_err(|error| io("moving", &log, &error))?;
    files::sync_directory(directory)?;
    put_in_place(directory)?;
    Ok(kept)
}

/// The last step: the salvaged log is the log, and what was said of the one before is no more.
pub(crate) fn put_in_place(directory: &Path) -> Result<(), StoreError> {
    witness::remove(directory)?;
    let log = directory.join("log");
    std::fs::rename(directory.join(SALVAGED), &log).map_err(|error| io("naming", &log, &error))?;
    files::sync_directory(directory)
}
