//! Reads a log that sled cannot open: one damaged byte in the last segment of its file suffices.
//!
//! Each message of the file is read by itself, oldest first. Records are checksummed over key and
//! value, so nothing false is recovered; older copies fill some gaps.

mod content;
mod file;
mod guard;
mod segment;

use std::path::{Path, PathBuf};

use chrono::Utc;
use longhaul_engine::StoreError;

use crate::directory::{lock, owner_record};
use crate::error::io;
use crate::shutdown_marker::ShutdownMarker;
use crate::{files, key, replace};

pub(crate) use guard::{end, guard};

pub(crate) use content::Content;
use file::SledFile;

/// The readable part of a log that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvage {
    /// The number of readable records.
    pub records: u64,
    /// The number of unreadable places in the file.
    pub places: u64,
    /// The offset of the first of them, in bytes.
    pub first: Option<u64>,
    /// The path of the damaged log, if it was replaced by a new one with the readable records.
    pub kept: Option<PathBuf>,
}

/// Collects the readable records of a log that cannot be opened. With `replace`, a new log with
/// them takes its place, and the damaged one is kept beside it.
///
/// # Errors
/// If a process owns the log, the file cannot be read, or the new log cannot be written.
pub fn salvage(directory: &Path, replace: bool) -> Result<Salvage, StoreError> {
    salvage_with(directory, replace, |_| Ok(()))
}

/// The same; also calls `look` on the readable content while the directory is locked.
pub(crate) fn salvage_with(
    directory: &Path,
    replace: bool,
    look: impl FnOnce(&Content) -> Result<(), StoreError>,
) -> Result<Salvage, StoreError> {
    let _lock = lock(directory)?;
    replace::finish(directory)?;
    let (content, places) = read(directory.join("log/db"))?;
    look(&content)?;
    let records = content.records().len() as u64;
    let kept = if replace { Some(put(directory, &content)?) } else { None };
    Ok(Salvage { records, places: places.len() as u64, first: places.first().copied(), kept })
}

/// The content of sled's file, and its unreadable places.
fn read(path: PathBuf) -> Result<(Content, Vec<u64>), StoreError> {
    if !path.exists() {
        return Ok((Content::default(), Vec::new()));
    }
    let mut file = SledFile::open(path)?;
    let mut order = Vec::new();
    let mut places = Vec::new();
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

/// Creates a log with this content and replaces the damaged one.
fn put(directory: &Path, content: &Content) -> Result<PathBuf, StoreError> {
    // Message numbers contain epochs, so no epoch may repeat.
    let owner =
        ShutdownMarker::read(directory).map(|marker| owner_record(marker.epoch)).transpose()?;
    let owner = owner.and_then(|(key, value)| Some((key.to_vec(), value?.to_vec())));
    let owner = owner.filter(|(key, _)| !content.records().contains_key(key));
    replace::prepare(directory, |db| {
        let records = content.records().iter().filter(|(key, _)| *key != key::FORMAT);
        replace::write_all(db, records.chain(owner.iter().map(|(key, value)| (key, value))).map(Ok))
    })?;
    let kept = directory.join(format!("log.damaged-{}", Utc::now().format("%Y%m%dT%H%M%S%.3fZ")));
    if !directory.join("log").exists() {
        std::fs::create_dir(directory.join("log"))
            .map_err(|error| io("creating the directory", &kept, &error))?;
    }
    replace::swap(directory, &kept)?;
    keep_payloads(directory, &kept)?;
    Ok(kept)
}

/// Links the payloads into the directory of the damaged log: it names some that the new log does
/// not, and those are removed.
fn keep_payloads(directory: &Path, kept: &Path) -> Result<(), StoreError> {
    let from = directory.join("blobs");
    let to = kept.join("payloads");
    if !from.is_dir() {
        return Ok(());
    }
    files::create_directory(&to)?;
    for path in files::entries(&from)?.iter().filter(|path| path.is_dir()) {
        for file in files::entries(path)? {
            let place = to.join(file.file_name().unwrap_or_default());
            std::fs::hard_link(&file, &place)
                .or_else(|_| std::fs::copy(&file, &place).map(drop))
                .map_err(|error| io("keeping", &file, &error))?;
        }
    }
    files::sync_directory(&to)
}
