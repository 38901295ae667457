//! The first process within a sandbox: starts the program, reaps orphans, and reports how it ended.
//!
//! Its standard error goes to the supervisor, one line of JSON per [`Report`]; the program gets its
//! standard output for both streams.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::errno::Errno;
use nix::sys::signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::super::verdict::Ending;

/// The argument with which a supervisor starts itself again within a sandbox.
pub(in super::super) const INSIDE: &str = "--inside";

/// The argument with which it starts itself to be restricted by Landlock, before its whole order.
pub(in super::super) const RESTRICTED: &str = "--restricted";

/// A message from within to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Report {
    /// The sandbox is set up; the program starts next.
    Ready,
    /// The program has ended, or was not started.
    Ended(Ending),
}

/// Restricts this process by Landlock, and becomes the program.
#[cfg(target_os = "linux")]
pub(in super::super) fn restricted_main(
    confined: &super::Confined,
    program: OsString,
    args: Vec<OsString>,
) -> ExitCode {
    if let Err(error) = super::restrict(confined) {
        let _ = writeln!(io::stderr(), "Landlock: {error}");
        return ExitCode::from(2);
    }
    let refused = super::Refused { ipc: confined.sandbox.private, limits_of_others: true };
    if let Err(error) = super::refuse(refused) {
        let _ = writeln!(io::stderr(), "seccomp: {error}");
        return ExitCode::from(2);
    }
    report(&Report::Ready);
    // A duplicate, closed when the program replaces this process: the original becomes the
    // program's.
    let Ok(reports) = io::stderr().as_fd().try_clone_to_owned() else { return ExitCode::from(2) };
    let error = match io::stdout().as_fd().try_clone_to_owned() {
        Ok(output) => Command::new(program).args(args).stderr(output).exec(),
        Err(error) => error,
    };
    let line = line(&Report::Ended(Ending::not_started(&error)));
    let _ = std::fs::File::from(reports).write_all(line.as_bytes());
    ExitCode::SUCCESS
}

/// Starts a program, given by its path and arguments, as the first process of a PID namespace.
/// Returns when no process is left in it.
pub(in super::super) fn inside_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let Some(program) = args.next() else { return ExitCode::from(2) };
    // Programs inside cannot open its files or trace it.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
    #[cfg(target_os = "linux")]
    if let Err(error) = super::refuse(super::Refused { ipc: false, limits_of_others: false }) {
        let _ = writeln!(io::stderr(), "seccomp: {error}");
        return ExitCode::from(2);
    }
    report(&Report::Ready);
    let mut command = Command::new(program);
    command.args(args).process_group(0);
    let output = || io::stdout().as_fd().try_clone_to_owned();
    let started =
        output().and_then(|output| command.stdin(Stdio::inherit()).stderr(output).spawn());
    let pid = match started {
        Ok(child) => Pid::from_raw(child.id().cast_signed()),
        Err(error) => {
            report(&Report::Ended(Ending::not_started(&error)));
            return ExitCode::SUCCESS;
        }
    };
    // Only the program prints.
    if let Ok(null) = std::fs::File::open("/dev/null").map(OwnedFd::from) {
        let _ = nix::unistd::dup2_stdout(&null);
    }
    reap_all(pid);
    ExitCode::SUCCESS
}

fn reap_all(program: Pid) {
    let mut ended = false;
    loop {
        let (pid, ending) = match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Ending::Exited { code }),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                (pid, Ending::Signalled { signal: signal as i32 })
            }
            Err(Errno::EINVAL) if signal::kill(program, None).is_err() => {
                (program, Ending::Signalled { signal: 0 })
            }
            Ok(_) | Err(Errno::EINVAL | Errno::EINTR) => continue,
            Err(_) => return,
        };
        if pid == program && !ended {
            ended = true;
            report(&Report::Ended(ending));
        }
    }
}

fn report(report: &Report) {
    let _ = io::stderr().write_all(line(report).as_bytes());
}

fn line(report: &Report) -> String {
    serde_json::to_string(report).expect("a report has a JSON form") + "\n"
}
