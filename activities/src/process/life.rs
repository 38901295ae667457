//! Signs of life of a program without output: CPU time of its processes, or changed files in its
//! directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::tree;

/// The limit of directory entries to examine.
const LOOKED_AT: usize = 200_000;
/// A program is computing if it uses more than this fraction of one CPU: 1/50.
const COMPUTES: u32 = 50;
/// Clock ticks per second, on every Linux.
const TICKS: u64 = 100;

/// The state at the last sign of life.
#[derive(Debug)]
pub(super) struct Liveness {
    supervisor: i32,
    directory: PathBuf,
    cpu_time: u64,
    at: SystemTime,
}

impl Liveness {
    pub(super) fn new(supervisor: i32, directory: &Path) -> Self {
        Self { supervisor, directory: directory.to_owned(), cpu_time: 0, at: SystemTime::now() }
    }

    /// Whether there was a sign of life since the last check, `silence` ago.
    pub(super) async fn is_seen(&mut self, silence: Duration) -> bool {
        let supervisor = self.supervisor;
        let directory = self.directory.clone();
        let since = self.at;
        self.at = SystemTime::now();
        let measure = move || (tree::cpu_time(supervisor), has_changed(&directory, since, &[]));
        let Ok((cpu_time, has_changed)) = tokio::task::spawn_blocking(measure).await else {
            return false;
        };
        // Less than before: a process has ended, and its CPU time is gone.
        let used = cpu_time.saturating_sub(self.cpu_time);
        self.cpu_time = cpu_time;
        let needed =
            u64::try_from((silence / COMPUTES).as_millis()).unwrap_or(u64::MAX) * TICKS / 1000;
        has_changed || used > needed.max(1)
    }
}

/// Whether a file in a directory was modified since a time, outside of subdirectories with a name
/// in `skipped`.
pub(crate) fn has_changed(directory: &Path, since: SystemTime, skipped: &[&str]) -> bool {
    let mut directories = vec![directory.to_owned()];
    let mut looked_at = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > LOOKED_AT {
                return false;
            }
            let name = entry.file_name();
            if skipped.iter().any(|skipped| name == *skipped) {
                continue;
            }
            let Ok(found) = entry.metadata() else { continue };
            if found.modified().is_ok_and(|modified| modified >= since) {
                return true;
            }
            if found.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    false
}
