//! Runs git, always with the same settings and environment. Failures name the command, the place
//! and the cause.

pub(super) mod directories;
pub(super) mod hang;
pub(super) mod place;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use longhaul_engine::Failure;
use nix::sys::signal::Signal;
use nix::unistd::{AccessFlags, access};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::command::hang::{Group, stuck};
use super::command::place::GitDirectories;
use crate::files::give_access;
use crate::machine::{self, Operation};
use crate::process::{OWNER_VARIABLE, owner_id, until_stuck};

/// Limit of standard output in bytes. Longer output is a failure: no query here needs that much.
const OUTPUT_LIMIT: u64 = 256 * 1024 * 1024;
/// Limit of standard error in bytes; the rest is not read.
const ERROR_LIMIT: u64 = 1024 * 1024;
/// The number of lines of standard error in a failure.
const ERROR_LINES: usize = 6;
/// The number of arguments in a failure.
const SHOWN_ARGUMENTS: usize = 8;
/// What git says if it may not write to a directory of objects.
const OBJECTS_DENIED: &str = "insufficient permission for adding an object to repository database";
/// The time without any activity after which a command counts as stuck.
const STUCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of every command. Hooks and helpers of the repository must not run: an agent may have
/// set them.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "commit.gpgSign=false",
    "merge.verifySignatures=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // By default git syncs neither loose objects nor refs.
    "core.fsync=committed,reference",
    "fetch.fsckObjects=true",
    // Milliseconds to wait for another git process before giving up.
    "core.filesRefLockTimeout=2000",
    "core.packedRefsTimeout=5000",
    // `GIT_GRAFT_FILE` is always set; git would warn each time.
    "advice.graftFileDeprecated=false",
];

/// The variables that git inherits from Longhaul's environment; filters in a user's configuration
/// see no others. `HTTP_PROXY` is not among them: git's HTTP library reads it in lower case only.
const PASSED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
];

/// The absolute path of git. Spawning by path avoids copying this process's page tables, which a
/// `PATH` lookup in a changed environment needs.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&path).map(|dir| dir.join("git"));
        found
            .find(|file| {
                file.is_absolute() && file.is_file() && access(file, AccessFlags::X_OK).is_ok()
            })
            .unwrap_or_else(|| "git".into())
    })
}

/// The mark of the owner of the log, in the process that is it.
static OWNER: OnceLock<String> = OnceLock::new();

/// Marks the git processes of this process as those of the owner of a data directory: if it is
/// killed, the next owner ends them. Those that change the user's checkout come to their end.
pub fn belong_to(data_dir: &Path) {
    let _ = OWNER.set(owner_id(data_dir));
}

/// A git command to run.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    dir: PathBuf,
    settings: Vec<String>,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    input: Option<Vec<u8>>,
    /// The command finishes even when its caller is dropped.
    keeps_running: bool,
    /// The work tree of programs that the command reads.
    work_tree: Option<PathBuf>,
    pub(super) stuck_timeout: Duration,
}

/// The result of a git command.
#[derive(Debug)]
pub(super) struct Finished {
    status: ExitStatus,
    /// The whole of standard output.
    pub(super) stdout: Vec<u8>,
    stderr: String,
    shown: String,
    dir: PathBuf,
    work_tree: Option<PathBuf>,
    /// The absolute paths in its arguments and variables.
    named: Vec<PathBuf>,
}

