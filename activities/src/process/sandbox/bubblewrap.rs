//! The command line of `bwrap`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Access, Confined, Network};

/// Capabilities that the superuser keeps. None of them changes mounts or opens files past them;
/// without them, a program in a container could not reach files of other users.
const KEPT_BY_ROOT: [&str; 8] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
];
/// Paths of `/proc` that the superuser could change without any capability.
const KERNEL_SETTINGS: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];
/// Directories for temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// The paths of `/run` that programs need. Its sockets reach services that act outside of the
/// sandbox.
const NEEDED_OF_RUN: [&str; 4] =
    ["/run/systemd/resolve", "/run/current-system", "/run/booted-system", "/run/opengl-driver"];

/// The arguments of `bwrap` that run a program, given by its path and arguments, in a directory.
pub(in super::super) fn command_of(
    confined: &Confined,
    folder: &Path,
    inside: Vec<OsString>,
) -> Vec<OsString> {
    let mut args = base(confined.sandbox.network);
    for folder in TEMPORARY.into_iter().filter(|folder| Path::new(folder).is_dir()) {
        push(&mut args, "--bind", &confined.temporary, Path::new(folder));
    }
    if Path::new("/run").is_dir() {
        args.extend(["--tmpfs", "/run"].map(OsString::from));
        for path in NEEDED_OF_RUN.iter().map(Path::new).filter(|path| path.exists()) {
            push(&mut args, "--ro-bind", path, path);
        }
    }
    let mut emptied: Vec<PathBuf> = Vec::new();
    for (path, access) in confined.places() {
        match access {
            Access::Write => push(&mut args, "--bind", &path, &path),
            Access::Read => push(&mut args, "--ro-bind", &path, &path),
            Access::Hidden if path.is_dir() => {
                args.extend([
                    "--perms".into(),
                    "0755".into(),
                    "--tmpfs".into(),
                    path.clone().into(),
                ]);
                emptied.push(path);
            }
            Access::Hidden => push(&mut args, "--ro-bind", Path::new("/dev/null"), &path),
        }
    }
    // After the mounts of the places within them.
    for path in emptied {
        args.extend(["--remount-ro".into(), path.into()]);
    }
    args.extend(["--chdir".into(), folder.into(), "--".into()]);
    args.extend(inside);
    args
}

/// Arguments that test every feature.
#[cfg(target_os = "linux")]
pub(super) fn trial() -> Vec<OsString> {
    let mut args = base(Network::Loopback);
    args.extend(["--tmpfs", "/tmp", "--remount-ro", "/tmp", "--", "true"].map(OsString::from));
    args
}

fn base(network: Network) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--as-pid-1"]
            .map(OsString::from)
            .to_vec();
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        args.extend(["--cap-drop", "ALL"].map(OsString::from));
        args.extend(
            KEPT_BY_ROOT
                .iter()
                .flat_map(|capability| ["--cap-add", capability])
                .map(OsString::from),
        );
    }
    if network != Network::On {
        args.push("--unshare-net".into());
    }
    args.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"].map(OsString::from));
    if is_root {
        args.extend(
            KERNEL_SETTINGS
                .iter()
                .flat_map(|path| ["--ro-bind-try", path, path])
                .map(OsString::from),
        );
    }
    args
}

fn push(args: &mut Vec<OsString>, option: &str, from: &Path, to: &Path) {
    args.extend([option.into(), from.into(), to.into()]);
}
