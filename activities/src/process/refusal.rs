//! The failures of programs that could not be run as required.

use longhaul_engine::Failure;
use nix::errno::Errno;

use crate::machine::{self, Operation};

use super::Spec;

pub(super) fn lost_task(error: &tokio::task::JoinError) -> Failure {
    Failure::retryable(format!("a task of Longhaul itself ended early: {error}"))
}

pub(super) fn supervisor_lost(spec: &Spec, output: &[u8]) -> Failure {
    let output = String::from_utf8_lossy(output);
    let output = if output.trim().is_empty() {
        "nothing; it was killed, or memory ran out"
    } else {
        output.trim()
    };
    let message =
        format!("the supervisor of `{}` was lost; its output: {output}", spec.program.display());
    match machine::cause_in_stderr(output, &[&spec.directory]) {
        Some(cause) => Failure::machine(format!("{cause}: {message}")),
        None => Failure::retryable(message),
    }
}

/// The exit code then proves nothing about the work: many programs exit with 0 on SIGTERM.
pub(super) fn stopped_by_others(spec: &Spec) -> Failure {
    Failure::retryable(format!(
        "the supervisor of `{}` received a stop signal from another process",
        spec.program.display()
    ))
}

pub(super) fn not_started(spec: &Spec, errno: Option<i32>, error: &str) -> Failure {
    let program = spec.program.display();
    let errno = errno.map(Errno::from_raw);
    let directory = spec.directory.display();
    if let Some(cause) =
        errno.and_then(|errno| machine::cause(errno, Operation::Fork, &[&spec.directory]))
    {
        return Failure::machine(format!(
            "{cause}: `{program}` cannot be started in {directory} now: {error}"
        ));
    }
    if errno == Some(Errno::ETXTBSY) {
        return Failure::retryable(format!(
            "`{program}` cannot be started in {directory} now: {error}"
        ));
    }
    let path = spec.env.get("PATH").unwrap_or_default().display();
    let searched = match errno {
        _ if !spec.program.as_encoded_bytes().contains(&b'/') => {
            format!(" It was looked for in PATH={path}.")
        }
        Some(Errno::ENOENT) => {
            " The file is not there, or the interpreter that its first line names is not.".into()
        }
        Some(Errno::EACCES) => " The file is not executable.".into(),
        _ => String::new(),
    };
    Failure::terminal(format!("`{program}` cannot be started: {error}.{searched} {}", spec.remedy))
}

/// The sandbox worked when it was probed, so the fault is in this machine, or in a granted path.
pub(super) fn not_confined(spec: &Spec, error: &str) -> Failure {
    let program = spec.program.display();
    Failure::machine(format!("the sandbox of `{program}` cannot be set up: {error}"))
}
