//! Checks of the machine: git, free disk space, and the sandbox.

use std::path::Path;

use longhaul_activities::git;
use longhaul_activities::process::{Level, available};
use longhaul_storage::RESERVE;

use super::Finding;

/// The free space below which it warns, in bytes.
const ENOUGH: u64 = 1 << 30;

pub(super) async fn git() -> Finding {
    match git::check_git().await {
        Ok(version) => Finding::ok("git", format!("version {version}")),
        Err(failure) => Finding::problem(
            "git",
            failure.message,
            "install git 2.38 or later, so that it is in PATH",
        ),
    }
}

/// Free space at the log, or at its future place.
pub(super) fn disk(data_dir: &Path) -> Finding {
    let there = data_dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let free = match nix::sys::statvfs::statvfs(there) {
        Ok(answer) => answer.blocks_available().saturating_mul(answer.fragment_size()),
        Err(error) => {
            let what = format!("cannot read the free space at {}: {error}", there.display());
            return Finding::warning("disk", what, "run `df` on this directory");
        }
    };
    let what = format!("{} MiB are free at {}", free >> 20, there.display());
    if free < RESERVE {
        let advice = format!("free disk space: below {} MiB nothing is recorded", RESERVE >> 20);
        Finding::problem("disk", what, advice)
    } else if free < ENOUGH {
        Finding::warning(
            "disk",
            what,
            "free disk space, or remove old histories: longhaul prune --older-than 30d",
        )
    } else {
        Finding::ok("disk", what)
    }
}

/// The strictest sandbox that works on this machine.
pub(super) fn sandbox() -> Finding {
    let available = available();
    let advice = "install bubblewrap, and allow unprivileged user namespaces";
    match available.best() {
        Some(Level::Bubblewrap) => Finding::ok("sandbox", "bubblewrap"),
        Some(level) => {
            Finding::warning("sandbox", format!("{}: {}", level.name(), available.lacks()), advice)
        }
        None => Finding::warning("sandbox", format!("none: {}", available.lacks()), advice),
    }
}
