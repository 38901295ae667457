//! The files of a work tree, for tools: no path leads out of it, no file blocks, and no read is
//! unbounded. Each operation is relative to the open directory (`cap-std`), so that a link that is
//! swapped in meanwhile does not lead out either.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileTypeExt, Metadata, OpenOptions, OpenOptionsExt, PermissionsExt};
use longhaul_engine::{Failure, FailureKind};
use nix::fcntl::OFlag;

use crate::machine::{self, Operation};

/// The longest file that a tool reads or changes, in bytes.
pub(super) const LONGEST: u64 = 16 * 1024 * 1024;
/// The directory of a repository.
pub(super) const GIT: &str = ".git";

/// Why a tool failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// A sentence for the model.
    Tool(String),
    /// A failure of the call: of the machine, or a cancellation.
    Call(Failure),
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self::Tool(text)
    }
}

/// A work tree.
#[derive(Debug)]
pub(super) struct Place {
    dir: Dir,
    root: PathBuf,
}

/// A file to be replaced.
#[derive(Debug)]
pub(super) struct Target {
    /// The directory that holds it.
    folder: Dir,
    name: OsString,
    /// The file for display, relative to the tree.
    shown: PathBuf,
}

impl Place {
    pub(super) fn open(root: &Path) -> Result<Self, Fault> {
        match Dir::open_ambient_dir(root, ambient_authority()) {
            Ok(dir) => Ok(Self { dir, root: root.to_owned() }),
            Err(error) => Err(fault_at(root, "open", root, &error)),
        }
    }

    /// The path that a model gives, relative to the tree; the tree itself is `.`.
    pub(super) fn path(&self, given: &str) -> Result<PathBuf, Fault> {
        let shown = quoted(Path::new(given));
        if given.contains('\0') {
            return Err(format!("{shown} is not a path: it has a NUL character.").into());
        }
        let path = Path::new(given);
        let inside = if path.is_absolute() {
            path.strip_prefix(&self.root).map_err(|_| {
                let root = self.root.display();
                format!("{shown} is outside the work tree {root}: give a path relative to it.")
            })?
        } else {
            path
        };
        let mut relative = PathBuf::new();
        for part in inside.components() {
            match part {
                Component::Normal(part) => relative.push(part),
                Component::CurDir => {}
                _ => return Err(format!("{shown} has `..`: give the path without it.").into()),
            }
        }
        Ok(if relative.as_os_str().is_empty() { ".".into() } else { relative })
    }

    /// What a path names, links followed.
    pub(super) fn metadata(&self, path: &Path) -> Result<Metadata, Fault> {
        self.dir.metadata(path).map_err(|error| self.fault("read", path, &error))
    }

    /// The content of a regular file of at most `limit` bytes.
    pub(super) fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        // Checks the type first: opening a device can have effects.
        must_be_file(path, &self.metadata(path)?)?;
        let mut options = OpenOptions::new();
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        options.read(true).custom_flags(flags.bits());
        let read = |error: io::Error| self.fault("read", path, &error);
        let file = self.dir.open_with(path, &options).map_err(read)?;
        let found = file.metadata().map_err(read)?;
        must_be_file(path, &found)?;
        let mut content = Vec::new();
        if found.len() <= limit {
            // The file may grow meanwhile.
            file.take(limit + 1).read_to_end(&mut content).map_err(read)?;
        }
        if found.len() > limit || content.len() as u64 > limit {
            return Err(format!(
                "{} is {} bytes long; at most {limit} are read: use `shell` for a part of it.",
                quoted(path),
                found.len().max(content.len() as u64)
            )
            .into());
        }
        Ok(content)
    }

    /// The entries of a directory, sorted by name, and whether there are more than `limit`.
    pub(super) fn entries(
        &self,
        path: &Path,
        limit: usize,
    ) -> Result<(Vec<(OsString, Kind)>, bool), Fault> {
        let read = |error: io::Error| self.fault("list", path, &error);
        let mut found = Vec::new();
        let mut entries = self.dir.read_dir(path).map_err(read)?;
        for entry in entries.by_ref().take(limit) {
            let entry = entry.map_err(read)?;
            let kind = entry.file_type().map_or(Kind::Other("unknown"), Kind::of);
            found.push((entry.file_name(), kind));
        }
        found.sort_unstable();
        Ok((found, entries.next().is_some()))
    }

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
            self.create_folders(parent)?;
        }
        let folder = self.dir.open_dir(here(parent));
        let folder = folder.map_err(|error| self.fault("open the directory of", path, &error))?;
        match folder.symlink_metadata(name) {
            Ok(found) => must_be_file(path, &found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && creates => {}
            Err(error) => return Err(self.fault("write", path, &error)),
        }
        Ok(Target { folder, name: name.to_owned(), shown: path.to_owned() })
    }

    /// A path without links: the existing part of it resolved, the rest as it is.
    fn real(&self, path: &Path) -> Result<PathBuf, Fault> {
        let mut existing = path;
        let mut rest = Vec::new();
        loop {
            match self.dir.symlink_metadata(here(existing)) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
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
    fn create_folders(&self, folder: &Path) -> Result<(), Fault> {
        if self.dir.is_dir(here(folder)) {
            return Ok(());
        }
        let above = folder.parent().unwrap_or(Path::new(""));
        self.create_folders(above)?;
        let created = match self.dir.create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.dir.open_dir(here(above)).and_then(|above| sync(&above)),
        };
        created.map_err(|error| self.fault("make the directory", folder, &error))
    }

    fn fault(&self, verb: &str, path: &Path, error: &io::Error) -> Fault {
        fault_at(&self.root, verb, path, error)
    }
}

