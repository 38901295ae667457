//! The process that holds a file which another program left.

use std::path::Path;

/// The holder of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// No visible process.
    None,
    /// This process.
    Process(u32),
    /// This system does not tell.
    Unknown,
}

/// The process that has a file open, or a git that works within `place`: git closes a lock long
/// before it removes it, for example while an editor is open. This process's children do not count.
pub(crate) fn holder_of(file: &Path, place: Option<&Path>) -> Holder {
    find(file, place)
}

#[cfg(target_os = "linux")]
fn find(file: &Path, place: Option<&Path>) -> Holder {
    use procfs::process::{FDTarget, Process, all_processes};

    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let file = canonical(file);
    let place = place.map(canonical);
    let has_open = |process: &Process| {
        let mut open = process.fd().into_iter().flatten().flatten();
        open.any(|open| matches!(open.target, FDTarget::Path(path) if path == file))
    };
    let is_git_within = |process: &Process| {
        let is_git =
            process.stat().is_ok_and(|stat| stat.comm == "git" || stat.comm.starts_with("git-"));
        is_git
            && place
                .as_ref()
                .is_some_and(|place| process.cwd().is_ok_and(|dir| dir.starts_with(place)))
    };
    let mut processes = all_processes().into_iter().flatten().flatten();
    let holder = processes
        .find(|process| (has_open(process) || is_git_within(process)) && !is_ours(process.pid));
    holder.map_or(Holder::None, |process| Holder::Process(process.pid.cast_unsigned()))
}

#[cfg(target_os = "linux")]
fn is_ours(pid: i32) -> bool {
    let line = super::tree::ancestors(pid);
    line.get(1).is_some_and(|parent| parent.cast_unsigned() == std::process::id())
}

#[cfg(not(target_os = "linux"))]
fn find(_file: &Path, _place: Option<&Path>) -> Holder {
    Holder::Unknown
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_file_is_held_by_who_has_it_open() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("index.lock");
        std::fs::write(&file, "").unwrap();
        assert_eq!(holder_of(&file, Some(dir.path())), Holder::None);
        // A grandchild: direct children do not count.
        let script = format!("sleep 60 <'{}' & echo $!; wait", file.display());
        let mut child =
            Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut pid = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut pid).unwrap();
        let pid: u32 = pid.trim().parse().unwrap();
        let begun = std::time::Instant::now();
        while holder_of(&file, None) != Holder::Process(pid) {
            assert!(begun.elapsed().as_secs() < 10, "it has the file open");
        }
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid.cast_signed()),
            nix::sys::signal::Signal::SIGKILL,
        )
        .unwrap();
        child.wait().unwrap();
        assert_eq!(holder_of(&file, None), Holder::None);
    }
}
