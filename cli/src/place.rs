//! Paths: the data directory, and the projects named on the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::exit::usage;

pub(crate) use longhaul_server::Project;

/// The data directory: the flag or `LONGHAUL_HOME`, else `longhaul` in the XDG data directory.
pub(crate) fn data_dir(flag: Option<&Path>) -> Result<PathBuf> {
    let given = flag.map(Path::to_path_buf);
    let xdg =
        || std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || {
        std::env::var_os("HOME")
            .filter(|path| !path.is_empty())
            .map(|home| PathBuf::from(home).join(".local/share"))
    };
    let dir = given.or_else(|| Some(xdg().or_else(home)?.join("longhaul")));
    let dir = dir.ok_or_else(|| {
        usage("neither HOME nor XDG_DATA_HOME is set: name a data directory with --data-dir")
    })?;
    std::path::absolute(&dir)
        .with_context(|| format!("cannot use {} as the data directory", dir.display()))
}

/// Checks that a directory of the command line exists.
pub(crate) fn is_there(dir: &Path) -> Result<()> {
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(usage(format!("there is no directory {}", dir.display())))
        }
        _ => Ok(()),
    }
}