impl Git {
    /// A command that runs in a directory.
    pub(crate) fn at(dir: impl AsRef<Path>) -> Self {
        let dir = dir.as_ref().to_owned();
        Self {
            dir,
            settings: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            input: None,
            keeps_running: false,
            work_tree: None,
            stuck_timeout: STUCK_TIMEOUT,
        }
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Adds a setting for this command only: `user.name=Longhaul`.
    pub(super) fn setting(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    pub(super) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name, value.as_ref().to_owned()));
        self
    }

    pub(super) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Lets the command finish when its caller is dropped: for short commands that lock the whole
    /// repository: a killed git would leave the locks to the user.
    pub(super) fn keep_running_on_drop(mut self) -> Self {
        self.keeps_running = true;
        self
    }

    /// Names the work tree of programs that the command reads: named pipes there that make it wait
    /// are removed.
    pub(super) fn reading(mut self, work_tree: &Path) -> Self {
        self.work_tree = Some(work_tree.to_owned());
        self
    }

    /// Runs the command and returns its result, whatever the exit code.
    pub(super) async fn finish(self) -> Result<Finished, Failure> {
        let shown = self.shown();
        let named = self.named();
        let mut child = self.command().spawn().map_err(|error| cannot_start(&error, &self.dir))?;
        let leader = child.id();
        let group = Group::new(leader, !self.keeps_running);
        let outcome = tokio::select! {
            outcome = exchange(&mut child, self.input) => outcome,
            () = until_stuck(leader.unwrap_or_default(), self.stuck_timeout) => {
                group.kill();
                let work_tree = self.work_tree.as_deref();
                return Err(stuck(&shown, &self.dir, work_tree, self.stuck_timeout));
            }
        };
        group.has_ended();
        let (status, stdout, stderr) = outcome.map_err(|error| {
            let message = format!("{shown}: cannot read from or write to git: {error}");
            machine::failure(&error, Operation::Files, &self.dir, message, Failure::retryable)
        })?;
        if stdout.len() as u64 > OUTPUT_LIMIT {
            return Err(Failure::terminal(format!(
                "{shown}: more than {OUTPUT_LIMIT} bytes of output"
            )));
        }
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let work_tree = self.work_tree;
        Ok(Finished { status, stdout, stderr, shown, dir: self.dir, work_tree, named })
    }

    /// Runs the command; any exit code but 0 is a failure.
    pub(super) async fn run(self) -> Result<Finished, Failure> {
        let finished = self.finish().await?;
        if finished.status.success() { Ok(finished) } else { Err(finished.repair()) }
    }

    /// Runs the command and returns its trimmed standard output.
    pub(crate) async fn text(self) -> Result<String, Failure> {
        Ok(self.run().await?.text())
    }

    /// Runs a yes-or-no query: exit code 0 is yes, 1 is no, anything else a failure.
    pub(super) async fn answer(self) -> Result<bool, Failure> {
        let finished = self.finish().await?;
        match finished.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(finished.repair()),
        }
    }

    /// Runs a lookup: exit code 1 means not found.
    pub(super) async fn find(self) -> Result<Option<String>, Failure> {
        let finished = self.finish().await?;
        match finished.status.code() {
            Some(0) => Ok(Some(finished.text())),
            Some(1) => Ok(None),
            _ => Err(finished.repair()),
        }
    }

    /// The process, not yet started. It is killed when its handle is dropped, unless
    /// [`Self::keep_running_on_drop`].
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.arg("-C").arg(&self.dir).arg("--no-pager");
        for setting in SETTINGS.iter().copied().chain(self.settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        command.args(&self.args);
        command
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_LITERAL_PATHSPECS", "1");
        // A replace ref would show other content under the name of a commit whose gates passed.
        command.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null");
        // For a missing object, git would run programs that the configuration of a remote names.
        command.env("GIT_NO_LAZY_FETCH", "1");
        command.env("LC_ALL", "C").envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(owner) = OWNER.get().filter(|_| !self.keeps_running) {
            command.env(OWNER_VARIABLE, owner);
        }
        let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(!self.keeps_running);
        command
    }

    /// The absolute paths among the arguments and variables.
    fn named(&self) -> Vec<PathBuf> {
        let given = self.args.iter().chain(self.env.iter().map(|(_, value)| value));
        given
            .map(PathBuf::from)
            .filter(|path| path.is_absolute() && path != Path::new("/dev/null"))
            .collect()
    }

    fn shown(&self) -> String {
        let args: Vec<_> =
            self.args.iter().take(SHOWN_ARGUMENTS).map(|arg| arg.to_string_lossy()).collect();
        let rest = if self.args.len() > SHOWN_ARGUMENTS { " …" } else { "" };
        format!("git {}{rest} in {}", args.join(" "), self.dir.display())
    }
}

