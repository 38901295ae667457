//! Who holds a file that a program left, or may have left.

use std::path::Path;

/// Who holds a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// No process that can be seen.
    Nobody,
    /// This process.
    Process(u32),
    /// The system does not tell.
    Unknown,
}

/// Who has a file open, or is a git that works within a place: git closes a lock long before it lets go of it, while an
/// editor is open, say. Our own children do not count: what they hold, we know of.
pub fn holder_of(file: &Path, place: Option<&Path>) -> Holder {
    look(file, place)
}

#[cfg(target_os = "linux")]
fn look(file: &Path, place: Option<&Path>) -> Holder {
    use std::fs;

    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let place = place.map(|place| fs::canonicalize(place).unwrap_or_else(|_| place.to_owned()));
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let at = Path::new("/proc").join(pid.to_string());
        let has_open = || {
            let open = fs::read_dir(at.join("fd")).into_iter().flatten().flatten();
            open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path == file)
        };
        let is_at_work = || {
            let name = fs::read_to_string(at.join("comm")).unwrap_or_default();
            let is_git = name.trim_end() == "git" || name.starts_with("git-");
            let there = || fs::read_link(at.join("cwd")).ok();
            is_git && place.as_ref().is_some_and(|place| there().is_some_and(|dir| dir.starts_with(place)))
        };
        (has_open() || is_at_work()) && !is_ours(*pid)
    };
    pids.into_iter().find(holds).map_or(Holder::Nobody, Holder::Process)
}

#[cfg(target_os = "linux")]
fn is_ours(pid: u32) -> bool {
    let line = super::tree::ancestors(pid.cast_signed());
    line.get(1).is_some_and(|parent| parent.cast_unsigned() == std::process::id())
}

#[cfg(not(target_os = "linux"))]
fn look(_file: &Path, _place: Option<&Path>) -> Holder {
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
        assert_eq!(holder_of(&file, Some(dir.path())), Holder::Nobody);
        // A child of a child: our own do not count.
        let script = format!("sleep 60 <'{}' & echo $!; wait", file.display());
        let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut pid = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut pid).unwrap();
        let pid: u32 = pid.trim().parse().unwrap();
        let begun = std::time::Instant::now();
        while holder_of(&file, None) != Holder::Process(pid) {
            assert!(begun.elapsed().as_secs() < 10, "it has the file open");
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), nix::sys::signal::Signal::SIGKILL)
            .unwrap();
        child.wait().unwrap();
        assert_eq!(holder_of(&file, None), Holder::Nobody);
    }
}
