//! The user's `claude-progress.txt`, copied into the work tree for the agent to read.

use std::io;
use std::path::Path;

use longhaul_engine::Failure;

use crate::files::{PROGRESS_FILE, TEMP_PREFIX, end_in_checkout};
use crate::git::WorkTree;
use crate::machine::{self, Operation};

/// Copies the file, only the end of a long one, unless git tracks it in the work tree: then the
/// branch has its own.
pub(super) async fn copy_in(tree: &WorkTree, root: &Path) -> Result<(), Failure> {
    let path = root.join(PROGRESS_FILE);
    let content = end_in_checkout(root)
        .map_err(|error| machine::unreadable(&error, &path, Failure::retryable))?;
    let Some(content) = content else {
        return Ok(());
    };
    if tree.tracks(PROGRESS_FILE).await? {
        return Ok(());
    }
    write(&content, tree.path()).map_err(|error| {
        let message =
            format!("{PROGRESS_FILE} cannot be copied into {}: {error}", tree.path().display());
        machine::failure(&error, Operation::Files, tree.path(), message, Failure::retryable)
    })
}

/// Replaces the file by rename, so that an agent's link at its path is not followed. Permissions
/// that an agent took away are given back.
fn write(content: &[u8], worktree: &Path) -> io::Result<()> {
    let file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(worktree)?;
    std::fs::write(file.path(), content)?;
    std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(worktree.join(PROGRESS_FILE))?;
    Ok(())
}
