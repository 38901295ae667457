//! A repository with a feature list, and the handlers over it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use longhaul_activities::checks::ChecksHandler;
use longhaul_activities::git::GitHandlers;
use longhaul_activities::process::Supervisor;
use longhaul_engine::{
    Activity, Attempt, Failure, FailureKind, Handler, Payload, Probe, RunId, Slot,
};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{
    CloseInput, CloseWorktree, Follow, FollowInput, Land, LandInput, Landed, MergeCandidate,
    MergeInput, MergeStyle, Merged, OpenInput, OpenWorktree, PassMark, ProjectRef, RefreshInput,
    RefreshWorktree, Refreshed, RunSetup, Seal, SealInput, SealStep, Sealed, SetupInput, StepTree,
    Worktree,
};
use longhaul_workflows::settings::Confinement;
use tempfile::TempDir;

pub(crate) const LIST: &str = r#"{
  "project_name": "shop",
  "features": [
    {
      "id": "login",
      "name": "Login",
      "status": "pending",
      "passes": false
    },
    {
      "id": "cart",
      "name": "Cart",
      "status": "pending",
      "passes": false
    }
  ]
}
"#;

/// A user's repository on `main`, and a data directory.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) git: GitHandlers,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::named("my shöp")
    }

    pub(crate) fn named(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(name);
        std::fs::create_dir(&root).unwrap();
        let git = GitHandlers::new(dir.path().join("data dir"));
        let world = Self { dir, root, git };
        world.run(&["init", "--quiet", "--initial-branch=main"]);
        world.run(&["config", "user.name", "Ada"]);
        world.run(&["config", "user.email", "ada@example.org"]);
        for (file, text) in [
            ("feature_list.json", LIST),
            ("longhaul.toml", "[project]\n"),
            ("acceptance/login.sh", "exit 0\n"),
            ("src/a file.txt", "one\n"),
            (".gitignore", "build/\n*.cache\n"),
        ] {
            world.write(file, text);
        }
        world.commit("Begin");
        world
    }

    /// Simulates the death of the process and a new one.
    pub(crate) fn restart(&mut self) {
        self.git = GitHandlers::new(self.dir.path().join("data dir"));
    }

    /// The canonical path of the data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("data dir")
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        write(&self.root, file, text);
    }

    pub(crate) fn read(&self, file: &str) -> String {
        read(&self.root, file)
    }

    /// Runs git in the user's checkout.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        run(&self.root, args)
    }

    pub(crate) fn commit(&self, subject: &str) -> String {
        commit(&self.root, subject)
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.run(&["rev-parse", name])
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.root)
            .args(["rev-parse", "--verify", "-q", name])
            .output();
        output.unwrap().status.success()
    }

    pub(crate) fn project(&self) -> ProjectRef {
        ProjectRef { id: "shop-1a2b3c".into(), root: self.root.to_str().unwrap().into() }
    }

    pub(crate) async fn open(&self, feature: &str) -> Worktree {
        self.open_in(feature, 1).await
    }

    /// The same in another call of the run.
    pub(crate) async fn open_in(&self, feature: &str, command: u32) -> Worktree {
        self.try_open(feature, command).await.unwrap()
    }

    pub(crate) async fn try_open(&self, feature: &str, command: u32) -> Result<Worktree, Failure> {
        let input = self.open_input(feature);
        perform::<OpenWorktree>(&self.git, input, &attempt(feature, command)).await
    }

    /// The same, for work that an agent may have called done.
    pub(crate) async fn open_as(&self, feature: &str, command: u32, called_done: bool) -> Worktree {
        let input = OpenInput { called_done, ..self.open_input(feature) };
        perform::<OpenWorktree>(&self.git, input, &attempt(feature, command)).await.unwrap()
    }

    fn open_input(&self, feature: &str) -> OpenInput {
        OpenInput {
            project: self.project(),
            target: "main".into(),
            feature: id(feature),
            called_done: false,
            may_have_landed: false,
        }
    }

    pub(crate) fn tree(&self, feature: &str) -> PathBuf {
        self.data().join("worktrees/shop-1a2b3c").join(feature)
    }

    pub(crate) async fn seal(&self, feature: &str) -> Sealed {
        self.seal_in(feature, 2).await
    }

    pub(crate) async fn seal_in(&self, feature: &str, command: u32) -> Sealed {
        self.try_seal(feature, command).await.unwrap()
    }

    pub(crate) async fn try_seal(&self, feature: &str, command: u32) -> Result<Sealed, Failure> {
        let input = SealInput {
            project: self.project(),
            target: "main".into(),
            feature: id(feature),
            protected: ["feature_list.json", "longhaul.toml", "acceptance/**"]
                .map(str::to_owned)
                .to_vec(),
            list_file: "feature_list.json".into(),
            step: SealStep::Found,
        };
        perform::<Seal>(&self.git, input, &attempt(feature, command)).await
    }

    pub(crate) async fn merge(&self, feature: &str, commit: &str, style: MergeStyle) -> Merged {
        self.merge_marking(feature, commit, style, PassMark::Own).await
    }

    pub(crate) async fn merge_marking(
        &self,
        feature: &str,
        commit: &str,
        style: MergeStyle,
        mark: PassMark,
    ) -> Merged {
        let input = MergeInput {
            mark,
            project: self.project(),
            target: "main".into(),
            feature: id(feature),
            commit: commit.into(),
            style,
            protected: ["feature_list.json", "longhaul.toml", "acceptance/**"]
                .map(str::to_owned)
                .to_vec(),
            list_file: "feature_list.json".into(),
            subject: format!("Add {feature}"),
            body: "It works.".into(),
            at: "2026-02-03T04:05:06.789Z".into(),
            tree: 0,
        };
        perform::<MergeCandidate>(&self.git, input, &attempt(feature, 3)).await.unwrap()
    }

    /// The integration tree, reset to a candidate as for its gates. There is no set-up script.
    pub(crate) async fn integrated(&self, merged: &Merged) -> PathBuf {
        self.try_integrated(merged).await.unwrap()
    }

    pub(crate) async fn try_integrated(&self, merged: &Merged) -> Result<PathBuf, Failure> {
        let Merged::Candidate { commit, .. } = merged else { panic!("{merged:?}") };
        let input = SetupInput {
            project: self.project(),
            feature: id("login"),
            tree: StepTree::Integration(0),
            commit: Some(commit.clone()),
            script: "none.sh".into(),
            timeout_seconds: 60,
            pass_env: Vec::new(),
            confinement: Confinement::default(),
        };
        let supervisor =
            Supervisor { program: "none".into(), args: Vec::new(), grace: Duration::ZERO };
        let handler =
            ChecksHandler::new(self.dir.path().join("data dir"), supervisor, self.git.clone());
        Handler::<RunSetup>::perform(&handler, input, &attempt("login", 4)).await?;
        Ok(self.tree(".integrate"))
    }

    pub(crate) fn land_input(&self, tip: &str, commit: &str) -> LandInput {
        LandInput {
            project: self.project(),
            target: "main".into(),
            tip: tip.into(),
            commit: commit.into(),
            list_file: "feature_list.json".into(),
            feature: id("login"),
            version: None,
        }
    }

    pub(crate) async fn land(&self, (tip, commit): (&str, &str)) -> Result<Landed, Failure> {
        perform::<Land>(&self.git, self.land_input(tip, commit), &attempt("project", 4)).await
    }

    pub(crate) async fn probe(&self, (tip, commit): (&str, &str)) -> Probe<Landed> {
        Handler::<Land>::probe(&self.git, self.land_input(tip, commit), &attempt("project", 4))
            .await
    }

    pub(crate) async fn follow(&self) -> Landed {
        let list_file = "feature_list.json".into();
        let input = FollowInput { project: self.project(), target: "main".into(), list_file };
        perform::<Follow>(&self.git, input, &attempt("project", 5)).await.unwrap()
    }

    pub(crate) async fn refresh(&self, feature: &str, command: u32) -> Refreshed {
        let input = RefreshInput {
            project: self.project(),
            target: "main".into(),
            feature: id(feature),
            list_file: "feature_list.json".into(),
            version: String::new(),
        };
        perform::<RefreshWorktree>(&self.git, input, &attempt(feature, command)).await.unwrap()
    }

    pub(crate) async fn close(&self, feature: &str) {
        let input = CloseInput { project: self.project(), feature: id(feature) };
        perform::<CloseWorktree>(&self.git, input, &attempt(feature, 6)).await.unwrap();
    }

    /// A feature's work, ready to land: the tip and the candidate.
    pub(crate) async fn candidate(
        &self,
        feature: &str,
        file: &str,
        text: &str,
    ) -> (String, String) {
        self.open(feature).await;
        write(&self.tree(feature), file, text);
        let sealed = self.seal(feature).await;
        match self.merge(feature, &sealed.commit, MergeStyle::Squash).await {
            Merged::Candidate { commit, tip, .. } => (tip, commit),
            Merged::Conflict { files, output, .. } => panic!("conflict in {files:?}: {output}"),
        }
    }
}

