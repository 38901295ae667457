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
        answers: bool,
    },
}

impl LockState {
    /// Reads the state. A free log stays locked until the result is dropped.
    pub async fn of(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join("lock");
        let lock = match File::options().read(true).write(true).open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(Error::io(format!("cannot open {}", path.display()))(error)),
        };
        let pid = || std::fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        match lock.try_lock() {
            Ok(()) => {
                let socket = Some(socket::path(data_dir)).filter(|socket| socket.exists());
                Ok(Self::AtRest { last: pid(), socket, _lock: lock })
            }
            Err(TryLockError::WouldBlock) => {
                let answers = Remote::answers(data_dir).await;
                Ok(Self::Owned { by: pid(), answers })
            }
            Err(TryLockError::Error(error)) => {
                Err(Error::io(format!("cannot lock {}", path.display()))(error))
            }
        }
    }
}
