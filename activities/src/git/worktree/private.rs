//! The private repository of a work tree: the git that agents and checks see.
//!
//! It borrows objects from the project's repository; its refs, configuration, hooks and index are
//! its own, so programs here cannot change another repository. Longhaul fetches commits out of it,
//! and rewrites it before each use.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::tree::Tree;
use crate::git::command::Git;
use crate::git::files;
use crate::git::names::{branch_ref, fetched_refs, is_object_name};
use crate::git::objects::refs::Repository;
use crate::longhaul_toml::settings;

/// The marker that tells a private repository from one that a program made in its place.
const OURS: &str = "longhaul";

/// The HEAD that a work tree gets.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) enum NewHead<'a> {
    /// A branch of the private repository, at the commit.
    Branch {
        name: &'a str,
        /// The target branch, updated to its current commit; `None`: it stays.
        target: Option<&'a str>,
    },
    /// A detached HEAD.
    Commit,
}

impl<'a> NewHead<'a> {
    /// A branch, with the target updated.
    pub(in crate::git) fn on(name: &'a str, target: &'a str) -> Self {
        Self::Branch { name, target: Some(target) }
    }

    /// A branch, with the target unchanged.
    pub(in crate::git) fn alone(name: &'a str) -> Self {
        Self::Branch { name, target: None }
    }
}

/// The HEAD that a program left. The commit is in the project's objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::git) struct Head {
    /// The branch, as a full ref name; `None` for a detached HEAD.
    pub(in crate::git) on: Option<String>,
    /// `None`: there is none, or it could not be fetched.
    pub(in crate::git) commit: Option<String>,
}

impl Tree {
    pub(in crate::git) fn private_dir(&self) -> PathBuf {
        self.path.join(".git")
    }

    /// The commits of an unfinished merge in the private repository.
    pub(in crate::git) fn merging(&self) -> Result<Vec<String>, Failure> {
        let text = files::read(&self.private_dir().join("MERGE_HEAD"))?.unwrap_or_default();
        Ok(files::shown(&text)
            .lines()
            .map(str::trim)
            .filter(|line| is_object_name(line))
            .map(str::to_owned)
            .collect())
    }

    /// Whether a merge, rebase or the like is unfinished in the private repository.
    pub(in crate::git) fn has_unfinished(&self) -> bool {
        crate::git::repository::operation_in(&self.private_dir()).is_some()
    }

    /// HEAD of the private repository; its commit may not be fetched yet. Usually reads files only.
    async fn private_head(&self) -> Result<Head, Failure> {
        let Some(head) =
            self.private_dir_if_there().map_or(Ok(None), |dir| read_ref(&dir.join("HEAD")))?
        else {
            return Ok(Head::default());
        };
        let Some(on) = head.strip_prefix("ref: ").map(str::trim) else {
            return Ok(Head {
                on: None,
                commit: Some(head).filter(|commit| is_object_name(commit)),
            });
        };
        let commit = self.private_ref(on).await?;
        Ok(Head { on: Some(on.to_owned()), commit })
    }

    /// The commit of a ref in the private repository.
    async fn private_ref(&self, name: &str) -> Result<Option<String>, Failure> {
        let Some(dir) = self.private_dir_if_there() else { return Ok(None) };
        let is_plain = name.starts_with("refs/") && !name.contains("..");
        match read_ref(&dir.join(name)) {
            Ok(Some(commit)) if is_plain && is_object_name(&commit) => Ok(Some(commit)),
            _ => {
                // Not `^{commit}`: git would look for the object, and could fetch a missing one
                // from a remote of the agent's.
                let git = Git::at(&self.path).reading(&self.path).env("GIT_DIR", &dir);
                let answer = git.args(["rev-parse", "--verify", "--quiet", name]).finish().await?;
                Ok((answer.code() == Some(0)).then(|| answer.text()))
            }
        }
    }

    fn private_dir_if_there(&self) -> Option<PathBuf> {
        let dir = self.private_dir();
        (dir.is_dir() && !dir.is_symlink()).then_some(dir)
    }
}

/// The content of a ref file. A power cut leaves files that are empty, or full of zeros.
fn read_ref(file: &Path) -> Result<Option<String>, Failure> {
    let is_file = std::fs::symlink_metadata(file)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() < 4096);
    let bytes = if is_file { files::read(file)? } else { None };
    Ok(bytes
        .map(|bytes| files::shown(bytes.trim_ascii()))
        .filter(|text| !text.is_empty() && !text.contains(char::is_control)))
}

