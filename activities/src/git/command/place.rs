//! The directories of a repository, found without git: git may not work there.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use crate::git::files;

/// The directories of a repository.
pub(in crate::git) struct GitDirectories {
    /// The top of the checkout.
    pub(in crate::git) top: PathBuf,
    /// The git directory of this one checkout.
    pub(in crate::git) admin: PathBuf,
    /// The common git directory of all checkouts.
    pub(in crate::git) common: PathBuf,
}

impl GitDirectories {
    /// The directories of the checkout that contains `dir`.
    pub(in crate::git) fn of(dir: &Path) -> Result<Self, Failure> {
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

/// The content of a small git file; `None`: it does not exist, or a power cut emptied it.
pub(in crate::git) fn line_in(file: &Path) -> Result<Option<String>, Failure> {
    let text = files::read(file)?.map(|bytes| files::shown(bytes.trim_ascii()));
    Ok(text.filter(|text| !text.is_empty() && !text.contains(char::is_control)))
}
