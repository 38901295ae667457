//! Damaged packed refs. Git reads an empty file as no refs at all, and refuses every command when
//! it is full of zeros.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::files;
use super::super::names::is_object_name;
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
    let is_unreadable = bytes.split(|byte| *byte == b'\n').any(|line| !is_readable(line));
    if !bytes.is_empty() && !is_unreadable {
        return Ok(None);
    }
    let kept = refs(common)?;
    let mut lost = with_reflog_only(common);
    lost.retain(|name| kept.iter().all(|(known, _)| known != name));
    Ok((is_unreadable || !lost.is_empty()).then_some(Damage::PackedRefs { file, lost }))
}

/// Whether git can read a line: a comment, the commit of a tag, or a ref and its object.
fn is_readable(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let has_ref = |line: &str| {
        line.split_once(' ')
            .is_some_and(|(commit, name)| is_object_name(commit) && name.starts_with("refs/"))
    };
    let tagged = line.strip_prefix('^').is_some_and(is_object_name);
    line.is_empty() || line.starts_with('#') || tagged || has_ref(line)
}

/// Removes the lines that git cannot read; the whole file if no other is left.
pub(super) fn remove_unreadable(file: &Path) -> Result<(), Failure> {
    let bytes = files::read(file)?.unwrap_or_default();
    let lines: Vec<&[u8]> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && is_readable(line))
        .collect();
    if lines.is_empty() {
        return files::remove(file);
    }
    let mut kept = lines.join(&b'\n');
    kept.push(b'\n');
    files::write_durably(file, &kept)
}

/// The user's branches that have a reflog and neither a file nor a packed ref, with the file that
/// each would have.
pub(super) fn missing_branches(common: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let packed = refs(common)?;
    let mut missing = Vec::new();
    for name in with_reflog_only(common) {
        let is_users = name.starts_with("refs/heads/") && !name.starts_with("refs/heads/longhaul/");
        let is_packed = packed.iter().any(|(known, _)| *known == name);
        if is_users
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