impl Repository {
    /// HEAD as a program left it; its commits are fetched.
    pub(in crate::git) async fn head_of(&self, tree: &Tree) -> Result<Head, Failure> {
        let head = tree.private_head().await?;
        let commit = match &head.commit {
            Some(commit) => self.fetched(tree, "HEAD", commit).await?,
            None => None,
        };
        Ok(Head { commit, ..head })
    }

    /// The commit to which a program moved a branch; its commits are fetched. `None`: the branch
    /// did not move. It may then lag the project's branch after a crash.
    pub(in crate::git) async fn private_branch(
        &self,
        tree: &Tree,
        branch: &str,
    ) -> Result<Option<String>, Failure> {
        let name = branch_ref(branch);
        let known = tree.branch_at()?;
        match tree.private_ref(&name).await? {
            Some(commit) if known.as_ref() != Some(&commit) => {
                self.fetched(tree, &name, &commit).await
            }
            _ => Ok(None),
        }
    }

    /// Fetches a commit of a private repository into the project's objects; its history has an
    /// ancestor in common with the project's. An unreadable one is reported and skipped: after a
    /// power cut, the private repository may be damaged.
    async fn fetched(
        &self,
        tree: &Tree,
        name: &str,
        commit: &str,
    ) -> Result<Option<String>, Failure> {
        if tree.branch_at()?.as_deref() == Some(commit) {
            // Longhaul set the branch itself.
            return Ok(Some(commit.to_owned()));
        }
        if self.commit_of(commit).await?.is_some() {
            return self.with_history(tree, commit).await.map(Some);
        }
        let fetched = fetched_refs(&tree.name());
        let fetched = if name == "HEAD" { fetched.head } else { fetched.branch };
        let args = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--recurse-submodules=no",
            "--force",
        ];
        let git = self.git().reading(&tree.path).setting("protocol.file.allow=always");
        let git = git.args(args).arg(tree.private_dir());
        let finished = git.arg(format!("+{name}:{fetched}")).finish().await?;
        if finished.code() != Some(0) {
            tracing::warn!(
                tree = %tree.path.display(),
                "commits cannot be fetched: {}",
                finished.error_text(),
            );
            return Ok(None);
        }
        // The ref may have moved since it was read.
        match self.commit_of(&fetched).await? {
            Some(commit) => self.with_history(tree, &commit).await.map(Some),
            None => Ok(None),
        }
    }

    /// Brings a tree to a commit with a matching private repository; recreates the tree if it is
    /// missing or suspect. The caller has kept uncommitted files.
    pub(in crate::git) async fn ready(
        &self,
        tree: &Tree,
        new_head: NewHead<'_>,
        commit: &str,
    ) -> Result<(), Failure> {
        let is_new = tree.make_usable()?;
        let clean = match new_head {
            _ if is_new => Vec::new(),
            NewHead::Branch { .. } => vec!["-fd".to_owned()],
            // `-ff` where no agent works: it removes nested repositories that a check made.
            NewHead::Commit if tree.is_set_up(Some(commit))? => vec!["-ffd".to_owned()],
            // The build output of other checks must not make these pass.
            NewHead::Commit => {
                tree.forget_set_up()?;
                let kept = settings(&self.root).map(|settings| settings.project.keep_ignored);
                let kept = kept.unwrap_or_default().into_iter();
                let kept = kept.map(|pattern| format!("--exclude={pattern}"));
                ["-ffdx".to_owned()].into_iter().chain(kept).collect()
            }
        };
        tree.reset_to(commit, &clean).await?;
        self.write_private(tree, new_head, commit).await
    }

    /// Writes the files of a private repository, except its objects and the branches of its own.
    pub(in crate::git) async fn write_private(
        &self,
        tree: &Tree,
        new_head: NewHead<'_>,
        commit: &str,
    ) -> Result<(), Failure> {
        let dir = tree.private_dir();
        let is_ours = dir.is_dir() && !dir.is_symlink() && dir.join(OURS).is_file();
        if !is_ours && files::is_there(&dir) {
            self.set_aside(&dir)?;
        }
        for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
            own_directory(&dir, directory)?;
        }
        forget_unfinished(&dir)?;
        if !is_ours {
            files::write(&dir.join("packed-refs"), &self.tags().await?)?;
        }
        files::write(&dir.join("config"), self.private_config().as_bytes())?;
        self.borrow_objects(tree)?;
        copy_if_there(self.plumbing.shallow(), &dir.join("shallow"))?;
        copy_if_there(&self.plumbing.excluded(), &dir.join("info/exclude"))?;
        files::copy_with_time(&tree.index(), &dir.join("index"))?;
        let line = format!("{commit}\n");
        if let NewHead::Branch { target: Some(target), .. } = new_head
            && let Some(tip) = self.commit_of(&branch_ref(target)).await?
        {
            write_ref(&dir.join(branch_ref(target)), &format!("{tip}\n"))?;
        }
        match new_head {
            NewHead::Branch { name, .. } => {
                write_ref(&dir.join(branch_ref(name)), &line)?;
                // After the ref: a crash in between leaves a ref that looks moved, to the commit of
                // the project's branch.
                tree.set_branch_at(commit)?;
                files::write(&dir.join("HEAD"), format!("ref: {}\n", branch_ref(name)).as_bytes())?;
            }
            NewHead::Commit => files::write(&dir.join("HEAD"), line.as_bytes())?,
        }
        files::write(
            &dir.join(OURS),
            b"The private repository of a work tree. Longhaul writes it anew before each use.\n",
        )
    }

    /// Points the private repository's alternates at the project's objects.
    pub(in crate::git) fn borrow_objects(&self, tree: &Tree) -> Result<(), Failure> {
        let info = tree.private_dir().join("objects/info");
        if !info.is_dir() {
            return Ok(());
        }
        let mut line = self.plumbing.objects().as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        files::write(&info.join("alternates"), &line)
    }

    /// The configuration. It has the remotes, so that submodules with relative addresses resolve,
    /// and the user as author.
    fn private_config(&self) -> String {
        let (name, email) = self.plumbing.author();
        let mut text = self.plumbing.format_lines().to_owned();
        text.push_str(
            "[core]\n\tbare = false\n\tlogallrefupdates = true\n\tfsync = committed,reference\n",
        );
        text.push_str(&format!("[user]\n\tname = {}\n\temail = {}\n", quoted(name), quoted(email)));
        for (remote, url) in self.plumbing.remotes() {
            text.push_str(&format!("[remote {}]\n\turl = {}\n", quoted(remote), quoted(url)));
            if self.plumbing.promisors().contains(remote) {
                // The files of older commits may be missing.
                text.push_str("\tpromisor = true\n\tpartialclonefilter = blob:none\n");
            }
        }
        text
    }

    /// Moves away anything that is not a private repository of Longhaul's.
    fn set_aside(&self, dir: &Path) -> Result<(), Failure> {
        if !dir.is_dir() || dir.is_symlink() {
            return files::remove(dir);
        }
        let kept = files::first_free(|number| self.saved.join(format!("repository-{number}")));
        std::fs::create_dir_all(&self.saved)
            .and_then(|()| std::fs::rename(dir, &kept))
            .map_err(|error| files::failed("set aside", dir, &error))?;
        tracing::warn!(
            dir = %dir.display(),
            kept = %kept.display(),
            "set aside a repository made inside of a work tree",
        );
        Ok(())
    }
}

