//! Who has a data directory, told from its lock and its socket, without opening the log.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::socket::{self, Remote};

/// Who has a data directory.
#[derive(Debug)]
pub enum LockState {
    /// There is no log.
    Nothing,
    /// Nobody.
    AtRest {
        /// The process that had it last, if that is written down.
        last: String,
        /// A socket that a dead owner left.
        socket: Option<PathBuf>,
        /// Keeps others away for as long as it is held.
        _lock: File,
    },
    /// A process, which may answer or not.
    Owned {
        /// Its process id, as it left it.
        by: String,
        /// Whether its socket takes a connection.
        answers: bool,
    },
}

impl LockState {
    /// Looks. If nobody has it, nobody can take it until this is dropped.
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
