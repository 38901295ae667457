//! Git commands that wait for ever, for example for the other end of a pipe in the place of an object.

use std::path::Path;
use std::time::Duration;

use longhaul_engine::Failure;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::damage::{Place, pipe_in};

/// The process group of a command: git and the programs that it started.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<u32>,
    is_killed_on_drop: bool,
}

impl Group {
    pub(super) fn new(leader: Option<u32>, is_killed_on_drop: bool) -> Self {
        Self { leader, is_killed_on_drop }
    }

    pub(super) fn kill(&self) {
        if let Some(leader) = self.leader {
            let _ = killpg(Pid::from_raw(leader.cast_signed()), Signal::SIGKILL);
        }
    }

    /// The pid may be reused from now on.
    pub(super) fn has_ended(mut self) {
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

/// The failure of a command that waits for ever.
pub(super) fn stuck(shown: &str, dir: &Path, patience: Duration) -> Failure {
    let pipe = Place::of(dir).ok().and_then(|place| pipe_in(&place.common.join("objects")));
    let reason = match pipe {
        Some(pipe) => format!("{} is a named pipe and not a file: remove it", pipe.display()),
        None => "a file of the repository may be a named pipe, or its disk may be gone".to_owned(),
    };
    let seconds = patience.as_secs_f64();
    Failure::machine(format!("git hangs: {shown} has done nothing for {seconds} s; {reason}"))
}

#[cfg(test)]
mod tests {
    use super::super::command::Git;
    use super::*;

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
        read.patience = Duration::from_millis(300);
        let failure = read.text().await.unwrap_err();
        assert_eq!(failure.kind, longhaul_engine::FailureKind::Machine);
        let object = object.canonicalize().unwrap();
        let end = format!("{} is a named pipe and not a file: remove it", object.display());
        assert!(failure.message.ends_with(&end), "{failure}");
    }
}
