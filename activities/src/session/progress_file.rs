//! The user's `claude-progress.txt`, brought into the work tree for the agent to read.

use std::io;
use std::path::Path;

use longhaul_engine::Failure;

use crate::git::WorkTree;
use crate::machine::{self, Doing};

const NAME: &str = "claude-progress.txt";

/// Copies the file, unless git tracks one in the work tree: then the branch has its own.
pub(super) async fn bring(tree: &WorkTree, root: &Path) -> Result<(), Failure> {
    let from = root.join(NAME);
    if !from.is_file() || tree.tracks(NAME).await? {
        return Ok(());
    }
    copy(&from, tree.path()).map_err(|error| {
        let message = format!("{} cannot be copied into {}: {error}", from.display(), tree.path().display());
        machine::failure(&error, Doing::Files, tree.path(), message, Failure::retryable)
    })
}

/// Puts a new file in the place of an old one, so that a link which an agent left there is not followed.
fn copy(from: &Path, worktree: &Path) -> io::Result<()> {
    let content = std::fs::read(from)?;
    let file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(worktree)?;
    std::fs::write(file.path(), content)?;
    std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(worktree.join(NAME))?;
    Ok(())
}
