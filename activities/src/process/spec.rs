//! The specification of a program and of its supervision.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Environment, Sandbox};

/// The command of the supervisor, and its grace period.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// A program that calls [`supervise_main`](super::supervise_main) with the arguments that
    /// follow `args`.
    pub program: PathBuf,
    /// The arguments that select the supervisor.
    pub args: Vec<OsString>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Supervisor {
    /// This same binary with the argument `supervise-process`, and ten seconds of grace.
    pub fn of_this_binary() -> io::Result<Self> {
        // The link still names this very version after an upgrade has replaced the file.
        let link = Path::new("/proc/self/exe");
        let program = if link.exists() { link.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, args: vec!["supervise-process".into()], grace: Duration::from_secs(10) })
    }
}

/// The limits after which a program is ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The longest run time.
    pub total: Option<Duration>,
    /// The longest time without output, without a change in its directory, and without computing.
    pub silence: Option<Duration>,
}

/// One program to run.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Its name in the file name of its log.
    pub name: String,
    /// The program: a path, or a name that is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its whole environment; the runner adds its marks.
    pub env: Environment,
    /// The file for its standard input; `None`: empty.
    pub input: Option<PathBuf>,
    /// Its sandbox; `None`: unrestricted.
    pub sandbox: Option<Sandbox>,
    /// Its limits.
    pub limits: Limits,
    /// The remedy if it cannot be started: the last sentence of the message.
    pub remedy: &'static str,
}
