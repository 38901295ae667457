//! Damaged packs and alternates. Objects in them only seem to be lost, so no ref is judged before
//! they can be read again.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::command::Git;
use super::super::files;
use super::{Damage, entries, rewrite};

/// The length of an index without objects: a header, the fan-out table and two checksums.
const SMALLEST_INDEX: u64 = 8 + 256 * 4 + 2 * 20;
/// The lengths of object names, and so of checksums.
const CHECKSUMS: [usize; 2] = [20, 32];

pub(super) fn find(objects: &Path) -> Result<Vec<Damage>, Failure> {
    let mut found = Vec::new();
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pack");
    for pack in entries(&objects.join("pack")).filter(is_pack) {
        let index = pack.with_extension("idx");
        if !is_whole_index(&index) {
            found.push(Damage::PackIndex(pack));
        } else if !is_of_index(&pack, &index) {
            found.push(Damage::Pack(pack));
        }
    }
    let file = objects.join("info/alternates");
    let text = files::shown(&files::read(&file)?.unwrap_or_default());
    // A quoted path is left to git.
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '"'])) {
        let missing = objects.join(line);
        if !missing.is_dir() {
            found.push(Damage::Alternate { file: file.clone(), missing });
        }
    }
    Ok(found)
}

/// Writes the index of a pack again, from the pack.
pub(super) async fn index(checkout: &Path, pack: &Path) -> Result<(), Failure> {
    let index = pack.with_extension("idx");
    let aside = index.with_extension("idx.damaged");
    rewrite(&index, &aside, Git::at(checkout).arg("index-pack").arg(pack)).await?;
    files::remove(&aside)
}

fn is_whole_index(index: &Path) -> bool {
    let is_long = std::fs::metadata(index).is_ok_and(|found| found.len() >= SMALLEST_INDEX);
    let mut header = [0; 4096];
    is_long
        && File::open(index).and_then(|mut file| file.read(&mut header)).is_ok()
        && header.iter().any(|byte| *byte != 0)
}

/// Whether a pack ends with the checksum that its index has of it.
fn is_of_index(pack: &Path, index: &Path) -> bool {
    CHECKSUMS.iter().any(|length| {
        let end = last_bytes(pack, *length);
        let known = last_bytes(index, 2 * length);
        end.zip(known).is_some_and(|(end, known)| end[..] == known[..*length])
    })
}

fn last_bytes(file: &Path, count: usize) -> Option<Vec<u8>> {
    let mut file = File::open(file).ok()?;
    file.seek(SeekFrom::End(-i64::try_from(count).ok()?)).ok()?;
    let mut bytes = Vec::with_capacity(count);
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
