//! A long-lived `git cat-file` per repository: reads objects without a process for each.
//!
//! It prints raw objects only, so no filter, attribute or replace ref of the repository applies.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use longhaul_engine::Failure;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::io::{BufReader, Error, ErrorKind, Result as IoResult};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use crate::git::command::Git;
use crate::git::names::is_object_name;

/// The idle time after which the process ends: there may be many projects, and their directories
/// may be moved or removed.
const IDLE: Duration = Duration::from_secs(2);

/// The longest wait for an answer. A git of its own then fails with the reason.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest object, in bytes.
const LONGEST: usize = 256 * 1024 * 1024;

/// The size of all cached trees, in bytes.
const CACHED: usize = 16 * 1024 * 1024;

const COMMAND: [&str; 2] =
    ["cat-file", "--batch-command=%(objectname) %(objecttype) %(objectsize)"];

/// Reads the objects of one repository. Clones share the process.
#[derive(Debug, Clone)]
pub(in crate::git) struct Reader {
    root: PathBuf,
    common: PathBuf,
    process: Arc<Mutex<Option<Process>>>,
    trees: Arc<std::sync::Mutex<Trees>>,
}

/// A cache of trees, by name: most directories are the same in all commits of a project.
#[derive(Debug, Default)]
struct Trees {
    bytes: HashMap<String, Arc<[u8]>>,
    size: usize,
}

/// An object of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct Object {
    pub(in crate::git) name: String,
    /// `blob`, `tree`, `commit` or `tag`.
    pub(in crate::git) kind: String,
    /// Its content; empty if only its name was wanted.
    pub(in crate::git) bytes: Vec<u8>,
}

/// A query of `git cat-file --batch-command`.
#[derive(Debug, Clone, Copy)]
enum Query {
    Info,
    Contents,
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
    pub(in crate::git) fn new(root: &Path, common: &Path) -> Self {
        let (process, trees) = Default::default();
        Self { root: root.to_owned(), common: common.to_owned(), process, trees }
    }

    /// The name of the object that a name resolves to; `None` if there is no such object.
    pub(in crate::git) async fn object(&self, name: &str) -> Result<Option<String>, Failure> {
        Ok(self.ask(Query::Info, name).await?.map(|object| object.name))
    }

    /// An object with its content; `None` if there is no such object.
    pub(in crate::git) async fn read(&self, name: &str) -> Result<Option<Object>, Failure> {
        self.ask(Query::Contents, name).await
    }

    /// The content of a tree, by its object name.
    pub(in crate::git) async fn tree(&self, name: &str) -> Result<Option<Arc<[u8]>>, Failure> {
        let cache = || self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cache().bytes.get(name) {
            return Ok(Some(Arc::clone(known)));
        }
        let found = self.read(name).await?.filter(|found| found.kind == "tree");
        let Some(found) = found else { return Ok(None) };
        let bytes: Arc<[u8]> = found.bytes.into();
        let mut trees = cache();
        if trees.size + bytes.len() > CACHED {
            *trees = Trees::default();
        }
        trees.size += bytes.len();
        trees.bytes.insert(found.name, Arc::clone(&bytes));
        Ok(Some(bytes))
    }

    async fn ask(&self, query: Query, name: &str) -> Result<Option<Object>, Failure> {
        if name.contains('\n') {
            return Ok(None);
        }
        match self.ask_process(query, name).await {
            Some(answer) => Ok(answer),
            // A process of its own succeeds, or gives the reason.
            None => self.ask_once(query, name).await,
        }
    }

    /// The outer `None`: the long-lived process failed.
    async fn ask_process(&self, query: Query, name: &str) -> Option<Option<Object>> {
        let directory = identity(&self.common)?;
        let mut shared = self.process.lock().await;
        // Taken out of the slot: a caller dropped in the middle of an exchange kills the process.
        let mut process = match shared.take().filter(|process| process.directory == directory) {
            Some(process) => process,
            None => self.start(directory)?,
        };
        let answer =
            tokio::time::timeout(ANSWER_TIMEOUT, process.ask(query, name)).await.ok()?.ok()?;
        *shared = Some(process);
        Some(answer)
    }

