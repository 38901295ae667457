//! The input of a program that is written while it runs. The supervisor of a program opens a file,
//! so it is a FIFO.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tokio::net::unix::pipe;

/// A FIFO; its directory is removed when this is dropped.
pub(crate) struct Fifo {
    directory: tempfile::TempDir,
    /// Open for both, so that neither side waits for the other.
    file: File,
}

impl Fifo {
    /// A FIFO in a data directory.
    pub(crate) fn new(data_dir: &Path) -> io::Result<Self> {
        let parent = data_dir.join("sessions");
        std::fs::create_dir_all(&parent)?;
        let directory = tempfile::Builder::new().prefix(".input-").tempdir_in(parent)?;
        let path = directory.path().join("input");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)?;
        let mut options = File::options();
        options.read(true).write(true).custom_flags(nix::libc::O_NONBLOCK);
        let file = options.open(&path)?;
        Ok(Self { directory, file })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("input")
    }

    /// Its writing end. The input ends when this and the FIFO are dropped.
    pub(crate) fn sender(&self) -> io::Result<pipe::Sender> {
        pipe::Sender::from_file_unchecked(self.file.try_clone()?)
    }
}
