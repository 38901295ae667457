//! Ends processes that outlived their owner, found by the variables that they inherited; never by
//! name.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::{CALL_VARIABLE, OWNER_VARIABLE, owner_id, places, tree};

const GRACE: Duration = Duration::from_secs(2);
const GIVE_UP: Duration = Duration::from_secs(10);
/// The polling interval: the swept processes are no children of this one, and do not report their
/// end.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// A left-over process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// Its pid.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// Ends all processes that an earlier owner of this data directory left. The new owner calls it
/// once it has the lock and before it starts anything. Takes up to ten seconds if they ignore
/// SIGTERM.
pub fn sweep(data_dir: &Path) -> Vec<Swept> {
    let swept = end_marked(&[mark(OWNER_VARIABLE, &owner_id(data_dir))]);
    places::remove_temporary(&places::temporary_in(data_dir));
    swept
}

/// The processes of owners of this data directory. If no owner runs now, a dead one left them.
pub fn owned(data_dir: &Path) -> Vec<Swept> {
    let left = marked(&[mark(OWNER_VARIABLE, &owner_id(data_dir))]).into_iter();
    left.map(|process| Swept { pid: process.pid.cast_unsigned(), command: process.command })
        .collect()
}

/// Kills at once the programs that the owner of this data directory is ending: a supervisor that is
/// asked to stop a second time ends its grace period.
pub fn hurry(data_dir: &Path) {
    let is_supervised = |process: &tree::Process| {
        process.variables.iter().any(|text| text.starts_with(&mark(CALL_VARIABLE, "")))
    };
    let ours = marked(&[mark(OWNER_VARIABLE, &owner_id(data_dir))]).into_iter();
    // A git that is ended would fail a step.
    for process in ours.filter(is_supervised) {
        let _ = signal::kill(Pid::from_raw(process.pid), Signal::SIGTERM);
    }
}

/// The calls of an owner with running processes.
pub(super) fn open_calls(owner: &str) -> Vec<String> {
    let call = |process: tree::Process| {
        let prefix = mark(CALL_VARIABLE, "");
        let calls = process.variables.iter().filter_map(|text| text.strip_prefix(&prefix));
        calls.map(str::to_owned).collect::<Vec<_>>()
    };
    marked(&[mark(OWNER_VARIABLE, owner)]).into_iter().flat_map(call).collect()
}

/// Ends all processes of one call.
pub(super) fn end_call(owner: &str, key: &str) -> Vec<Swept> {
    end_marked(&[mark(OWNER_VARIABLE, owner), mark(CALL_VARIABLE, key)])
}

fn mark(variable: &str, value: &str) -> String {
    format!("{variable}={value}")
}

fn end_marked(marks: &[String]) -> Vec<Swept> {
    let begun = Instant::now();
    let mut swept = BTreeMap::new();
    let mut has_killed = false;
    loop {
        let left = marked(marks);
        let passed = begun.elapsed();
        // This process may have been held up: give up only after SIGKILL was sent.
        if left.is_empty() || (passed >= GIVE_UP && has_killed) {
            break;
        }
        has_killed = passed >= GRACE;
        for process in left {
            let pid = Pid::from_raw(process.pid);
            if has_killed {
                let _ = signal::kill(pid, Signal::SIGKILL);
            } else if !swept.contains_key(&process.pid) {
                let _ = signal::kill(pid, Signal::SIGTERM);
                let _ = signal::kill(pid, Signal::SIGCONT);
            }
            swept.insert(process.pid, process.command);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    swept.into_iter().map(|(pid, command)| Swept { pid: pid.cast_unsigned(), command }).collect()
}

/// Listed anew before every signal, so that none goes to a process with a reused pid. Longhaul
/// itself carries the marks when it runs inside a session.
fn marked(marks: &[String]) -> Vec<tree::Process> {
    let spared = tree::ancestors(std::process::id().cast_signed());
    let mut processes = tree::environments();
    processes.retain(|process| {
        marks.iter().all(|mark| process.variables.contains(mark)) && !spared.contains(&process.pid)
    });
    processes
}
