//! Reads the owner of a data directory from its lock and socket, without opening the log.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::socket::{self, Remote};

/// The owner of a data directory.
#[derive(Debug)]
pub enum LockState {
    /// There is no log.
    Nothing,
    /// No process owns it.
    AtRest {
        /// The last owner, if its process id was recorded.
        last: String,
        /// The socket of a dead owner.
        socket: Option<PathBuf>,
        /// The lock on the log: no process can take it while this is held.
        _lock: File,
    },
    /// A live process, which may accept connections or not.
    Owned {
        /// Its process id, as recorded.
        by: String,
        /// Whether its socket accepts a connection.
        is_reachable: bool,
    },
}

impl LockState {
    /// Reads the state. A free log stays locked until the result is dropped.
    pub async fn of(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join("lock");
        if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            let path = path.display();
            return Err(Error::usage(format!(
                "{path} is no regular file: move it away, and it is created"
            )));
        }
        let mut options = File::options();
        // A log whose lock file was lost is no empty directory.
        options.read(true).write(true).truncate(false).create(data_dir.join("log").is_dir());
        let lock = match options.open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(Error::io(format!("cannot open {}", path.display()))(error)),
        };
        let pid = || socket::owner_pid(data_dir);
        match lock.try_lock() {
            Ok(()) => {
                let socket = Some(socket::path(data_dir)).filter(|socket| socket.exists());
                Ok(Self::AtRest { last: pid(), socket, _lock: lock })
            }
            Err(TryLockError::WouldBlock) => {
                let is_reachable = Remote::is_reachable(data_dir).await;
                Ok(Self::Owned { by: pid(), is_reachable })
            }
            Err(TryLockError::Error(error)) => {
                Err(Error::io(format!("cannot lock {}", path.display()))(error))
            }
        }
    }
}
