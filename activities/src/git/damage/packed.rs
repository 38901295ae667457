//! Damaged packed refs. Git reads an empty file as no refs at all, and refuses every command when
//! it is full of zeros.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::files;
use super::super::names::{is_object_name, is_users_branch};
use super::{Damage, entries};

const FILE: &str = "packed-refs";

/// The refs in the file and their commits.
pub(super) fn refs(common: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text = files::shown(&files::read(&common.join(FILE))?.unwrap_or_default());
    let named = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(commit, _)| is_object_name(commit));
    Ok(named.map(|(commit, name)| (name.to_owned(), commit.to_owned())).collect())
}

pub(super) fn find(common: &Path) -> Result<Option<Damage>, Failure> {
    let file = common.join(FILE);
    let Some(bytes) = files::read(&file)? else { return Ok(None) };
    // Git always writes a header line, so an empty file is damaged.
    let is_unreadable = readable(&bytes) != bytes;
    if !bytes.is_empty() && !is_unreadable {
        return Ok(None);
    }
    let kept = refs(common)?;
    let mut lost = with_reflog_only(common);
    lost.retain(|name| kept.iter().all(|(known, _)| known != name));
    Ok((is_unreadable || !lost.is_empty()).then_some(Damage::PackedRefs { file, lost }))
}

/// Whether git can read a line: a comment, `OBJECT REF`, or after such a line `^COMMIT`.
fn is_readable(line: &[u8], is_after_ref: bool) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let is_tagged = line.strip_prefix('^').is_some_and(is_object_name);
    line.starts_with('#') || (is_tagged && is_after_ref) || is_ref(line)
}

fn is_ref(line: &str) -> bool {
    let is_bad = |letter: char| letter.is_ascii_control() || " ~^:?*[\\".contains(letter);
    line.split_once(' ').is_some_and(|(commit, name)| {
        is_object_name(commit)
            && name.starts_with("refs/")
            && !name.contains("..")
            && !name.contains(is_bad)
    })
}

/// The lines that git can read, with the line ends of Unix.
fn readable(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut is_after_ref = false;
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_kept = !line.is_empty() && is_readable(line, is_after_ref);
        is_after_ref = is_kept && std::str::from_utf8(line).is_ok_and(is_ref);
        if is_kept {
            kept.extend([line, b"\n"].concat());
        }
    }
    kept
}

/// Removes the lines that git cannot read; the whole file if no other is left.
pub(super) fn remove_unreadable(file: &Path) -> Result<(), Failure> {
    let kept = readable(&files::read(file)?.unwrap_or_default());
    if kept.is_empty() { files::remove(file) } else { files::write_durably(file, &kept) }
}

/// The user's branches that have a reflog and neither a file nor a packed ref, with the file that
/// each would have.
pub(super) fn missing_branches(common: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let packed = refs(common)?;
    let mut missing = Vec::new();
    for name in with_reflog_only(common) {
        let is_packed = packed.iter().any(|(known, _)| *known == name);
        if is_users_branch(&name)
            && !is_packed
            && files::read(&common.join("logs").join(&name))?.is_some_and(|log| !log.is_empty())
        {
            missing.push((name.clone(), common.join(name)));
        }
    }
    Ok(missing)
}

/// The refs that have a reflog and no file. Git removes the reflog of a deleted ref.
fn with_reflog_only(common: &Path) -> Vec<String> {
    let logs = common.join("logs");
    let mut open = vec![logs.join("refs")];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        for path in entries(&dir) {
            if path.is_dir() {
                open.push(path);
            } else if let Ok(name) = path.strip_prefix(&logs)
                && path.extension().is_none_or(|end| end != "lock")
                && !common.join(name).exists()
            {
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}
