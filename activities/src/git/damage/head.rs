//! The HEAD of a checkout, located without git: without a readable one, git sees no repository.

use std::path::Path;

use longhaul_engine::Failure;

use super::super::command::place::line_in;
use super::super::files;
use super::super::names::{branch_ref, is_object_name, is_users_branch};
use super::{Damage, loose_refs, packed};

/// Whether the HEAD in a git directory is damaged.
pub(super) fn is_damaged(admin: &Path) -> Result<bool, Failure> {
    let line = line_in(&admin.join("HEAD"))?;
    Ok(!line.is_some_and(|line| line.starts_with("ref: refs/") || is_object_name(&line)))
}

pub(super) fn find(admin: &Path, common: &Path) -> Result<Option<Damage>, Failure> {
    if !is_damaged(admin)? {
        return Ok(None);
    }
    Ok(Some(Damage::Head { file: admin.join("HEAD"), content: content(admin, common)? }))
}

/// The content of HEAD: from its reflog; else the only branch at the reflog's last commit; else the
/// only branch.
fn content(admin: &Path, common: &Path) -> Result<Option<String>, Failure> {
    let log = files::shown(&files::read(&admin.join("logs/HEAD"))?.unwrap_or_default());
    let is_line = |line: &&str| line.split(' ').nth(1).is_some_and(is_object_name);
    let last =
        log.lines().rfind(is_line).and_then(|line| line.split(' ').nth(1)).map(str::to_owned);
    let mut branches = branches(common)?;
    let moved = log
        .lines()
        .filter(is_line)
        .filter_map(|line| line.split_once("checkout: moving from "))
        .next_back();
    if let Some((_, to)) = moved.and_then(|(_, moved)| moved.rsplit_once(" to ")) {
        let is_branch = branches.iter().any(|(name, _)| *name == branch_ref(to));
        return Ok(if is_branch { Some(format!("ref: {}", branch_ref(to))) } else { last });
    }
    if branches.iter().any(|(_, commit)| *commit == last) {
        branches.retain(|(_, commit)| *commit == last);
    }
    Ok(match branches.as_slice() {
        [(name, _)] => Some(format!("ref: {name}")),
        _ => None,
    })
}

/// The branches of the user, and their commits.
fn branches(common: &Path) -> Result<Vec<(String, Option<String>)>, Failure> {
    let mut found = Vec::new();
    for (name, file) in loose_refs(common) {
        found.push((name, line_in(&file)?));
    }
    for (name, commit) in packed::refs(common)? {
        if found.iter().all(|(known, _)| *known != name) {
            found.push((name, Some(commit)));
        }
    }
    found.retain(|(name, _)| is_users_branch(name));
    Ok(found)
}
