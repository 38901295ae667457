//! Failures of the machine: full disk, exhausted descriptors or memory, failing device. They prove
//! nothing about the work, so they cost no attempt and are waited out; see
//! [`FailureKind::Machine`].

use std::io;
use std::path::Path;

use longhaul_engine::{Failure, FailureKind, Probe};
use nix::errno::Errno;

use crate::files::placed::Unreadable;

/// A disk with less free space, in bytes, counts as full: git and agents cannot work with it.
const LITTLE: u64 = 256 * 1024;

/// System errors that are the machine's fault: number, text of `strerror`, name for display, and
/// whether the error belongs to a place in the file system.
const CAUSES: [(Errno, &str, &str, bool); 9] = [
    (Errno::ENOSPC, "No space left on device", "disk full", true),
    (Errno::EDQUOT, "Disk quota exceeded", "disk quota used up", true),
    (Errno::EIO, "Input/output error", "the disk fails", true),
    (Errno::EROFS, "Read-only file system", "read-only file system", true),
    (Errno::EMFILE, "Too many open files", "no file descriptors left", false),
    (Errno::ENFILE, "Too many open files in system", "no file descriptors left", false),
    (Errno::ENOMEM, "Cannot allocate memory", "no memory left", false),
    (Errno::ENOBUFS, "No buffer space available", "no memory left", false),
    // Only for fork: elsewhere it means a busy resource.
    (Errno::EAGAIN, "Resource temporarily unavailable", "no more processes allowed", false),
];

/// The operation that met a system error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Reading or writing files.
    Files,
    /// Starting a process.
    Fork,
}

/// The failure of an operation on a place: of the machine if the error is, else the given one.
pub(crate) fn failure(
    error: &io::Error,
    operation: Operation,
    place: &Path,
    message: String,
    or_else: impl FnOnce(String) -> Failure,
) -> Failure {
    match errno_of(error).and_then(|errno| cause(errno, operation, &[place])) {
        Some(cause) => Failure::machine(format!("{cause}: {message}")),
        None => or_else(message),
    }
}

/// The system error behind an error. `tempfile` wraps it with a path and keeps only its kind.
fn errno_of(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw).or(match error.kind() {
        io::ErrorKind::StorageFull => Some(Errno::ENOSPC),
        io::ErrorKind::QuotaExceeded => Some(Errno::EDQUOT),
        io::ErrorKind::ReadOnlyFilesystem => Some(Errno::EROFS),
        io::ErrorKind::OutOfMemory => Some(Errno::ENOMEM),
        _ => None,
    })
}

/// The failure of reading a placed file: of the machine if the system's error is.
pub(crate) fn unreadable(
    error: &Unreadable,
    path: &Path,
    or_else: impl FnOnce(String) -> Failure,
) -> Failure {
    match error {
        Unreadable::Io { error: cause, .. } => {
            failure(cause, Operation::Files, path, error.to_string(), or_else)
        }
        _ => or_else(error.to_string()),
    }
}

/// The meaning of a system error at one of the places, if it is the machine's fault.
pub(crate) fn cause(errno: Errno, operation: Operation, places: &[&Path]) -> Option<String> {
    if errno == Errno::EAGAIN && operation != Operation::Fork {
        return None;
    }
    let (_, _, name, has_place) = CAUSES.iter().find(|(known, ..)| *known == errno)?;
    let place = has_place.then(|| place_of(errno, places)).flatten();
    Some(place.map_or_else(|| (*name).to_owned(), |place| format!("{name} on {}", mount(place))))
}

/// The place of an error: the one that shows it, else any if all are on one file system.
fn place_of<'a>(errno: Errno, places: &[&'a Path]) -> Option<&'a Path> {
    let shows_it = |place: &&&Path| match errno {
        Errno::ENOSPC => is_full(place),
        Errno::EROFS => is_read_only(place),
        _ => false,
    };
    let first = *places.first()?;
    let is_one = || places.iter().all(|place| mount(place) == mount(first));
    places.iter().find(shows_it).copied().or_else(|| is_one().then_some(first))
}

/// The machine's fault in a program's standard error, if any. Only the system's text counts, at the
/// end of a line after a colon: file names come before it.
pub(crate) fn cause_in_stderr(stderr: &str, places: &[&Path]) -> Option<String> {
    let errno = stderr.lines().find_map(|line| {
        let line = without_number(line.trim_end()).trim_end_matches('.');
        let (_, text) = line.rsplit_once(": ")?;
        let is_fork = line.contains("fork");
        let of_system = CAUSES
            .iter()
            .find(|(errno, said, ..)| *said == text && (*errno != Errno::EAGAIN || is_fork));
        match of_system {
            Some((errno, ..)) => Some(*errno),
            // Git's own message.
            None if text.ends_with(" write error. Out of diskspace") => Some(Errno::ENOSPC),
            None if text.starts_with("Out of memory, malloc failed") => Some(Errno::ENOMEM),
            None => None,
        }
    })?;
    cause(errno, Operation::Fork, places)
}

