//! Checks a log before sled opens it. If sled finds a damaged message during recovery, it treats
//! that as the end of the log and overwrites everything after it. That is right for writes in
//! progress at a crash, but it destroys data that was durable before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longhaul_engine::StoreError;

use super::file::SledFile;
use super::segment::{Head, LENGTH};
use crate::files;
use crate::shutdown_marker::{ShutdownMarker, State};

/// The last segments, which do not prove durability: they may be part of an unfinished write.
const UNCERTAIN: usize = 2;

/// Refuses a truncated log, and one that sled would truncate at a damaged place. A log closed by
/// its last owner is durable in full.
pub(crate) fn guard(log: &Path, marker: Option<&ShutdownMarker>) -> Result<(), StoreError> {
    let is_closed = marker.is_some_and(|marker| marker.state == State::Closed);
    let path = log.join("db");
    if !path.exists() {
        return Ok(());
    }
    let mut file = SledFile::open(path)?;
    let starts: Vec<u64> = file.starts().collect();
    let mut heads = Vec::new();
    for start in starts {
        heads.push((start, file.head(start)?));
    }
    if let Some((first, second)) = copied(&mut file, &heads)? {
        return Err(StoreError::Unopenable {
            log: file.path().display().to_string(),
            reason: format!("the data at byte {first} is repeated at byte {second}"),
        });
    }
    let snapshot = last_snapshot(log)?;
    let known =
        if is_closed { u64::MAX } else { marker.and_then(|marker| marker.end).unwrap_or(0) };
    if let Some(missing) = missing(&heads, snapshot).filter(|number| number * LENGTH < known) {
        return Err(StoreError::Unopenable {
            log: file.path().display().to_string(),
            reason: format!("its segment {missing} is missing or damaged"),
        });
    }
    let last = heads.iter().filter_map(|(_, head)| head.as_ref()).map(Head::number).max();
    let durable = if is_closed { u64::MAX } else { durable(&heads, snapshot) };
    for (start, head) in heads {
        let is_read_again = |number: u64| number >= snapshot / LENGTH && number * LENGTH < durable;
        if head.as_ref().is_some_and(|head| !is_read_again(head.number())) {
            continue;
        }
        let Ok(segment) = file.segment(start)? else { continue };
        if !is_read_again(segment.number()) {
            continue;
        }
        let is_last = last.is_none_or(|last| segment.number() >= last);
        let places = segment.walk(is_last, |_| ()).into_iter();
        let mut damaged =
            places.filter(|place| segment.number() * LENGTH + (place - start) < durable);
        let first = if head.is_none() { Some(start) } else { damaged.next() };
        if let Some(place) = first {
            return Err(StoreError::Unopenable {
                log: file.path().display().to_string(),
                reason: format!("the data at byte {place} is damaged"),
            });
        }
    }
    if let Some(known) = marker.and_then(|marker| marker.end)
        && end(log)?.is_none_or(|end| end < known)
    {
        return Err(StoreError::Unopenable {
            log: file.path().display().to_string(),
            reason: "its end is missing or damaged".into(),
        });
    }
    Ok(())
}

/// Two equal segments. sled writes each once, so one was overwritten with the other; recovery would
/// take either for the data, and truncate.
fn copied(
    file: &mut SledFile,
    heads: &[(u64, Option<Head>)],
) -> Result<Option<(u64, u64)>, StoreError> {
    let mut known = BTreeMap::new();
    for (start, head) in heads {
        let Some(head) = head else { continue };
        if let Some(first) = known.insert(head.number(), *start)
            && file.is_repeated(first, *start)?
        {
            return Ok(Some((first, *start)));
        }
    }
    Ok(None)
}

/// The first segment that is missing between those that are certainly durable and the last one:
/// recovery would truncate the log there.
fn missing(heads: &[(u64, Option<Head>)], snapshot: u64) -> Option<u64> {
    let heads = || heads.iter().filter_map(|(_, head)| head.as_ref());
    let durable = heads().map(Head::durable).max()?.max(snapshot);
    let numbers: BTreeSet<u64> = heads().map(Head::number).collect();
    (durable / LENGTH..*numbers.last()?).find(|number| !numbers.contains(number))
}

/// The end of the gapless part of the log in its last segment, as a log sequence number.
pub(crate) fn end(log: &Path) -> Result<Option<u64>, StoreError> {
    let mut file = SledFile::open(log.join("db"))?;
    let mut last: Option<(u64, u64)> = None;
    for start in file.starts().collect::<Vec<_>>() {
        last = last.max(file.head(start)?.map(|head| (head.number(), start)));
    }
    let Some((number, start)) = last else { return Ok(None) };
    let end = file
        .segment(start)?
        .map_or(0, |segment| if segment.number() == number { segment.end() } else { 0 });
    Ok(Some(number * LENGTH + end))
}

/// The log sequence number up to which the log is known to be durable.
fn durable(heads: &[(u64, Option<Head>)], snapshot: u64) -> u64 {
    let mut heads: Vec<&Head> = heads.iter().filter_map(|(_, head)| head.as_ref()).collect();
    heads.sort_unstable_by_key(|head| head.number());
    let certain = &heads[..heads.len().saturating_sub(UNCERTAIN)];
    certain.iter().map(|head| head.durable()).max().unwrap_or(0).max(snapshot)
}

/// The log sequence number of sled's newest snapshot, from its name.
fn last_snapshot(log: &Path) -> Result<u64, StoreError> {
    let number = |path: &Path| {
        let digits = path.file_name()?.to_str()?.strip_prefix("snap.")?;
        u64::from_str_radix(digits, 16).ok()
    };
    Ok(files::entries(log)?.iter().filter_map(|path| number(path)).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a segment.
    fn head(number: u64, durable: u64) -> Option<Head> {
        let encoded = |number: u64| (number.cast_signed() ^ i64::MAX).to_le_bytes();
        let rest = [encoded(number * LENGTH), encoded(durable)].concat();
        let crc = (!crc32fast::hash(&rest)).to_le_bytes();
        Some(Head::read(&[&crc[..], &rest].concat()).expect("the header is whole"))
    }

    #[test]
    fn a_missing_segment_after_the_durable_ones_is_found() {
        let [four, five, six] = [(4, 0), (5, 4), (6, 5)]
            .map(|(number, durable)| (number * LENGTH, head(number, durable * LENGTH + 99)));
        assert_eq!(missing(&[six, four, five], 0), None);
        assert_eq!(missing(&[six, four, (5, None)], 0), Some(5));
        assert_eq!(missing(&[six, five], 0), None, "sled reuses segments before the durable end");
        assert_eq!(missing(&[five, four], 6 * LENGTH), None);
    }
}
