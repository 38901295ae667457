//! Git commands that wait for ever, for example for the other end of a pipe in the place of an
//! object.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::{DirEntry, WalkBuilder};
use longhaul_engine::Failure;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::place::GitDirectories;
use crate::git::files;

/// The process group of a command: git and the programs that it started.
#[derive(Debug)]
pub(in crate::git) struct Group {
    leader: Option<u32>,
    is_killed_on_drop: bool,
}

impl Group {
    pub(in crate::git) fn new(leader: Option<u32>, is_killed_on_drop: bool) -> Self {
        Self { leader, is_killed_on_drop }
    }

    pub(in crate::git) fn kill(&self) {
        if let Some(leader) = self.leader {
            let _ = killpg(Pid::from_raw(leader.cast_signed()), Signal::SIGKILL);
        }
    }

    /// The pid may be reused from now on.
    pub(in crate::git) fn has_ended(mut self) {
        self.is_killed_on_drop = false;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_killed_on_drop {
            self.kill();
        }
    }
}

/// The failure of a command that waits for ever. In the work tree of programs, the cause is
/// removed.
pub(in crate::git) fn stuck(
    shown: &str,
    dir: &Path,
    work_tree: Option<&Path>,
    timeout: Duration,
) -> Failure {
    if let Some(removed) = work_tree.and_then(remove_pipe) {
        return Failure::retryable(format!(
            "git waited for the named pipe {}, which a program made; it is removed",
            removed.display()
        ));
    }
    let of_git = || specials(&GitDirectories::of(dir).ok()?.common).next();
    let pipe = of_git().or_else(|| pipe_for_git(dir));
    let reason = match pipe {
        Some(pipe) => format!("{} is a named pipe and not a file: remove it", pipe.display()),
        None => "a file of the repository may be a named pipe, or its disk may be gone".to_owned(),
    };
    let seconds = timeout.as_secs_f64();
    Failure::machine(format!("git hangs: {shown} has done nothing for {seconds} s; {reason}"))
}

/// Removes the named pipes of a work tree that git opens; returns the first.
fn remove_pipe(work_tree: &Path) -> Option<PathBuf> {
    let is_opened = |path: &Path| {
        path.components().any(|part| part.as_os_str() == ".git") || is_read_by_git(path)
    };
    let mut first = None;
    for path in specials(work_tree) {
        if path.strip_prefix(work_tree).is_ok_and(is_opened) && files::remove(&path).is_ok() {
            first.get_or_insert(path);
        }
    }
    first
}

/// A named pipe in the place of a file that git reads in a checkout: every command there waits for
/// its other end.
pub fn pipe_for_git(checkout: &Path) -> Option<PathBuf> {
    specials(checkout).find(|path| is_read_by_git(path))
}

fn is_read_by_git(path: &Path) -> bool {
    let names = [".gitignore", ".gitattributes", ".gitmodules"];
    path.file_name().is_some_and(|name| names.iter().any(|file| name == *file))
}

/// Pipes, sockets and devices below a directory.
fn specials(top: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = WalkBuilder::new(top).standard_filters(false).build().flatten();
    let special = entries.filter(|entry| {
        entry
            .file_type()
            .is_some_and(|kind| !kind.is_file() && !kind.is_dir() && !kind.is_symlink())
    });
    special.map(DirEntry::into_path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::command::Git;

    #[tokio::test]
    async fn a_command_that_waits_for_ever_is_killed_and_the_machine_is_at_fault() {
        let dir = tempfile::tempdir().unwrap();
        Git::at(dir.path()).args(["init", "--quiet"]).run().await.unwrap();
        let hash = Git::at(dir.path()).args(["hash-object", "-w", "--stdin"]).input("text");
        let hash = hash.text().await.unwrap();
        let object = dir.path().join(format!(".git/objects/{}/{}", &hash[..2], &hash[2..]));
        std::fs::remove_file(&object).unwrap();
        nix::unistd::mkfifo(&object, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut read = Git::at(dir.path()).args(["cat-file", "-p", &hash]);
        read.stuck_timeout = Duration::from_millis(300);
        let failure = read.text().await.unwrap_err();
        assert_eq!(failure.kind, longhaul_engine::FailureKind::Machine);
        let object = object.canonicalize().unwrap();
        let end = format!("{} is a named pipe and not a file: remove it", object.display());
        assert!(failure.message.ends_with(&end), "{failure}");
    }

    #[tokio::test]
    async fn a_pipe_in_a_checkout_is_named_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        Git::at(dir.path()).args(["init", "--quiet"]).run().await.unwrap();
        let pipe = dir.path().join(".gitattributes");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(dir.path().join("file"), "text").unwrap();
        let mut add = Git::at(dir.path()).args(["add", "file"]);
        add.stuck_timeout = Duration::from_millis(300);
        let failure = add.run().await.unwrap_err();
        let end = format!("{} is a named pipe and not a file: remove it", pipe.display());
        assert!(failure.message.ends_with(&end), "{failure}");
        assert!(files::is_there(&pipe));
    }

    #[tokio::test]
    async fn pipes_in_a_work_tree_of_programs_are_removed_so_that_the_next_try_passes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        Git::at(tree).args(["init", "--quiet"]).run().await.unwrap();
        std::fs::create_dir_all(tree.join("nested/.git/refs")).unwrap();
        std::fs::create_dir_all(tree.join("nested/.git/objects")).unwrap();
        std::fs::write(tree.join("work.txt"), "work").unwrap();
        let pipe = |name: &str| {
            nix::unistd::mkfifo(&tree.join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        };
        let in_the_way = [".gitignore", ".gitattributes", ".git/packed-refs", "nested/.git/HEAD"];
        in_the_way.into_iter().for_each(pipe);
        pipe("service.pipe");
        let status = || {
            let mut status = Git::at(tree).reading(tree).args(["status", "--porcelain"]);
            status.stuck_timeout = Duration::from_millis(300);
            status.run()
        };
        let failure = status().await.unwrap_err();
        assert_eq!(failure.kind, longhaul_engine::FailureKind::Retryable);
        assert!(failure.message.contains("which a program made; it is removed"), "{failure}");
        assert!(in_the_way.iter().all(|name| !files::is_there(&tree.join(name))));
        assert!(files::is_there(&tree.join("service.pipe")), "git does not open this one");
        let _ = std::fs::remove_dir_all(tree.join("nested"));
        status().await.unwrap();
    }
}
