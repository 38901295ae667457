//! Reads files that people and agents place. A read never blocks, uses bounded memory, and follows
//! no link out of the allowed directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The longest file that people and agents write, in bytes.
pub const LONGEST: u64 = 64 * 1024 * 1024;
/// The longest settings file, in bytes.
pub const LONGEST_SETTINGS: u64 = 1024 * 1024;

/// Why an existing file cannot be read.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// The path is not a regular file.
    #[error("{path} is a {kind} and not a file: put a file in its place")]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// `directory`, `named pipe`, `socket`, `device`, `symbolic link`.
        kind: &'static str,
    },
    /// The file is too long.
    #[error("{path} is {length} bytes long; at most {limit} are read: make it shorter")]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length, in bytes.
        length: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A link leads out of the directory that it is in.
    #[error("{path} is a link that leads out of {root}: put a file in its place")]
    Outside {
        /// The path.
        path: PathBuf,
        /// The directory.
        root: PathBuf,
    },
    /// The file is not UTF-8 text without NUL characters.
    #[error("{path} is not UTF-8 text, or has a NUL character")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{path} cannot be read: {error}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Its error.
        #[source]
        error: io::Error,
    },
}

/// The links that are followed.
#[derive(Debug, Clone, Copy)]
pub enum Links<'a> {
    /// None at the last part of the path.
    Refused,
    /// Those whose target is within this directory.
    Within(&'a Path),
    /// All: a person named the path.
    Followed,
}

/// The whole content; `None`: no such file.
pub fn read(path: &Path, links: Links<'_>, limit: u64) -> Result<Option<Vec<u8>>, Unreadable> {
    let Some((file, length)) = open(path, links)? else { return Ok(None) };
    let too_long = |length| Unreadable::TooLong { path: path.to_owned(), length, limit };
    if length > limit {
        return Err(too_long(length));
    }
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The file may grow meanwhile.
    file.take(limit + 1).read_to_end(&mut content).map_err(|error| io_error(path, error))?;
    if content.len() as u64 > limit {
        Err(too_long(content.len() as u64))
    } else {
        Ok(Some(content))
    }
}

/// As [`read`], as text.
pub fn read_text(path: &Path, links: Links<'_>, limit: u64) -> Result<Option<String>, Unreadable> {
    let Some(content) = read(path, links, limit)? else { return Ok(None) };
    let text = String::from_utf8(content).ok().filter(|text| !text.contains('\0'));
    text.map(Some).ok_or_else(|| Unreadable::NotText { path: path.to_owned() })
}

/// At most the last `limit` bytes; `None`: no such file.
pub(crate) fn read_end(
    path: &Path,
    links: Links<'_>,
    limit: u64,
) -> Result<Option<Vec<u8>>, Unreadable> {
    let Some((mut file, length)) = open(path, links)? else { return Ok(None) };
    let mut content = Vec::new();
    let read = file.seek(SeekFrom::Start(length.saturating_sub(limit)));
    read.and_then(|_| file.take(limit).read_to_end(&mut content))
        .map_err(|error| io_error(path, error))?;
    Ok(Some(content))
}

/// A file and its length; `None`: no such file.
pub fn open(path: &Path, links: Links<'_>) -> Result<Option<(File, u64)>, Unreadable> {
    let real = match links {
        Links::Refused | Links::Followed => path.to_owned(),
        Links::Within(root) => match real_within(path, root)? {
            Some(real) => real,
            None => return Ok(None),
        },
    };
    let mut flags = nix::fcntl::OFlag::O_NONBLOCK | nix::fcntl::OFlag::O_NOCTTY;
    if !matches!(links, Links::Followed) {
        flags |= nix::fcntl::OFlag::O_NOFOLLOW;
    }
    // Checks the type first: opening a device can have effects, and a socket cannot be opened.
    let metadata =
        if matches!(links, Links::Followed) { real.metadata() } else { real.symlink_metadata() };
    match metadata {
        Ok(found) => must_be_file(path, found.file_type())?,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(io_error(path, error)),
    }
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(&real) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(io_error(path, error)),
    };
    let found = file.metadata().map_err(|error| io_error(path, error))?;
    must_be_file(path, found.file_type())?;
    Ok(Some((file, found.len())))
}

fn real_within(path: &Path, root: &Path) -> Result<Option<PathBuf>, Unreadable> {
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(io_error(path, error)),
    };
    let top = root.canonicalize().map_err(|error| io_error(root, error))?;
    if real.starts_with(top) {
        Ok(Some(real))
    } else {
        Err(Unreadable::Outside { path: path.to_owned(), root: root.to_owned() })
    }
}

fn must_be_file(path: &Path, found: std::fs::FileType) -> Result<(), Unreadable> {
    let kind = match found {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "directory",
        kind if kind.is_fifo() => "named pipe",
        kind if kind.is_socket() => "socket",
        kind if kind.is_symlink() => "symbolic link",
        _ => "device",
    };
    Err(Unreadable::NotAFile { path: path.to_owned(), kind })
}

/// Whether an error means that there is no such file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn io_error(path: &Path, error: io::Error) -> Unreadable {
    Unreadable::Io { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the error for a path in a directory that an agent filled.
    fn check(name: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        std::fs::create_dir_all(root.join("dir")).unwrap();
        std::fs::write(root.join("file"), "abc").unwrap();
        std::fs::write(directory.path().join("outside"), "secret").unwrap();
        for (link, to) in [("in", "file"), ("out", "../outside"), ("loose", "nothing")] {
            std::os::unix::fs::symlink(to, root.join(link)).unwrap();
        }
        nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        File::create(root.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let said = match read(&root.join(name), Links::Within(&root), 4) {
            Ok(content) => format!("{:?}", content.map(|bytes| String::from_utf8(bytes).unwrap())),
            Err(error) => error.to_string().replace(root.to_str().unwrap(), "."),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn only_files_of_bounded_length_are_read() {
        check("file", "Some(\"abc\")");
        check("in", "Some(\"abc\")");
        check("nothing", "None");
        check("loose", "None");
        check("file/below", "None");
        check("dir", "./dir is a directory and not a file: put a file in its place");
        check("pipe", "./pipe is a named pipe and not a file: put a file in its place");
        check("socket", "./socket is a socket and not a file: put a file in its place");
        check("out", "./out is a link that leads out of .: put a file in its place");
        check(
            "sparse",
            "./sparse is 1099511627776 bytes long; at most 4 are read: make it shorter",
        );
    }

    #[test]
    fn of_a_long_file_the_end_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        io::Write::write_all(&mut file, b"the end").unwrap();
        assert_eq!(read_end(&path, Links::Refused, 7).unwrap().unwrap(), b"the end");
    }
}
