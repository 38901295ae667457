//! A long-lived `git cat-file` per repository: resolves commit names without a process for each.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use super::command::Git;
use super::names::is_object_name;

/// The idle time after which the process ends: there may be many projects, and their directories
/// may be moved or removed.
const IDLE: Duration = Duration::from_secs(2);

/// The longest wait for an answer. A git of its own then fails with the reason.
const PATIENCE: Duration = Duration::from_secs(10);

/// Resolves names in one repository. Clones share the process.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    root: PathBuf,
    common: PathBuf,
    process: Arc<Mutex<Option<Process>>>,
}

#[derive(Debug)]
struct Process {
    #[cfg_attr(not(test), expect(dead_code, reason = "dropping it kills the process"))]
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Device and inode of the git directory. A different directory at its path needs a new
    /// process.
    directory: (u64, u64),
    used: Instant,
}

impl Reader {
    pub(super) fn new(root: &Path, common: &Path) -> Self {
        Self { root: root.to_owned(), common: common.to_owned(), process: Arc::default() }
    }

    /// The object that a name resolves to, if any. The outer `None`: the process failed, and a git
    /// command of its own gives the reason.
    pub(super) async fn object(&self, name: &str) -> Option<Option<String>> {
        if name.contains('\n') {
            return None;
        }
        let directory = identity(&self.common)?;
        let mut shared = self.process.lock().await;
        // Taken out of the slot: a caller dropped in the middle of an exchange kills the process.
        let mut process = match shared.take().filter(|process| process.directory == directory) {
            Some(process) => process,
            None => self.start(directory)?,
        };
        let answer = tokio::time::timeout(PATIENCE, process.ask(name)).await.ok()?.ok()?;
        *shared = Some(process);
        if answer.strip_prefix(name) == Some(" missing") {
            return Some(None);
        }
        is_object_name(&answer).then_some(Some(answer))
    }

    fn start(&self, directory: (u64, u64)) -> Option<Process> {
        let git = Git::at(&self.root).args(["cat-file", "--batch-check=%(objectname)"]);
        let mut command = git.command();
        let spawned = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        tokio::spawn(end_when_idle(Arc::downgrade(&self.process)));
        Some(Process { child, input, output, directory, used: Instant::now() })
    }
}

impl Process {
    async fn ask(&mut self, name: &str) -> std::io::Result<String> {
        self.used = Instant::now();
        self.input.write_all(format!("{name}\n").as_bytes()).await?;
        let mut line = String::new();
        self.output.read_line(&mut line).await?;
        if line.ends_with('\n') {
            Ok(line.trim_end().to_owned())
        } else {
            Err(std::io::ErrorKind::UnexpectedEof.into())
        }
    }
}

async fn end_when_idle(shared: std::sync::Weak<Mutex<Option<Process>>>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(shared) = shared.upgrade() else { return };
        let mut process = shared.lock().await;
        if process.as_ref().is_none_or(|process| process.used.elapsed() >= IDLE) {
            *process = None;
            return;
        }
    }
}

fn identity(directory: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(directory).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn commit(dir: &Path, message: &str) -> String {
        let made = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            message,
        ];
        Git::at(dir).args(made).run().await.unwrap();
        Git::at(dir).args(["rev-parse", "HEAD"]).text().await.unwrap()
    }

    async fn repository(dir: &Path) -> String {
        std::fs::create_dir_all(dir).unwrap();
        Git::at(dir).args(["init", "--quiet", "-b", "main"]).run().await.unwrap();
        commit(dir, "first").await
    }

    #[tokio::test]
    async fn refs_are_read_as_they_are_now() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("repository");
        let first = repository(&top).await;
        let reader = Reader::new(&top, &top.join(".git"));
        assert_eq!(reader.object("refs/heads/main^{commit}").await, Some(Some(first.clone())));
        let second = commit(&top, "second").await;
        assert_eq!(reader.object("refs/heads/main^{commit}").await, Some(Some(second.clone())));
        Git::at(&top).args(["pack-refs", "--all", "--prune"]).run().await.unwrap();
        Git::at(&top).args(["repack", "-adq"]).run().await.unwrap();
        assert_eq!(reader.object("refs/heads/main^{commit}").await, Some(Some(second.clone())));
        assert_eq!(reader.object(&format!("{second}^1")).await, Some(Some(first)));
        Git::at(&top).args(["update-ref", "-d", "refs/heads/main"]).run().await.unwrap();
        assert_eq!(reader.object("refs/heads/main^{commit}").await, Some(None));
        assert_eq!(reader.object("two\nlines").await, None);
    }

    #[tokio::test]
    async fn a_process_that_died_is_started_again_and_another_repository_gets_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("repository");
        let first = repository(&top).await;
        let reader = Reader::new(&top, &top.join(".git"));
        assert_eq!(reader.object("HEAD").await, Some(Some(first.clone())));
        let child = reader.process.lock().await.as_mut().map(|process| process.child.id().unwrap());
        let pid = nix::unistd::Pid::from_raw(child.unwrap().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).unwrap();
        reader.process.lock().await.as_mut().unwrap().child.wait().await.unwrap();
        // The query that met the dead process gets `None`; the next one starts a new process.
        assert_eq!(reader.object("HEAD").await, None);
        assert_eq!(reader.object("HEAD").await, Some(Some(first.clone())));
        std::fs::rename(&top, dir.path().join("moved")).unwrap();
        let other = repository(&top).await;
        assert_ne!(other, "");
        assert_eq!(reader.object("HEAD").await, Some(Some(other)));
    }
}