impl Finished {
    /// The exit code; `None` if a signal ended the process.
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Standard output, trimmed.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim().to_owned()
    }

    /// Standard error, trimmed.
    pub(super) fn error_text(&self) -> &str {
        self.stderr.trim()
    }

    /// Whether it could not read a file or a directory; it may have left that out without a
    /// failure.
    pub(super) fn was_denied(&self) -> bool {
        self.stderr.contains(": Permission denied")
    }

    /// The failure for a command that ended with an unexpected exit code.
    pub(super) fn failure(&self) -> Failure {
        let message = self.message();
        if is_contention(&self.stderr) {
            return Failure::retryable(message);
        }
        match self.machine_cause() {
            Some(cause) => Failure::machine(format!("{cause}: {message}")),
            None => Failure::terminal(message),
        }
    }

    /// The failure, after the repair of a cause that can be repaired: then the next attempt
    /// succeeds.
    pub(super) fn repair(&self) -> Failure {
        match self.repair_access() {
            Some(repair) => Failure::retryable(format!("{}; {repair}", self.message())),
            None => self.failure(),
        }
    }

    fn message(&self) -> String {
        format!("{}: {}: {}", self.shown, self.status, excerpt(&self.stderr))
    }

    /// Gives the owner of a work tree the permissions back that a program took from its files, if
    /// that was the cause. Returns a description of the repair.
    fn repair_access(&self) -> Option<String> {
        let work_tree = self.work_tree.as_deref()?;
        let is_cause = self.was_denied() && !is_contention(&self.stderr) && give_access(work_tree);
        is_cause.then(|| format!("restored owner permissions of files in {}", work_tree.display()))
    }

    /// The machine's fault behind the failure, if there is one. Git does not always report a full
    /// disk.
    pub(super) fn machine_cause(&self) -> Option<String> {
        let mut places = vec![self.dir.clone()];
        places.extend(
            GitDirectories::of(&self.dir).into_iter().flat_map(|place| [place.admin, place.common]),
        );
        places.extend(self.named.iter().cloned());
        let silent = || places.iter().find_map(|place| machine::full(place));
        let temporary = std::env::temp_dir();
        let mut candidates: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
        // Git rarely writes there: the directory counts only if it is full.
        candidates.extend(machine::full(&temporary).map(|_| temporary.as_path()));
        machine::cause_in_stderr(&self.stderr, &candidates)
            .or_else(silent)
            .or_else(|| self.unwritable_objects())
            .or_else(|| self.kill())
    }

    /// The kill of the process by the system: git itself ends in other ways.
    fn kill(&self) -> Option<String> {
        let is_killed = self.status.signal() == Some(Signal::SIGKILL as i32);
        is_killed.then(|| "git was killed, as by a system without free memory".to_owned())
    }

    /// The objects that another user owns, as after a command of the superuser in the repository.
    fn unwritable_objects(&self) -> Option<String> {
        let (_, objects) = self.stderr.split_once(OBJECTS_DENIED)?;
        let objects = objects.lines().next().unwrap_or_default().trim();
        Some(format!("no permission to write to {objects}"))
    }
}

/// Whether git failed because of a concurrent git process, so that a retry helps.
pub(super) fn is_contention(stderr: &str) -> bool {
    let locked =
        stderr.contains(".lock': File exists") || stderr.contains("could not lock config file");
    let moved = stderr.contains("cannot lock ref") && !stderr.contains("cannot create");
    // The file was replaced between git's unlink and its write: Longhaul writes its own files at
    // any time.
    let raced = stderr.contains("unable to create file") && stderr.contains(": File exists");
    locked || moved || raced
}

/// The first line, usually the cause, and the last lines; hints only if there is nothing else.
fn excerpt(stderr: &str) -> String {
    let mut lines: Vec<&str> = stderr.trim().lines().collect();
    if lines.iter().any(|line| !is_hint(line)) {
        lines.retain(|line| !is_hint(line));
    }
    if lines.len() > ERROR_LINES {
        lines.splice(1..=lines.len() - ERROR_LINES, ["..."]);
    }
    lines.join("\n")
}

fn is_hint(line: &str) -> bool {
    line.starts_with("hint:")
}

fn cannot_start(error: &std::io::Error, dir: &Path) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Failure::terminal("git was not found on PATH; install git 2.38 or later");
    }
    machine::failure(
        error,
        Operation::Fork,
        dir,
        format!("git cannot be started in {}: {error}", dir.display()),
        Failure::retryable,
    )
}

