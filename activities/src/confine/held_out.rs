//! The directories of held-out checks of all projects of a data directory. Every sandbox hides
//! them: an agent of one project must not read the held-out checks of another.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The record of a project, in its directory below `git` of the data directory: one absolute path.
const RECORD: &str = "held-out";

/// The path of the record of a project.
pub(crate) fn record_of(data_dir: &Path, project: &str) -> PathBuf {
    data_dir.join("git").join(project).join(RECORD)
}

/// The recorded directories that exist. One that contains `root` is skipped: another project must
/// not hide this checkout.
pub(super) fn all(data_dir: &Path, root: &Path) -> Vec<PathBuf> {
    let projects = std::fs::read_dir(data_dir.join("git")).into_iter().flatten().flatten();
    let recorded = projects.filter_map(|project| std::fs::read(project.path().join(RECORD)).ok());
    let real =
        recorded.filter_map(|path| PathBuf::from(OsString::from_vec(path)).canonicalize().ok());
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    real.filter(|directory| !root.starts_with(directory)).collect()
}
