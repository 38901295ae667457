//! The files that link the user's other checkouts to the repository. One damaged file can stop
//! every git command, and an empty `gitdir` lets git prune that checkout.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::command::place::line_in;
use super::{Damage, entries, head};

/// Checks the checkouts linked to a repository, except the HEAD of the one that `own` belongs to.
pub(super) fn find(own: &Path, common: &Path) -> Result<Vec<Damage>, Failure> {
    let mut found = Vec::new();
    let mut known: Vec<PathBuf> =
        entries(&common.join("worktrees")).filter(|admin| admin.is_dir()).collect();
    known.sort();
    for admin in known {
        let gitfile = line_in(&admin.join("gitdir"))?.map(PathBuf::from);
        let checkout = gitfile.as_deref().and_then(Path::parent).map(Path::to_owned);
        let mut damaged = Vec::new();
        if gitfile.is_none() {
            damaged.push(admin.join("gitdir"));
        }
        if line_in(&admin.join("commondir"))?.is_none() {
            damaged.push(admin.join("commondir"));
        }
        if admin != own && head::is_damaged(&admin)? {
            damaged.push(admin.join("HEAD"));
        }
        // A checkout that was removed, or is on an unmounted disk, is not damaged.
        if let Some(gitfile) = gitfile.filter(|file| file.is_file())
            && !line_in(&gitfile)?.is_some_and(|line| line.starts_with("gitdir: "))
        {
            damaged.push(gitfile);
        }
        found.extend(
            damaged.into_iter().map(|file| Damage::Linked { file, checkout: checkout.clone() }),
        );
    }
    Ok(found)
}
