//! The HEAD of a checkout, located without git: without a readable one, git sees no repository.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::files;
use super::super::names::{head_ref, is_object_name};
use super::{Damage, line_in, loose_refs, packed};

/// The directories of a repository.
pub(in super::super) struct Place {
    /// The top of the checkout.
    pub(in super::super) top: PathBuf,
    /// The git directory of this one checkout.
    pub(in super::super) admin: PathBuf,
    /// The common git directory of all checkouts.
    pub(in super::super) common: PathBuf,
}

impl Place {
    /// The directories of the checkout that contains `dir`.
    pub(in super::super) fn of(dir: &Path) -> Result<Self, Failure> {
        let dir = files::canonical(dir)?;
        let Some(top) = dir.ancestors().find(|top| files::is_there(&top.join(".git"))) else {
            return Err(Failure::terminal(format!("{} is not in a git repository", dir.display())));
        };
        let git = top.join(".git");
        let admin = if git.is_dir() { git } else { linked_to(&git)? };
        let common = match line_in(&admin.join("commondir"))? {
            Some(common) => files::canonical(&admin.join(common))?,
            // Git's default layout, if the file is damaged.
            None if admin.join("commondir").exists() => files::canonical(&admin.join("../.."))?,
            None => admin.clone(),
        };
        Ok(Self { top: top.to_owned(), admin, common })
    }
}

/// The directory that a gitfile names.
fn linked_to(file: &Path) -> Result<PathBuf, Failure> {
    let line = line_in(file)?.unwrap_or_default();
    let named = line.strip_prefix("gitdir: ").map(|named| file.with_file_name(named));
    let named = named.filter(|dir| dir.is_dir()).ok_or_else(|| {
        Failure::terminal(format!(
            "{} names no git directory; run `git worktree repair` in the repository's first \
             checkout",
            file.display()
        ))
    })?;
    files::canonical(&named)
}

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
        let is_branch = branches.iter().any(|(name, _)| *name == head_ref(to));
        return Ok(if is_branch { Some(format!("ref: {}", head_ref(to))) } else { last });
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
    found.retain(|(name, _)| {
        name.starts_with("refs/heads/") && !name.starts_with("refs/heads/longhaul/")
    });
    Ok(found)
}