/// Removes locks and the state of an unfinished merge, rebase or the like.
fn forget_unfinished(dir: &Path) -> Result<(), Failure> {
    const MARKS: [&str; 18] = [
        "MERGE_HEAD",
        "MERGE_MODE",
        "MERGE_MSG",
        "MERGE_AUTOSTASH",
        "AUTO_MERGE",
        "SQUASH_MSG",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "REBASE_HEAD",
        "sequencer",
        "rebase-merge",
        "rebase-apply",
        "BISECT_LOG",
        "BISECT_START",
        "info/attributes",
        "info/grafts",
        "info/sparse-checkout",
        "commondir",
    ];
    MARKS.iter().try_for_each(|mark| files::remove(&dir.join(mark)))?;
    crate::git::locks::names_in(dir).try_for_each(|lock| files::remove(&lock))
}

/// Makes a directory below another. Something else in its place, as a link that a program made, is
/// removed.
fn own_directory(top: &Path, below: &str) -> Result<(), Failure> {
    let mut path = top.to_owned();
    for part in Path::new(below) {
        path.push(part);
        if path.is_symlink() || !path.is_dir() {
            files::remove(&path)?;
        }
    }
    std::fs::create_dir_all(&path)
        .map_err(|error| files::failed("make the directory", &path, &error))
}

fn write_ref(file: &Path, line: &str) -> Result<(), Failure> {
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    files::remove(Path::new(&lock))?;
    if file.is_dir() {
        // An agent's branches nested under the feature branch's name.
        files::remove(file)?;
    }
    for parent in file.ancestors().skip(1).take_while(|parent| !parent.ends_with("refs")) {
        if parent.is_symlink() || (files::is_there(parent) && !parent.is_dir()) {
            files::remove(parent)?;
        }
    }
    files::write(file, line.as_bytes())
}

fn copy_if_there(from: &Path, to: &Path) -> Result<(), Failure> {
    match files::read(from)? {
        Some(bytes) => files::write(to, &bytes),
        None => files::remove(to),
    }
}

/// A quoted value of a git configuration file.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
