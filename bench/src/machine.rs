//! The machine, and the resources that this process has used.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use schemars::JsonSchema;
use serde::Serialize;

/// The machine, as context for the figures.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Machine {
    pub(super) os: String,
    /// The processor.
    pub(super) model: String,
    pub(super) cores: usize,
    pub(super) memory_bytes: u64,
    /// The directory of the measurement.
    pub(super) directory: String,
    /// Its file system.
    pub(super) file_system: String,
}

pub(super) fn describe(directory: &Path) -> Machine {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/etc/os-release");
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"'));
    let kernel = read("/proc/sys/kernel/osrelease");
    let system = format!("{} {}", std::env::consts::OS, kernel.trim());
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Machine {
        os: name
            .map_or_else(|| system.trim().to_owned(), |name| format!("{name}, {}", system.trim())),
        model: model.map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, model)| model.trim().to_owned(),
        ),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kilobytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or_default(),
        directory: directory.display().to_string(),
        file_system: file_system(directory, &read("/proc/self/mounts"))
            .unwrap_or_else(|| "unknown".into()),
    }
}

/// The kind of file system that a directory is on, by the longest mount point above it.
fn file_system(directory: &Path, mounts: &str) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let point = words.nth(1)?;
        let kind = words.next()?;
        directory.starts_with(point).then_some((point.len(), kind))
    });
    mounts.max_by_key(|(length, _)| *length).map(|(_, kind)| kind.to_owned())
}

/// Memory of this process, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) resident: u64,
    pub(super) peak: u64,
}

/// The memory of this process; without `/proc`, its peak counts for both.
pub(super) fn memory() -> Result<Memory> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let (Some(resident), Some(peak)) =
        (kilobytes(&status, "VmRSS:"), kilobytes(&status, "VmHWM:"))
    {
        return Ok(Memory { resident, peak });
    }
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak = getrusage(UsageWho::RUSAGE_SELF)?.max_rss().unsigned_abs() * unit;
    Ok(Memory { resident: peak, peak })
}

fn kilobytes(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The CPU time of this process so far, in user and kernel mode.
pub(super) fn cpu_time() -> Result<Duration> {
    cpu_of(UsageWho::RUSAGE_SELF)
}

/// The CPU time of all children of this process that have ended, and of their children.
pub(super) fn cpu_of_children() -> Result<Duration> {
    cpu_of(UsageWho::RUSAGE_CHILDREN)
}

fn cpu_of(processes: UsageWho) -> Result<Duration> {
    let usage = getrusage(processes)?;
    let micros = |time: TimeVal| Duration::from_micros(time.num_microseconds().unsigned_abs());
    Ok(micros(usage.user_time()) + micros(usage.system_time()))
}

/// Drops the page cache of a file; false where the system cannot.
#[cfg(target_os = "linux")]
pub(super) fn forget_cached(path: &Path) -> Result<bool> {
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    let file = std::fs::File::open(path)?;
    file.sync_all()?;
    Ok(posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).is_ok())
}

/// Drops the page cache of a file; false where the system cannot.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the shape that it has on Linux")]
pub(super) fn forget_cached(_path: &Path) -> Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/x xfs rw 0 0\n";
        assert_eq!(file_system(Path::new("/tmp/y"), mounts).as_deref(), Some("tmpfs"));
        assert_eq!(file_system(Path::new("/tmp/x/y"), mounts).as_deref(), Some("xfs"));
        assert_eq!(file_system(Path::new("/home"), mounts).as_deref(), Some("ext4"));
    }
}
