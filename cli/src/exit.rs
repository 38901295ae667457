//! The exit codes: the same table for every command.

use std::process::ExitCode;

use longhaul_activities::project::{NO_LIST, NO_SETTINGS};
use longhaul_engine::Failure;
use longhaul_server::settled::Verdict;
use longhaul_server::{RequestError, is_operational};

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// 0: done, no findings.
    Ok,
    /// 1: a finding: a feature is blocked, a replay diverged.
    Finding,
    /// 2: the command line, the settings or the list is invalid.
    Usage,
    /// 3: suspended: it waits for a person or a limit.
    Suspended,
    /// 4: the log, the disk, git or the network failed.
    Operational,
    /// 5: partial: some succeeded, some failed.
    Partial,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Finding => 1,
            Self::Usage => 2,
            Self::Suspended => 3,
            Self::Operational => 4,
            Self::Partial => 5,
        }
    }

    /// The exit of a command over several items, from the exit of each.
    pub(crate) fn of_all(exits: impl IntoIterator<Item = Self>) -> Self {
        let mut exits = exits.into_iter();
        let Some(first) = exits.next() else { return Self::Ok };
        let differs = exits.any(|exit| exit != first);
        if differs { Self::Partial } else { first }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// An error with an exit code; any other error is operational.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) exit: Exit,
    message: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Complaint {}

/// The exit code of an error.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    error.chain().find_map(named).unwrap_or(Exit::Operational)
}

/// Whether the command must change: the same request fails in any process.
pub(crate) fn is_complaint(error: &anyhow::Error) -> bool {
    named(error.as_ref()).is_some_and(|exit| exit != Exit::Operational)
}

fn named(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(complaint) = cause.downcast_ref::<Complaint>() {
        return Some(complaint.exit);
    }
    Some(match cause.downcast_ref::<longhaul_server::Error>()? {
        longhaul_server::Error::Usage(_) => Exit::Usage,
        longhaul_server::Error::Request(error) => match error {
            RequestError::Failed { .. } => Exit::Operational,
            RequestError::Held { .. } => Exit::Suspended,
            RequestError::Diverged { .. } => Exit::Finding,
            RequestError::UnknownRun { .. }
            | RequestError::UnknownName(_)
            | RequestError::AlreadyDone { .. }
            | RequestError::Refused { .. } => Exit::Usage,
        },
        _ => return None,
    })
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Passed => Self::Ok,
            Verdict::Blocked => Self::Finding,
            Verdict::Suspended => Self::Suspended,
            Verdict::Misconfigured => Self::Usage,
            Verdict::Failed => Self::Operational,
        }
    }
}

/// A usage error: exit code 2.
pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    Complaint { exit: Exit::Usage, message: message.to_string() }.into()
}

/// A failure before the start: exit code 4 if the machine failed or the repository is damaged, else
/// 2.
pub(crate) fn failed(failure: Failure) -> anyhow::Error {
    let exit = if is_operational(&failure) { Exit::Operational } else { Exit::Usage };
    let remedy = match failure.code.as_deref() {
        Some(NO_SETTINGS) => "; write one with longhaul init",
        Some(NO_LIST) => "; write one, or add a feature with longhaul feature add",
        _ => "",
    };
    Complaint { exit, message: failure.message + remedy }.into()
}

/// An error of this machine: exit code 4.
pub(crate) fn operational(message: impl std::fmt::Display) -> anyhow::Error {
    Complaint { exit: Exit::Operational, message: message.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_exits_make_one() {
        assert_eq!(Exit::of_all([Exit::Ok, Exit::Ok]), Exit::Ok);
        assert_eq!(Exit::of_all([Exit::Finding]), Exit::Finding);
        assert_eq!(Exit::of_all([Exit::Suspended, Exit::Suspended]), Exit::Suspended);
        assert_eq!(Exit::of_all([Exit::Ok, Exit::Finding]), Exit::Partial);
    }
}
