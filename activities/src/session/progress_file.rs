//! The user's `claude-progress.txt`, brought into the work tree for the agent to read.

use std::io;
use std::path::Path;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::SessionInput;

use crate::checks::git;
use crate::files::{PROGRESS_FILE, progress_file};

/// Copies the file, of a long one the end, unless git tracks one in the work tree: then the branch has its own.
pub(super) async fn bring(input: &SessionInput, root: &Path) -> Result<(), Failure> {
    let worktree = Path::new(&input.worktree);
    let Some(content) = progress_file(root).map_err(|error| Failure::retryable(error.to_string()))? else {
        return Ok(());
    };
    if git(worktree, &["ls-files", "--error-unmatch", "--", PROGRESS_FILE]).await.is_ok() {
        return Ok(());
    }
    write(&content, worktree).map_err(|error| {
        Failure::retryable(format!("{PROGRESS_FILE} cannot be copied into {}: {error}", worktree.display()))
    })
}

/// Puts a new file in the place of an old one, so that a link which an agent left there is not followed.
fn write(content: &[u8], worktree: &Path) -> io::Result<()> {
    let file = tempfile::Builder::new().prefix(".longhaul-").tempfile_in(worktree)?;
    std::fs::write(file.path(), content)?;
    std::fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.persist(worktree.join(PROGRESS_FILE))?;
    Ok(())
}
