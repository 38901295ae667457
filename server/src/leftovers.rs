//! Temporary files of killed processes in a data directory.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_activities::files::remove_all;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// Prefix of files that live as long as a command; the process id follows.
pub const SCRATCH: &str = "carried-";

/// Depth of session files: `sessions/<run>/<call>/`.
const DEPTH: u32 = 3;

/// The temporary files of dead processes. The caller holds the lock of the data directory: only its
/// holder writes files of sessions.
pub fn find(data_dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        entries(data_dir).filter(|path| is_scratch_of_the_dead(path)).collect();
    half_written(&data_dir.join("sessions"), DEPTH, &mut found);
    found
}

/// Removes them.
pub fn remove(data_dir: &Path) {
    for path in find(data_dir) {
        match remove_all(&path) {
            Ok(()) => tracing::info!("removed {}, which a killed process left", path.display()),
            Err(error) => tracing::warn!("cannot remove {}: {error}", path.display()),
        }
    }
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_scratch_of_the_dead(path: &Path) -> bool {
    let name = name(path);
    let Some(rest) = name.strip_prefix(SCRATCH) else { return false };
    // A partial file has the final name and a suffix.
    let process = rest.split('-').next().and_then(|process| process.parse().ok());
    process.is_some_and(|process| matches!(kill(Pid::from_raw(process), None), Err(Errno::ESRCH)))
}

/// The name that `tempfile` gives before the rename.
fn half_written(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    for path in entries(directory) {
        let is_link = path.is_symlink();
        if path.is_dir() && !is_link && depth > 1 {
            half_written(&path, depth - 1, found);
        } else if path.is_file() && !is_link && name(&path).starts_with(".tmp") {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_living_processes_stay() {
        let home = tempfile::tempdir().unwrap();
        let session = home.path().join("sessions/p~f~1/4");
        fs::create_dir_all(&session).unwrap();
        // No system assigns this process id.
        let ended = i32::MAX;
        let dead = [
            home.path().join(format!("{SCRATCH}{ended}-1.tmp")),
            home.path().join(format!("{SCRATCH}{ended}-1.tmp.2.part")),
            session.join(".tmpAbCdEf"),
        ];
        let used = [
            home.path().join(format!("{SCRATCH}{}-1.tmp", std::process::id())),
            home.path().join(format!("{SCRATCH}other")),
            session.join("report.json"),
            home.path().join("lock"),
        ];
        for path in dead.iter().chain(&used) {
            fs::write(path, "").unwrap();
        }
        let mut found = find(home.path());
        found.sort_unstable();
        let mut expected = dead.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
        remove(home.path());
        assert!(dead.iter().all(|path| !path.exists()) && used.iter().all(|path| path.exists()));
    }
}
