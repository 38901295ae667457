//! The data directory: its permissions, its owner, and leftovers of dead owners.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use longhaul_activities::files::remove_all;
use longhaul_activities::process;

use super::Finding;
use longhaul_server::LockState;
use longhaul_server::leftovers;

pub(super) fn directory(data_dir: &Path, fix: bool) -> Vec<Finding> {
    let shown = data_dir.display();
    let metadata = match fs::metadata(data_dir) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::ok("data directory", format!("{shown} is not there yet"))];
        }
        Err(error) => {
            let advice = "name another one with --data-dir";
            return vec![Finding::problem(
                "data directory",
                format!("{shown} cannot be looked at: {error}"),
                advice,
            )];
        }
    };
    if !metadata.is_dir() {
        let advice = "name another place with --data-dir";
        return vec![Finding::problem(
            "data directory",
            format!("{shown} is not a directory"),
            advice,
        )];
    }
    vec![access(data_dir, &metadata, fix)]
}

fn access(data_dir: &Path, metadata: &fs::Metadata, fix: bool) -> Finding {
    let shown = data_dir.display();
    let writable = nix::unistd::access(
        data_dir,
        nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK,
    );
    if let Err(error) = writable {
        let advice = format!(
            "make it yours, or name another one with --data-dir; it belongs to user {}",
            metadata.uid()
        );
        return Finding::problem(
            "data directory",
            format!("{shown} cannot be written: {error}"),
            advice,
        );
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode.trailing_zeros() >= 6 {
        return Finding::ok("data directory", format!("{shown} is yours alone"));
    }
    let what =
        format!("other users can open {shown} (mode {mode:o}), steer agents and read transcripts");
    Finding::warning("data directory", what, format!("chmod 700 {shown}"))
        .or_fix(fix, || fs::set_permissions(data_dir, Permissions::from_mode(0o700)))
}

/// The current owner, and leftovers of a dead one.
pub(super) async fn owner(data_dir: &Path, fix: bool) -> Vec<Finding> {
    match LockState::of(data_dir).await {
        Err(error) => {
            vec![Finding::problem("owner", format!("{error:#}"), "make the data directory yours")]
        }
        Ok(LockState::Nothing) => vec![Finding::ok("owner", "nothing has run yet")],
        Ok(LockState::Owned { by, is_reachable: true }) => {
            vec![Finding::ok("owner", format!("process {by} runs this log"))]
        }
        Ok(LockState::Owned { by, is_reachable: false }) => {
            let what = format!("process {by} has the log open and does not answer");
            vec![Finding::warning(
                "owner",
                what,
                "wait a moment; if it stays so, end that process: nothing is lost",
            )]
        }
        // The lock is held to the end of this arm, so all leftovers belong to dead processes.
        Ok(LockState::AtRest { last, socket, .. }) => {
            let mut findings = vec![Finding::ok(
                "owner",
                format!("no process has the log open; the last was process {last}"),
            )];
            if let Some(socket) = socket {
                let what = format!("{} was left by an owner that was killed", socket.display());
                findings.push(
                    Finding::warning("socket", what, "remove it; the next run does")
                        .or_fix(fix, || fs::remove_file(&socket)),
                );
            }
            findings.extend(leftovers::find(data_dir).into_iter().map(|path| {
                let what = format!("{} was left by a process that was killed", path.display());
                let finding =
                    Finding::warning("temporary file", what, "remove it; the next run does");
                finding.or_fix(fix, || remove_all(&path))
            }));
            findings.extend(processes(data_dir, fix));
            findings
        }
    }
}

fn processes(data_dir: &Path, fix: bool) -> Vec<Finding> {
    let left = process::owned(data_dir);
    let shown = |process: &process::Swept| {
        let what =
            format!("{} `{}` was left by an owner that was killed", process.pid, process.command);
        Finding::warning("process", what, "end it; the next run does")
    };
    let findings: Vec<_> = left.iter().map(shown).collect();
    if fix && !left.is_empty() {
        process::sweep(data_dir);
    }
    let still = if fix { process::owned(data_dir) } else { Vec::new() };
    let ended = |process: &process::Swept| {
        let stays = still.iter().any(|left| left.pid == process.pid);
        if stays { Err(std::io::Error::other("it does not end")) } else { Ok(()) }
    };
    findings
        .into_iter()
        .zip(&left)
        .map(|(finding, process)| finding.or_fix(fix, || ended(process)))
        .collect()
}
