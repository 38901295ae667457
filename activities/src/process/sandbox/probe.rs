//! The sandboxes of this machine: tested once per process, not guessed.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::Level;

/// The first version of Landlock's interface that restricts TCP.
pub(super) const LANDLOCK_WITH_NETWORK: u32 = 4;

/// The sandboxes of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// The path of `bwrap` if it works; else the reason.
    pub bubblewrap: Result<PathBuf, String>,
    /// The version of the kernel's Landlock interface if it works; else the reason.
    pub landlock: Result<u32, String>,
}

impl Available {
    /// The strictest level.
    pub fn best(&self) -> Option<Level> {
        let bubblewrap = self.bubblewrap.is_ok().then_some(Level::Bubblewrap);
        bubblewrap.or_else(|| self.landlock.is_ok().then_some(Level::Landlock))
    }

    /// Why no stricter level than the best works, for display; empty if the best is the strictest.
    pub fn lacks(&self) -> String {
        let mut lacks = Vec::new();
        if let Err(reason) = &self.bubblewrap {
            lacks.push(reason.clone());
            lacks.extend(self.landlock.as_ref().err().cloned());
        }
        lacks.join("; ")
    }
}

/// The sandboxes of this machine. The first call starts `bwrap` once, which takes some
/// milliseconds.
pub fn available() -> &'static Available {
    static AVAILABLE: OnceLock<Available> = OnceLock::new();
    AVAILABLE.get_or_init(|| Available { bubblewrap: bubblewrap(), landlock: landlock() })
}

#[cfg(target_os = "linux")]
fn bubblewrap() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let candidates = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let program = candidates
        .map(|directory| directory.join("bwrap"))
        .find(|program| program.is_file())
        .ok_or(
            "bubblewrap is not installed (`apt install bubblewrap`, `dnf install bubblewrap`)",
        )?;
    test_bwrap(&program).map_err(|error| {
        let program = program.display();
        format!("{program} does not work here: {error} (are unprivileged user namespaces allowed?)")
    })?;
    Ok(program)
}

#[cfg(target_os = "linux")]
fn test_bwrap(program: &std::path::Path) -> Result<(), String> {
    use std::process::{Command, Stdio};

    let args = super::bubblewrap::trial();
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(stderr.lines().last().map_or_else(|| output.status.to_string(), str::to_owned))
}

#[cfg(not(target_os = "linux"))]
fn bubblewrap() -> Result<PathBuf, String> {
    Err("there is no sandbox for this operating system".into())
}

#[cfg(target_os = "linux")]
fn landlock() -> Result<u32, String> {
    super::landlock::version().ok_or_else(|| "the kernel has no Landlock".into())
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> Result<u32, String> {
    Err("there is no Landlock on this operating system".into())
}
