//! Whether finished work waits to land.

use std::path::Path;

use longhaul_engine::Failure;

use crate::git::command::Git;
use crate::git::names::{NEXT, branch_ref};

/// Whether `longhaul/next` has commits that the target does not have.
pub async fn is_work_waiting(checkout: &Path, target: &str) -> Result<bool, Failure> {
    let next = branch_ref(NEXT);
    let exists = ["rev-parse", "--verify", "--quiet", &next];
    if Git::at(checkout).args(exists).find().await?.is_none() {
        return Ok(false);
    }
    let not_in_target = format!("^{}", branch_ref(target));
    let ahead = ["rev-list", "--max-count=1", &next, &not_in_target];
    Ok(!Git::at(checkout).args(ahead).text().await?.trim().is_empty())
}