async fn exchange(
    child: &mut Child,
    input: Option<Vec<u8>>,
) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let write = async {
        if let (Some(mut pipe), Some(bytes)) = (stdin, input) {
            // A git that exits early closes the pipe; its exit code tells why.
            let _ = pipe.write_all(&bytes).await;
        }
    };
    let read = async {
        let mut bytes = Vec::new();
        if let Some(pipe) = stdout {
            pipe.take(OUTPUT_LIMIT + 1).read_to_end(&mut bytes).await?;
        }
        Ok::<_, std::io::Error>(bytes)
    };
    let errors = async {
        let mut bytes = Vec::new();
        if let Some(pipe) = stderr {
            let mut pipe = pipe.take(ERROR_LIMIT);
            pipe.read_to_end(&mut bytes).await?;
            tokio::io::copy(&mut pipe.into_inner(), &mut tokio::io::sink()).await?;
        }
        Ok::<_, std::io::Error>(bytes)
    };
    let ((), stdout, stderr) = tokio::join!(write, read, errors);
    let stdout = stdout?;
    let stderr = stderr?;
    Ok((child.wait().await?, stdout, stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_contention_is_worth_another_try() {
        for (stderr, expected) in [
            ("fatal: Unable to create '/r/.git/index.lock': File exists.", true),
            (
                "fatal: update_ref failed: cannot lock ref 'refs/heads/a': is at 1 but expected 2",
                true,
            ),
            (
                "fatal: cannot lock ref 'refs/heads/longhaul/a': 'refs/heads/longhaul' exists; \
                 cannot create",
                false,
            ),
            ("error: unable to create file feature_list.json: File exists", true),
            ("error: unable to create file a/b: No space left on device", false),
            ("fatal: not a valid object name", false),
        ] {
            assert_eq!(is_contention(stderr), expected, "{stderr}");
        }
    }

    #[test]
    fn a_hint_does_not_hide_the_cause() {
        assert_eq!(excerpt("hint: a\nhint:\nfatal: cause\nhint: b\n"), "fatal: cause");
        assert_eq!(excerpt("hint: a\n"), "hint: a");
    }

    #[test]
    fn of_a_long_complaint_the_ends_are_shown() {
        assert_eq!(excerpt("1\n2\n3\n"), "1\n2\n3");
        assert_eq!(excerpt("1\n2\n3\n4\n5\n6\n7\n8"), "1\n...\n4\n5\n6\n7\n8");
    }

    #[tokio::test]
    async fn a_killed_git_is_a_failure_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::at(dir.path()).setting("alias.die=!kill -9 $PPID");
        let failure = git.arg("die").run().await.unwrap_err();
        assert_eq!(failure.kind, longhaul_engine::FailureKind::Machine, "{failure}");
    }

    #[tokio::test]
    async fn a_failure_says_the_command_the_place_and_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let failure = Git::at(dir.path()).args(["rev-parse", "HEAD"]).text().await.unwrap_err();
        let place = format!("git rev-parse HEAD in {}", dir.path().display());
        assert!(failure.message.starts_with(&place), "{failure}");
        assert!(
            failure.message.contains("exit status: 128: fatal: not a git repository"),
            "{failure}"
        );
        let many = Git::at(dir.path()).args(["rev-parse"; SHOWN_ARGUMENTS]).arg("hidden");
        assert!(many.shown().contains("rev-parse … in "), "{}", many.shown());
    }

    #[tokio::test]
    async fn the_full_disk_is_the_one_that_is_named_not_that_of_the_work_tree() {
        use std::io::Write as _;
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let small = dir.path().join("small");
        std::fs::create_dir(&tree).unwrap();
        std::fs::create_dir(&small).unwrap();
        Git::at(&tree).args(["init", "--quiet"]).run().await.unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];
        let mounted = std::process::Command::new("mount").args(mount).arg(&small).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            eprintln!("skipped: a file system can be mounted by the superuser only");
            return;
        }
        let mut filler = std::fs::File::create(small.join("filler")).unwrap();
        while filler.write_all(&[1; 1 << 12]).is_ok() {}
        let hash = Git::at(&tree)
            .args(["hash-object", "-w", "--stdin"])
            .env("GIT_OBJECT_DIRECTORY", &small);
        let outcome = hash.input([1; 1 << 12]).run().await;
        let unmounted = std::process::Command::new("umount").arg("--lazy").arg(&small).status();
        assert!(unmounted.unwrap().success());
        let failure = outcome.unwrap_err();
        assert!(
            failure.message.starts_with(&format!("disk full on {}: ", small.display())),
            "{failure}"
        );
    }
}