    async fn ask_once(&self, query: Query, name: &str) -> Result<Option<Object>, Failure> {
        let git = Git::at(&self.root).args(COMMAND).input(query.line(name));
        let finished = git.run().await?;
        let answer = answer(query, name, &mut finished.stdout.as_slice()).await;
        answer.map_err(|error| {
            let root = self.root.display();
            Failure::retryable(format!("git cat-file in {root} gave no answer: {error}"))
        })
    }

    fn start(&self, directory: (u64, u64)) -> Option<Process> {
        let mut command = Git::at(&self.root).args(COMMAND).command();
        let spawned = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.ok()?;
        let input = child.stdin.take()?;
        let output = BufReader::new(child.stdout.take()?);
        tokio::spawn(end_when_idle(Arc::downgrade(&self.process)));
        Some(Process { child, input, output, directory, used: Instant::now() })
    }
}

impl Query {
    fn line(self, name: &str) -> String {
        match self {
            Self::Info => format!("info {name}\n"),
            Self::Contents => format!("contents {name}\n"),
        }
    }
}

impl Process {
    async fn ask(&mut self, query: Query, name: &str) -> IoResult<Option<Object>> {
        self.used = Instant::now();
        self.input.write_all(query.line(name).as_bytes()).await?;
        answer(query, name, &mut self.output).await
    }
}

/// Reads `<object> <type> <size>` and the content that follows.
async fn answer(
    query: Query,
    name: &str,
    output: &mut (impl AsyncBufRead + Unpin),
) -> IoResult<Option<Object>> {
    let mut line = String::new();
    output.read_line(&mut line).await?;
    let Some(line) = line.strip_suffix('\n') else {
        return Err(ErrorKind::UnexpectedEof.into());
    };
    if line.strip_prefix(name) == Some(" missing") {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let found = words.next().filter(|found| is_object_name(found)).zip(words.next());
    let size = words.next().and_then(|size| size.parse().ok()).filter(|size| *size <= LONGEST);
    let Some(((found, kind), size)) = found.zip(size) else {
        return Err(Error::other(format!("`{line}`")));
    };
    let mut bytes = Vec::new();
    if matches!(query, Query::Contents) {
        bytes.resize(size + 1, 0);
        output.read_exact(&mut bytes).await?;
        bytes.truncate(size);
    }
    Ok(Some(Object { name: found.to_owned(), kind: kind.to_owned(), bytes }))
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
        assert_eq!(reader.object("refs/heads/main^{commit}").await.unwrap(), Some(first.clone()));
        let second = commit(&top, "second").await;
        assert_eq!(reader.object("refs/heads/main^{commit}").await.unwrap(), Some(second.clone()));
        Git::at(&top).args(["pack-refs", "--all", "--prune"]).run().await.unwrap();
        Git::at(&top).args(["repack", "-adq"]).run().await.unwrap();
        assert_eq!(reader.object("refs/heads/main^{commit}").await.unwrap(), Some(second.clone()));
        assert_eq!(reader.object(&format!("{second}^1")).await.unwrap(), Some(first));
        Git::at(&top).args(["update-ref", "-d", "refs/heads/main"]).run().await.unwrap();
        assert_eq!(reader.object("refs/heads/main^{commit}").await.unwrap(), None);
        assert_eq!(reader.object("two\nlines").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_process_that_died_is_started_again_and_another_repository_gets_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("repository");
        let first = repository(&top).await;
        let reader = Reader::new(&top, &top.join(".git"));
        assert_eq!(reader.object("HEAD").await.unwrap(), Some(first.clone()));
        let child = reader.process.lock().await.as_mut().map(|process| process.child.id().unwrap());
        let pid = nix::unistd::Pid::from_raw(child.unwrap().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).unwrap();
        reader.process.lock().await.as_mut().unwrap().child.wait().await.unwrap();
        // A process of its own answers the query that met the dead process.
        assert_eq!(reader.object("HEAD").await.unwrap(), Some(first.clone()));
        std::fs::rename(&top, dir.path().join("moved")).unwrap();
        let other = repository(&top).await;
        assert_ne!(other, "");
        assert_eq!(reader.object("HEAD").await.unwrap(), Some(other));
    }
}
