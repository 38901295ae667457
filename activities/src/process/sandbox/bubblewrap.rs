//! The command line of `bwrap`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Access, Confined, KEPT_BY_ROOT, Network};

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
    directory: &Path,
    inside: Vec<OsString>,
) -> Vec<OsString> {
    let mut args = base(confined.sandbox.network);
    for directory in TEMPORARY.into_iter().filter(|directory| Path::new(directory).is_dir()) {
        push(&mut args, "--bind", &confined.temporary, Path::new(directory));
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
    for (link, target) in links_into(&emptied, confined) {
        push(&mut args, "--symlink", &target, &link);
    }
    // After the mounts of the places within them.
    for path in emptied {
        args.extend(["--remount-ro".into(), path.into()]);
    }
    args.extend(["--chdir".into(), directory.into(), "--".into()]);
    args.extend(inside);
    args
}

/// The symbolic links on the way to granted paths that lie in emptied directories, with their
/// targets: programs know those paths by the names with the links.
fn links_into(emptied: &[PathBuf], confined: &Confined) -> BTreeMap<PathBuf, PathBuf> {
    let sandbox = &confined.sandbox;
    let mut links = BTreeMap::new();
    for path in sandbox.writable.iter().chain(&sandbox.readable) {
        for step in path.ancestors().filter(|step| step.is_symlink()) {
            let link = step.parent().and_then(|parent| parent.canonicalize().ok());
            let link = link.zip(step.file_name()).map(|(parent, name)| parent.join(name));
            if let Some((link, target)) = link.zip(step.canonicalize().ok())
                && emptied.iter().any(|directory| link.starts_with(directory))
            {
                links.insert(link, target);
            }
        }
    }
    links
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
                .flat_map(|(capability, _)| ["--cap-add", *capability])
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
