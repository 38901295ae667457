//! A directory in which tests run programs, and helpers to wait for events.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use longhaul_activities::git::GitHandlers;
use longhaul_activities::process::{Environment, Finished, Limits, Runner, Spec, Supervisor};
use longhaul_engine::{Attempt, Failure, Handler, RunId, Slot};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{OpenInput, OpenWorktree, ProjectRef};
use nix::sys::signal;
use nix::unistd::Pid;
use tempfile::TempDir;

/// A directory with a data directory, the user's checkout and a work tree in it.
pub(crate) struct World {
    folder: TempDir,
    git: GitHandlers,
    /// The path of the work tree; `work` in a path stands for it.
    work: &'static str,
}

impl World {
    pub(crate) fn new() -> Self {
        // Not in /dev/shm: programs in a sandbox may write there only where nothing is protected.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let git = GitHandlers::new(folder.path().join("data"));
        let world = Self { folder, git, work: "work" };
        for folder in ["data", "root", "work", "out"] {
            std::fs::create_dir_all(world.path(folder)).unwrap();
        }
        world
    }

    /// A world whose checkout is a repository with one commit of one file, which ignores `build`,
    /// and whose work tree is open for the feature `login`.
    pub(crate) async fn with_git() -> Self {
        let world = Self { work: "data/worktrees/shop/login", ..Self::new() };
        let root = world.path("root");
        git_in(&root, &["init", "--quiet", "--initial-branch", "main"]);
        world.write("root/code.txt", "good\n");
        world.write("root/.gitignore", "build\n");
        world.write("root/longhaul.toml", "[project]\n");
        git_in(&root, &["add", "--all"]);
        git_in(&root, &["commit", "--quiet", "--message", "a commit"]);
        world.open().await;
        world
    }

    /// Opens the work tree, and adopts its commits.
    pub(crate) async fn open(&self) {
        let input = OpenInput {
            project: self.project(),
            target: "main".into(),
            feature: login(),
            called_done: false,
            may_have_landed: false,
        };
        Handler::<OpenWorktree>::perform(&self.git, input, &attempt("shop/login", 0))
            .await
            .unwrap();
    }

    pub(crate) fn project(&self) -> ProjectRef {
        ProjectRef { id: "shop".into(), root: self.text_path("root") }
    }

    /// The same handlers each time: those of another process would not trust the work tree.
    pub(crate) fn handlers(&self) -> GitHandlers {
        self.git.clone()
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        let inside = inside
            .strip_prefix("work")
            .map_or(inside.to_owned(), |rest| format!("{}{rest}", self.work));
        self.folder.path().canonicalize().unwrap().join(inside)
    }

    pub(crate) fn text_path(&self, inside: &str) -> String {
        self.path(inside).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, inside: &str, content: &str) {
        std::fs::write(self.path(inside), content).unwrap();
    }

    pub(crate) fn script(&self, inside: &str, content: &str) {
        self.write(inside, content);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path(inside), mode).unwrap();
    }

    pub(crate) fn read(&self, inside: &str) -> String {
        std::fs::read_to_string(self.path(inside)).unwrap_or_default()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.path("work"), args)
    }

    /// Commits everything in the work tree, as an agent would.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a commit"]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn runner(&self) -> Runner {
        Runner::new(self.path("data"), supervisor())
    }

    pub(crate) fn spec(&self, script: &str) -> Spec {
        Spec {
            name: "script".into(),
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            directory: self.path("work"),
            env: Environment::chosen(&[]),
            input: None,
            sandbox: None,
            limits: Limits::default(),
            remedy: "Install it.",
        }
    }

    pub(crate) async fn run(&self, spec: &Spec) -> Result<Finished, Failure> {
        self.runner().run(spec, &attempt("run", 0)).await
    }

    /// The pids that a script wrote into a file, one per line, once there are `count`.
    pub(crate) fn pids(&self, count: usize) -> Option<Vec<i32>> {
        self.pids_in("work/pids", count)
    }

    pub(crate) fn pids_in(&self, file: &str, count: usize) -> Option<Vec<i32>> {
        let text = self.read(file);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let pids: Vec<_> = whole.lines().filter_map(|line| line.trim().parse().ok()).collect();
        (pids.len() >= count).then_some(pids)
    }
}

pub(crate) fn git_in(dir: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
    let output = Command::new("git").arg("-C").arg(dir).args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn login() -> FeatureId {
    FeatureId::new("login").unwrap()
}

pub(crate) fn supervisor() -> Supervisor {
    let program = helper();
    Supervisor {
        program,
        args: vec!["supervise-process".into()],
        grace: Duration::from_millis(500),
    }
}

/// The example `supervise`, which is built together with the tests.
pub(crate) fn helper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap_or(Path::new("."));
    let helper = folder.join("examples").join("supervise");
    assert!(
        helper.exists(),
        "{} is missing: run `cargo build --example supervise` first",
        helper.display()
    );
    helper
}

pub(crate) fn attempt(run: &str, command: u32) -> Attempt {
    Attempt::detached(RunId::new(run).unwrap(), Slot::only(command))
}

pub(crate) fn is_alive(pid: i32) -> bool {
    signal::kill(Pid::from_raw(pid), None).is_ok()
}

const PATIENCE: Duration = Duration::from_mins(5);

/// Polls until there is a value.
pub(crate) async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        let waited = begun.elapsed();
        if let Some(found) = look() {
            return found;
        }
        assert!(waited < PATIENCE, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn wait_until_gone(pids: &[i32]) {
    wait_for("processes to be gone", || pids.iter().all(|pid| !is_alive(*pid)).then_some(())).await;
}