/// A line without ` (os error 24)`, which Rust appends.
fn without_number(line: &str) -> &str {
    line.rsplit_once(" (os error ")
        .filter(|(_, rest)| rest.ends_with(')'))
        .map_or(line, |(text, _)| text)
}

/// Whether the disk of a place is full, for display: a program's own message may not mention it.
pub(crate) fn full(place: &Path) -> Option<String> {
    is_full(place).then(|| format!("disk full on {}", mount(place)))
}

fn is_full(place: &Path) -> bool {
    let Ok(disk) = nix::sys::statvfs::statvfs(place) else { return false };
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    let has_no_files = disk.files() > 0 && disk.files_available() == 0;
    // A file system of size zero, such as `/proc`, cannot be full.
    disk.blocks() > 0 && (free < LITTLE || has_no_files)
}

fn is_read_only(place: &Path) -> bool {
    nix::sys::statvfs::statvfs(place)
        .is_ok_and(|disk| disk.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY))
}

/// The mount point of a place; the place itself if unknown.
fn mount(place: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let there =
        place.ancestors().find_map(|path| Some((path, std::fs::metadata(path).ok()?.dev())));
    let Some((from, device)) = there else { return place.display().to_string() };
    let is_same =
        |path: &&Path| std::fs::metadata(path).is_ok_and(|metadata| metadata.dev() == device);
    from.ancestors().take_while(is_same).last().unwrap_or(from).display().to_string()
}

/// The result of a probe that could not run.
pub(crate) fn unknown_outcome<T>(failure: Failure) -> Probe<T> {
    match failure.kind {
        FailureKind::Machine => Probe::Machine(failure.message),
        _ => Probe::Unknown(failure.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_system_error_is_found() {
        let error = tempfile::NamedTempFile::new_in("/proc").unwrap_err();
        assert_eq!(error.raw_os_error(), None, "it is wrapped");
        let wrapped = |errno: Errno| {
            let error = io::Error::from_raw_os_error(errno as i32);
            errno_of(&io::Error::new(error.kind(), "at path"))
        };
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EROFS, Errno::ENOMEM] {
            assert_eq!(wrapped(errno), Some(errno));
        }
        assert_eq!(wrapped(Errno::ENOENT), None);
    }

    #[test]
    fn only_what_the_system_says_is_the_machine() {
        let here = Path::new("/");
        let cases = [
            (
                "error: unable to write file a: No space left on device\nfatal: x",
                Some("disk full on /"),
            ),
            (
                "fatal: Unable to create '/r/.git/index.lock': No space left on device.",
                Some("disk full on /"),
            ),
            (
                "fatal: sha1 file '.git/index.lock' write error. Out of diskspace",
                Some("disk full on /"),
            ),
            (
                "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)",
                Some("no memory left"),
            ),
            ("error: open(\"a\"): Too many open files", Some("no file descriptors left")),
            (
                "longhaul supervise-process: Too many open files (os error 24)",
                Some("no file descriptors left"),
            ),
            (
                "error: cannot fork() for rev-list: Resource temporarily unavailable",
                Some("no more processes allowed"),
            ),
            ("error: read: Resource temporarily unavailable", None),
            (
                "fatal: cannot lock ref 'x': Unable to create 'x.lock': Read-only file system",
                Some("read-only file system on /"),
            ),
            ("fatal: pathspec 'No space left on device' did not match any files", None),
            ("fatal: a: No space left on device: no such path", None),
            ("fatal: not a git repository", None),
        ];
        for (stderr, expected) in cases {
            assert_eq!(cause_in_stderr(stderr, &[here]).as_deref(), expected, "{stderr}");
        }
    }

    #[test]
    fn the_cause_stands_before_what_was_tried() {
        let failed = |number, operation| {
            let error = io::Error::from_raw_os_error(number);
            failure(&error, operation, Path::new("/"), "cannot write /a".into(), Failure::retryable)
        };
        let full = failed(Errno::ENOSPC as i32, Operation::Files);
        assert_eq!(full, Failure::machine("disk full on /: cannot write /a"));
        let busy = Errno::EAGAIN as i32;
        assert_eq!(failed(busy, Operation::Files), Failure::retryable("cannot write /a"));
        assert_eq!(
            failed(busy, Operation::Fork),
            Failure::machine("no more processes allowed: cannot write /a")
        );
        assert_eq!(
            failed(Errno::EACCES as i32, Operation::Files),
            Failure::retryable("cannot write /a")
        );
    }

    #[test]
    fn of_several_file_systems_none_is_named_without_proof() {
        let root = Path::new("/");
        let other = Path::new("/proc");
        let said = |places: &[&Path]| {
            cause_in_stderr("error: file write error: No space left on device", places)
        };
        assert_eq!(said(&[root, Path::new("/missing/too")]).as_deref(), Some("disk full on /"));
        assert_eq!(said(&[root, other]).as_deref(), Some("disk full"));
        assert_eq!(said(&[]).as_deref(), Some("disk full"));
    }
}
