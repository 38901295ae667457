//! Where things are: the data directory, and the projects named on the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longhaul_activities::git;
use longhaul_engine::RunId;
use longhaul_workflows::contracts::ProjectRef;

use crate::exit::{failed, usage};

/// The data directory: the flag or `LONGHAUL_HOME`, else `longhaul` in the XDG data directory.
pub(crate) fn data_dir(flag: Option<&Path>) -> Result<PathBuf> {
    let given = flag.map(Path::to_path_buf);
    let xdg = || std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || {
        std::env::var_os("HOME").filter(|path| !path.is_empty()).map(|home| PathBuf::from(home).join(".local/share"))
    };
    let dir = given.or_else(|| Some(xdg().or_else(home)?.join("longhaul")));
    let dir =
        dir.ok_or_else(|| usage("neither HOME nor XDG_DATA_HOME is set: name a data directory with --data-dir"))?;
    std::path::absolute(&dir).with_context(|| format!("cannot use {} as the data directory", dir.display()))
}

/// A directory named on the command line has to be there.
pub(crate) fn is_there(dir: &Path) -> Result<()> {
    match std::fs::metadata(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(usage(format!("there is no directory {}", dir.display())))
        }
        _ => Ok(()),
    }
}

/// A project named on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// Its id in the log.
    pub(crate) id: RunId,
    /// The top of the checkout.
    pub(crate) root: PathBuf,
}

impl Project {
    /// The project that a directory is in.
    pub(crate) async fn at(dir: &Path) -> Result<Self> {
        let root = git::Checkout::containing(dir).await.map_err(failed)?.top;
        let id = git::project_id(&root).await.map_err(failed)?;
        Ok(Self { id: RunId::new(id).map_err(usage)?, root })
    }

    /// The project that a directory is in, if it has an id already; changes nothing.
    pub(crate) async fn known_at(dir: &Path) -> Option<Self> {
        let root = git::Checkout::containing(dir).await.ok()?.top;
        let id = git::known_project_id(&root).await.ok()??;
        Some(Self { id: RunId::new(id).ok()?, root })
    }

    /// As workflows know it.
    pub(crate) fn reference(&self) -> ProjectRef {
        ProjectRef { id: self.id.to_string(), root: self.root.to_string_lossy().into_owned() }
    }
}
