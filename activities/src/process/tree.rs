//! Lists processes, and those that belong to a program.

#[cfg(target_os = "linux")]
pub(super) use linux::{ancestors, cpu_time, descendants, environments, idle_since, variables};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{ancestors, cpu_time, descendants, environments, idle_since, variables};

/// A process and its initial environment.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) command: String,
    /// `NAME=value`, as far as the system shows them.
    pub(super) variables: Vec<String>,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs;

    use procfs::process::{self, Stat};

    use super::Process;

    fn stat(pid: i32) -> Option<Stat> {
        process::Process::new(pid).ok()?.stat().ok()
    }

    /// A process whose first thread has ended continues with its other threads.
    fn has_ended(stat: &Stat) -> bool {
        matches!(stat.state, 'Z' | 'X') && stat.num_threads <= 1
    }

    fn below(of: i32) -> Vec<Stat> {
        let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
        for process in process::all_processes().into_iter().flatten() {
            if let Ok(stat) = process.and_then(|process| process.stat()) {
                children.entry(stat.ppid).or_default().push(stat);
            }
        }
        let mut living = Vec::new();
        let mut parents = vec![of];
        while let Some(parent) = parents.pop() {
            for stat in children.remove(&parent).unwrap_or_default() {
                parents.push(stat.pid);
                if !has_ended(&stat) {
                    living.push(stat);
                }
            }
        }
        living
    }

    /// The living descendants of a process. `_group` is for systems that do not show the parent.
    pub(in super::super) fn descendants(of: i32, _group: i32) -> Vec<i32> {
        below(of).into_iter().map(|stat| stat.pid).collect()
    }

    /// A process and its ancestors.
    pub(in super::super) fn ancestors(of: i32) -> Vec<i32> {
        let mut line = vec![of];
        while let Some(stat) = line.last().and_then(|pid| stat(*pid)) {
            if stat.ppid == 0 || line.contains(&stat.ppid) {
                break;
            }
            line.push(stat.ppid);
        }
        line
    }

    fn texts(bytes: &[u8]) -> Vec<String> {
        let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    /// The initial environment of a process; `None` if it may not be read.
    pub(in super::super) fn variables(pid: i32) -> Option<Vec<String>> {
        // Raw: a map, as `procfs` returns it, keeps only one of two variables with the same name.
        Some(texts(&fs::read(format!("/proc/{pid}/environ")).ok()?))
    }

    /// The CPU time of the living descendants of a process and of their reaped children, in ticks.
    pub(in super::super) fn cpu_time(of: i32) -> u64 {
        let used =
            |stat: Stat| stat.utime + stat.stime + (stat.cutime + stat.cstime).unsigned_abs();
        below(of).into_iter().map(used).sum()
    }

    /// The CPU time of a process and its living descendants, in ticks; `None` if one of them is
    /// running or waits for a disk.
    pub(in super::super) fn idle_since(of: i32) -> Option<u64> {
        let mut sum = 0;
        for stat in stat(of).into_iter().chain(below(of)) {
            if matches!(stat.state, 'R' | 'D') {
                return None;
            }
            sum += stat.utime + stat.stime;
        }
        Some(sum)
    }

    /// All processes whose environment may be read.
    pub(in super::super) fn environments() -> Vec<Process> {
        let process = |process: process::Process| {
            let variables = variables(process.pid)?;
            Some(Process {
                pid: process.pid,
                command: process.cmdline().ok()?.join(" "),
                variables,
            })
        };
        process::all_processes().into_iter().flatten().flatten().filter_map(process).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::process::Command;

    use super::Process;
    use super::tables;

    fn ps(args: &[&str]) -> String {
        let output = Command::new("ps").args(args).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default()
    }

    /// The living processes of a process group: this system does not reparent orphans to their
    /// supervisor.
    pub(in super::super) fn descendants(of: i32, group: i32) -> Vec<i32> {
        let mut members =
            tables::group(&ps(&["-ax", "-o", "pid=", "-o", "pgid=", "-o", "stat="]), group);
        members.retain(|pid| *pid != of);
        members
    }

    /// A process and its ancestors.
    pub(in super::super) fn ancestors(of: i32) -> Vec<i32> {
        tables::ancestors(&ps(&["-ax", "-o", "pid=", "-o", "ppid="]), of)
    }

    /// The initial environment of a process, as far as the system shows it.
    pub(in super::super) fn variables(pid: i32) -> Option<Vec<String>> {
        environments()
            .into_iter()
            .find(|process| process.pid == pid)
            .map(|process| process.variables)
    }

    /// Not available on this system.
    pub(in super::super) fn idle_since(_of: i32) -> Option<u64> {
        None
    }

    /// Not available on this system.
    pub(in super::super) fn cpu_time(_of: i32) -> u64 {
        0
    }

    /// All processes, each with its variables after its command where the system shows them.
    pub(in super::super) fn environments() -> Vec<Process> {
        tables::environments(&ps(&["-axEww", "-o", "pid=", "-o", "command="]))
    }
}

/// Parses the output of `ps`.
#[cfg(any(test, not(target_os = "linux")))]
mod tables {
    use std::collections::HashMap;

    use super::Process;

    /// The living processes of a group, from lines with pid, group and state.
    pub(super) fn group(text: &str, group: i32) -> Vec<i32> {
        let member = |line: &str| {
            let [pid, of, state] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                return None;
            };
            (of.parse() == Ok(group) && !state.starts_with('Z')).then_some(pid.parse().ok()?)
        };
        text.lines().filter_map(member).collect()
    }

    /// A process and its ancestors, from lines with pid and parent.
    pub(super) fn ancestors(text: &str, of: i32) -> Vec<i32> {
        let pair = |line: &str| {
            let (pid, parent) = line.trim().split_once(char::is_whitespace)?;
            Some((pid.parse().ok()?, parent.trim().parse().ok()?))
        };
        let parents: HashMap<i32, i32> = text.lines().filter_map(pair).collect();
        let mut line = vec![of];
        while let Some(parent) = line.last().and_then(|pid| parents.get(pid)) {
            if *parent == 0 || line.contains(parent) {
                break;
            }
            line.push(*parent);
        }
        line
    }

    /// The processes with their variables, from lines with pid, command and variables.
    pub(super) fn environments(text: &str) -> Vec<Process> {
        let process = |line: &str| {
            let (pid, command) = line.trim_start().split_once(' ')?;
            let variables = command.split(' ').map(str::to_owned).collect();
            Some(Process { pid: pid.parse().ok()?, command: command.trim().to_owned(), variables })
        };
        text.lines().filter_map(process).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn tables_are_read() {
            assert_eq!(group("  1   1 Ss\n 20   7 S+\n 21   7 Z\n  22 7 R\n", 7), [20, 22]);
            assert_eq!(ancestors("  1 0\n 20   1\n 21  20\n", 21), [21, 20, 1]);
            let processes = environments("  20 sh -c x LONGHAUL_OWNER=1 A=b\nodd\n");
            assert_eq!((processes.len(), processes[0].pid), (1, 20));
            assert!(processes[0].variables.contains(&"LONGHAUL_OWNER=1".to_owned()));
        }
    }
}