/// Performs a call as the engine does: a retryable failure, such as a ref that a git of an earlier
/// attempt holds, is tried again.
pub(crate) async fn perform<A: Activity>(
    git: &GitHandlers,
    input: A::Input,
    attempt: &Attempt,
) -> Result<A::Output, Failure>
where
    GitHandlers: Handler<A>,
{
    let input = Payload::of(&input);
    for _ in 0..3 {
        match Handler::<A>::perform(git, input.read().unwrap(), attempt).await {
            Err(failure) if failure.kind == FailureKind::Retryable => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            result => return result,
        }
    }
    Handler::<A>::perform(git, input.read().unwrap(), attempt).await
}

pub(crate) fn id(feature: &str) -> FeatureId {
    FeatureId::new(feature).unwrap()
}

pub(crate) fn attempt(feature: &str, command: u32) -> Attempt {
    Attempt::detached(RunId::new(format!("shop-1a2b3c/{feature}")).unwrap(), Slot::only(command))
}

pub(crate) fn rescue(feature: &str, command: u32) -> String {
    format!("refs/longhaul/rescue/shop-1a2b3c/{feature}/{command}.0")
}

pub(crate) fn write(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub(crate) fn read(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap()
}

pub(crate) fn run(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?} in {}: {said}", dir.display());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// As [`run`], but git may fail: a merge with a conflict.
pub(crate) fn run_failing(dir: &Path, args: &[&str]) {
    let output = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    assert!(!output.status.success(), "git {args:?} did not fail");
}

pub(crate) fn commit(dir: &Path, subject: &str) -> String {
    run(dir, &["add", "--all"]);
    run(dir, &["commit", "--quiet", "-m", subject]);
    run(dir, &["rev-parse", "HEAD"])
}

/// The `git status` of a checkout: empty if it is clean.
pub(crate) fn status(dir: &Path) -> String {
    run(dir, &["status", "--porcelain"])
}
