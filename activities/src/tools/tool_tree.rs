//! The files of a work tree, for tools: no path leads out of it, no file blocks, and no read is
//! unbounded. Each operation is relative to the open directory (`cap-std`), so that a link that is
//! swapped in meanwhile does not lead out either.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileTypeExt, Metadata, OpenOptions, OpenOptionsExt};
use longhaul_engine::{Failure, FailureKind};
use nix::fcntl::OFlag;

use crate::files::placed::is_absent;
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
pub(super) struct ToolTree {
    pub(super) dir: Dir,
    root: PathBuf,
}

impl ToolTree {
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

    /// The file or directory that a path names, links followed.
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
        let failed = |error: io::Error| self.fault("read", path, &error);
        let file = self.dir.open_with(path, &options).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        must_be_file(path, &found)?;
        let mut content = Vec::new();
        if found.len() <= limit {
            // The file may grow meanwhile.
            file.take(limit + 1).read_to_end(&mut content).map_err(failed)?;
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

    /// The first entries of a directory by name, and whether there are more than `limit`.
    pub(super) fn entries(
        &self,
        path: &Path,
        limit: usize,
    ) -> Result<(Vec<(OsString, Kind)>, bool), Fault> {
        let failed = |error: io::Error| self.fault("list", path, &error);
        let mut found = Vec::new();
        for entry in self.dir.read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_or(Kind::Other("unknown"), Kind::of);
            found.push((entry.file_name(), kind));
        }
        found.sort_unstable();
        let has_more = found.len() > limit;
        found.truncate(limit);
        Ok((found, has_more))
    }

    pub(super) fn fault(&self, verb: &str, path: &Path, error: &io::Error) -> Fault {
        fault_at(&self.root, verb, path, error)
    }
}

/// The kind of an entry of a directory; a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Other(&'static str),
}

impl Kind {
    fn of(kind: cap_std::fs::FileType) -> Self {
        match kind {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Directory,
            kind if kind.is_symlink() => Self::Link,
            kind if kind.is_fifo() => Self::Other("named pipe"),
            kind if kind.is_socket() => Self::Other("socket"),
            _ => Self::Other("device"),
        }
    }
}

pub(super) fn kind_of(found: &Metadata) -> &'static str {
    match Kind::of(found.file_type()) {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "symbolic link",
        Kind::Other(kind) => kind,
    }
}

pub(super) fn must_be_file(path: &Path, found: &Metadata) -> Result<(), Fault> {
    if found.is_file() {
        return Ok(());
    }
    Err(format!("{} is a {} and not a file.", quoted(path), kind_of(found)).into())
}

pub(super) fn fault_at(root: &Path, verb: &str, path: &Path, error: &io::Error) -> Fault {
    let shown = quoted(path);
    let leads_out =
        error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    if leads_out {
        return Fault::Tool(format!("{shown} is a link that leads out of the work tree."));
    }
    if is_absent(error) {
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

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[test]
    fn only_errors_of_the_machine_fail_the_call() {
        let fault = |errno: Errno| {
            let error = io::Error::from_raw_os_error(errno as i32);
            match fault_at(Path::new("/"), "write", Path::new("a"), &error) {
                Fault::Tool(text) => text,
                Fault::Call(failure) => {
                    assert_eq!(failure.kind, FailureKind::Machine);
                    failure.message
                }
            }
        };
        let full = "disk full on /: Cannot write `a`: No space left on device (os error 28).";
        assert_eq!(fault(Errno::ENOSPC), full);
        let none = "no file descriptors left: Cannot write `a`: Too many open files (os error 24).";
        assert_eq!(fault(Errno::EMFILE), none);
        assert_eq!(fault(Errno::ENOENT), "`a` does not exist.");
        let long = "Cannot write `a`: File name too long (os error 36).";
        assert_eq!(fault(Errno::ENAMETOOLONG), long);
    }
}