impl Target {
    /// Replaces the content. After a crash or a power cut the file has the old content or the new.
    /// A hard link elsewhere keeps the old one.
    pub(super) fn write(&self, root: &Path, content: &[u8]) -> Result<(), Fault> {
        let name = format!(".longhaul-{}", uuid::Uuid::new_v4().simple());
        let written = self.write_by(&name, content);
        if written.is_err() {
            // The file may not exist; the first error counts.
            let _ = self.folder.remove_file(&name);
        }
        written.map_err(|error| fault_at(root, "write", &self.shown, &error))
    }

    fn write_by(&self, temporary: &str, content: &[u8]) -> io::Result<()> {
        let old = self.folder.symlink_metadata(&self.name).ok();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = self.folder.open_with(temporary, &options)?;
        if let Some(old) = old {
            let mode = old.permissions().mode() & 0o777;
            file.set_permissions(cap_std::fs::Permissions::from_mode(mode))?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        self.folder.rename(temporary, &self.folder, &self.name)?;
        sync(&self.folder)
    }
}

/// The kind of an entry of a directory; a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    Other(&'static str),
}

impl Kind {
    fn of(kind: cap_std::fs::FileType) -> Self {
        match kind {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => Self::Link,
            kind if kind.is_fifo() => Self::Other("named pipe"),
            kind if kind.is_socket() => Self::Other("socket"),
            _ => Self::Other("device"),
        }
    }
}

fn kind_of(found: &Metadata) -> &'static str {
    match Kind::of(found.file_type()) {
        Kind::File => "file",
        Kind::Folder => "directory",
        Kind::Link => "symbolic link",
        Kind::Other(kind) => kind,
    }
}

fn must_be_file(path: &Path, found: &Metadata) -> Result<(), Fault> {
    if found.is_file() {
        return Ok(());
    }
    Err(format!("{} is a {} and not a file.", quoted(path), kind_of(found)).into())
}

/// `cap-std` takes no empty path.
fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn sync(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

fn fault_at(root: &Path, verb: &str, path: &Path, error: &io::Error) -> Fault {
    let shown = quoted(path);
    let leads_out =
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    if leads_out {
        return Fault::Tool(format!("{shown} is a link that leads out of the work tree."));
    }
    if error.kind() == io::ErrorKind::NotFound {
        return Fault::Tool(format!("{shown} does not exist."));
    }
    let message = format!("Cannot {verb} {shown}: {error}.");
    let failure = machine::failure(error, Operation::Files, root, message, Failure::terminal);
    match failure.kind {
        FailureKind::Machine => Fault::Call(failure),
        _ => Fault::Tool(failure.message),
    }
}

/// A path for display, on one line.
pub(super) fn quoted(path: &Path) -> String {
    format!("`{}`", shown(path.as_os_str()))
}

/// A name for display: control characters and bytes that are not UTF-8 are escaped.
pub(super) fn shown(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    if text.contains(char::is_control) {
        text.escape_debug().to_string()
    } else {
        text.into_owned()
    }
}
