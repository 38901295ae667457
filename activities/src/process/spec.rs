//! What is to be run, and under whose supervision.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Environment, Sandbox};

/// How the supervisor is started, and how patient it is.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// A program that calls [`supervise_main`](super::supervise_main) with the arguments that
    /// follow `args`.
    pub program: PathBuf,
    /// The arguments that make it do so.
    pub args: Vec<OsString>,
    /// How long processes have to end after SIGTERM before they get SIGKILL.
    pub grace: Duration,
}

impl Supervisor {
    /// This same binary with the argument `supervise-process`, and ten seconds of grace.
    pub fn of_this_binary() -> io::Result<Self> {
        // The link goes on naming this very version after an upgrade has replaced the file that we
        // were started from.
        let link = Path::new("/proc/self/exe");
        let program = if link.exists() { link.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, args: vec!["supervise-process".into()], grace: Duration::from_secs(10) })
    }
}

/// When a program is ended although nobody asked for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// How long it may take.
    pub total: Option<Duration>,
    /// How long it may be without output, without a change in the directory that it runs in, and
    /// without computing.
    pub silence: Option<Duration>,
}

/// One program to run.
#[derive(Debug, Clone)]
pub struct Spec {
    /// What it is called in the name of its log.
    pub name: String,
    /// The program: a path, or a name that is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its whole environment; the marks are added to it.
    pub env: Environment,
    /// The file that is its standard input; nothing when none.
    pub input: Option<PathBuf>,
    /// What it may reach; everything when none.
    pub sandbox: Option<Sandbox>,
    /// When it is ended.
    pub limits: Limits,
    /// What a person can do when it cannot be started: the end of the message, a whole sentence.
    pub remedy: &'static str,
}
