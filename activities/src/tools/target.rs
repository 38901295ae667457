//! Files that a tool writes: found without leaving the tree, and replaced durably.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};

use crate::files::TEMP_PREFIX;
use crate::files::placed::is_absent;

use super::tool_tree::{Fault, GIT, ToolTree, fault_at, kind_of, must_be_file, quoted};

/// A file to be replaced.
#[derive(Debug)]
pub(super) struct Target {
    /// The directory that holds it.
    directory: Dir,
    name: OsString,
    /// The file for display, relative to the tree.
    shown: PathBuf,
}

impl ToolTree {
    /// Finds the file to write at a path, links within the tree followed, and creates its
    /// directories if `creates`.
    pub(super) fn target(&self, path: &Path, creates: bool) -> Result<Target, Fault> {
        let real = self.real(path)?;
        if real.iter().any(|part| part.eq_ignore_ascii_case(GIT)) {
            let shown = quoted(path);
            return Err(format!("{shown} belongs to git: use git in `shell` instead.").into());
        }
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(format!("{} is a directory and not a file.", quoted(path)).into());
        };
        if creates {
            self.create_directories(parent)?;
        }
        let directory = self.dir.open_dir(here(parent));
        let directory =
            directory.map_err(|error| self.fault("open the directory of", path, &error))?;
        match directory.symlink_metadata(name) {
            Ok(found) => must_be_file(path, &found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && creates => {}
            Err(error) => return Err(self.fault("write", path, &error)),
        }
        Ok(Target { directory, name: name.to_owned(), shown: path.to_owned() })
    }

    /// A path without links: the existing part of it resolved, the rest as it is.
    fn real(&self, path: &Path) -> Result<PathBuf, Fault> {
        let mut existing = path;
        let mut rest = Vec::new();
        loop {
            match self.dir.symlink_metadata(here(existing)) {
                Ok(_) => break,
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(self.fault("write", path, &error)),
            }
            rest.extend(existing.file_name());
            existing = existing.parent().unwrap_or(Path::new(""));
        }
        // Not with `canonicalize` alone: it opens the file, which blocks on a named pipe.
        let found = self.dir.metadata(here(existing));
        let found = found.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{} is a link to a missing file: write that file.", quoted(existing)).into()
            }
            _ => self.fault("write", path, &error),
        })?;
        if !rest.is_empty() && !found.is_dir() {
            let shown = quoted(existing);
            return Err(format!("{shown} is a {} and not a directory.", kind_of(&found)).into());
        }
        if !found.is_dir() {
            must_be_file(path, &found)?;
        }
        let real = self.dir.canonicalize(here(existing));
        let mut real = real.map_err(|error| self.fault("write", path, &error))?;
        real.extend(rest.iter().rev());
        Ok(real.components().filter(|part| *part != Component::CurDir).collect())
    }

    /// Creates a directory and those above it, durable against a power cut.
    fn create_directories(&self, directory: &Path) -> Result<(), Fault> {
        if self.dir.is_dir(here(directory)) {
            return Ok(());
        }
        let above = directory.parent().unwrap_or(Path::new(""));
        self.create_directories(above)?;
        let created = match self.dir.create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.dir.open_dir(here(above)).and_then(|above| sync(&above)),
        };
        created.map_err(|error| self.fault("make the directory", directory, &error))
    }
}

impl Target {
    /// Replaces the content. After a crash or a power cut the file has the old content or the new.
    /// A hard link elsewhere keeps the old one.
    pub(super) fn write(&self, root: &Path, content: &[u8]) -> Result<(), Fault> {
        // Git leaves out files of this pattern.
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{TEMP_PREFIX}{}", &unique[..6]);
        let written = self.write_by(&name, content);
        if written.is_err() {
            // The file may not exist; the first error counts.
            let _ = self.directory.remove_file(&name);
        }
        written.map_err(|error| fault_at(root, "write", &self.shown, &error))
    }

    fn write_by(&self, temporary: &str, content: &[u8]) -> io::Result<()> {
        let old = self.directory.symlink_metadata(&self.name).ok();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = self.directory.open_with(temporary, &options)?;
        if let Some(old) = old {
            let mode = old.permissions().mode() & 0o777;
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        self.directory.rename(temporary, &self.directory, &self.name)?;
        sync(&self.directory)
    }
}

/// `cap-std` takes no empty path.
fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn sync(directory: &Dir) -> io::Result<()> {
    directory.open(".")?.sync_all()
}
