//! Damaged configuration: git refuses every command when it cannot read it.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::super::command::Git;
use super::super::files;

/// The configuration files of a checkout that git cannot read.
pub(super) async fn find(admin: &Path, common: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for file in [common.join("config"), admin.join("config.worktree")] {
        if files::is_there(&file) && !is_sound(&file).await? {
            found.push(file);
        }
    }
    Ok(found)
}

async fn is_sound(file: &Path) -> Result<bool, Failure> {
    // Outside of the repository and without the user's settings: git reads this one file.
    let git = Git::at("/").args(["config", "--list", "--file"]).arg(file);
    let listed =
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").finish().await?;
    Ok(listed.code() == Some(0) || !listed.error_text().contains("bad config"))
}
