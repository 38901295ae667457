//! Longhaul's work trees: their files, and Longhaul's records of them, which agents cannot write.
//!
//! Programs in a tree see a private repository in its `.git` ([`super::private`]). Longhaul itself
//! never reads that one for the content of the tree: it compares the files with its own index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_engine::Failure;
use longhaul_workflows::backlog::FeatureId;

use crate::files::give_reading;
use crate::git::command::Git;
use crate::git::files;
use crate::git::names::{OWN_DIR, is_object_name};
use crate::git::objects::plumbing::Plumbing;
use crate::git::objects::refs::Repository;

/// The process that uses the tree. A dead process's name means that the tree was in use when that
/// one died: after a power cut any file in it may be empty.
const IN_USE: &str = "in-use";
/// A reset began and did not end: no file in the tree is of value.
const RESETTING: &str = "resetting";
/// The commit of the last reset.
const AT: &str = "at";
/// The commit to which Longhaul last set the branch in the private repository.
const BRANCH: &str = "branch";
/// The commit of the target that the content is based on.
const BASE: &str = "base";
/// The commit to which a seal moves the branch.
const SEALED: &str = "sealed";
/// The commit at which the project's set-up last succeeded in the tree.
const SET_UP: &str = "set-up";
/// A session, and the commit of the target when it began.
const TARGET_SEEN: &str = "target-seen";
/// A set-up began and did not end.
const SETTING_UP: &str = "setting-up";

/// The content on which checks have passed in the tree; nothing has changed it since.
const CHECKED: &str = "checked";

/// A held-out check has run in the tree.
const HELD_OUT: &str = "held-out";

/// A work tree, existing or to be created.
#[derive(Debug, Clone)]
pub(in crate::git) struct Tree {
    /// Its directory.
    pub(in crate::git) path: PathBuf,
    /// Longhaul's records of it.
    records: PathBuf,
    pub(in crate::git) plumbing: Plumbing,
    process: Arc<str>,
}

/// Whether a tree is a safe base for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum Condition {
    /// It does not exist, or Longhaul has no records of it.
    Missing,
    /// It was in use when a process died: uncommitted files may be damaged.
    Suspect,
    Sound,
}

/// The target when a session began.
pub(in crate::git) struct TargetSeen {
    /// The key of the session.
    pub(in crate::git) session: String,
    /// The commit of the target.
    pub(in crate::git) commit: String,
}

impl Tree {
    /// A command on its files, with Longhaul's own index.
    pub(in crate::git) fn git(&self) -> Git {
        self.plumbing.git_in(&self.path, &self.index())
    }

    /// The path of an index that does not exist: all files count as they are, and none as deleted.
    pub(in crate::git) fn no_index(&self) -> PathBuf {
        self.index().with_extension("none")
    }

    /// Longhaul's own index of it.
    pub(in crate::git) fn index(&self) -> PathBuf {
        self.records.join("index")
    }

    /// Its name among the trees of the project.
    pub(in crate::git) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether its directory exists. A link that a program put there may lead anywhere.
    fn is_directory(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_dir())
    }

    pub(in crate::git) fn condition(&self) -> Result<Condition, Failure> {
        if !self.is_directory() || !self.records.is_dir() {
            return Ok(Condition::Missing);
        }
        let user = files::read(&self.records.join(IN_USE))?;
        let is_ours = user.is_none_or(|user| user == self.process.as_bytes());
        Ok(if is_ours { Condition::Sound } else { Condition::Suspect })
    }

    /// Whether this process uses the tree.
    pub(in crate::git) fn is_in_use(&self) -> Result<bool, Failure> {
        Ok(files::read(&self.records.join(IN_USE))?
            .is_some_and(|user| user == self.process.as_bytes()))
    }

    /// Whether the process that uses the tree, alive or dead, was started since the system booted.
    pub(in crate::git) fn was_used_since_boot(&self) -> Result<bool, Failure> {
        let boot = crate::process::boot();
        let user = files::read(&self.records.join(IN_USE))?.unwrap_or_default();
        Ok(!boot.is_empty() && user.starts_with(format!("{boot} ").as_bytes()))
    }

    /// Longhaul's records of it, which last as long as the tree does.
    pub(in crate::git) fn records(&self) -> &Path {
        &self.records
    }

    /// Records durably that this process uses the tree.
    pub(in crate::git) fn begin_use(&self) -> Result<(), Failure> {
        if self.is_in_use()? {
            return Ok(());
        }
        files::write_durably(&self.records.join(IN_USE), self.process.as_bytes())
    }

    /// Clears the record that this process uses the tree. Its files must be on stable storage.
    pub(in crate::git) fn end_use(&self) -> Result<(), Failure> {
        files::remove(&self.records.join(IN_USE))
    }

    /// The commit of the target when the last session began.
    pub(in crate::git) fn target_seen(&self) -> Result<Option<TargetSeen>, Failure> {
        let text = files::read(&self.records.join(TARGET_SEEN))?.map(|bytes| files::shown(&bytes));
        Ok(text.and_then(|text| {
            let (session, commit) = text.split_once(' ')?;
            Some(TargetSeen { session: session.to_owned(), commit: commit.to_owned() })
        }))
    }

    pub(in crate::git) fn set_target_seen(
        &self,
        session: &str,
        commit: &str,
    ) -> Result<(), Failure> {
        files::write(&self.records.join(TARGET_SEEN), format!("{session} {commit}").as_bytes())
    }

    /// Resets every file that is not ignored to a commit. Uncommitted files are lost; the caller
    /// has kept them.
    /// `clean`: the options with which `git clean` removes untracked files; none: there are no such
    /// files.
    pub(in crate::git) async fn reset_to(
        &self,
        commit: &str,
        clean: &[String],
    ) -> Result<(), Failure> {
        let mark = self.records.join(RESETTING);
        std::fs::write(&mark, b"").map_err(|error| files::failed("write", &mark, &error))?;
        self.forget_checked()?;
        files::remove(&self.records.join("index.lock"))?;
        let reset = ["read-tree", "--reset", "-u", commit];
        // Compares the content, so that unchanged files keep their times: build caches go by them.
        let finished = self.git().args(reset).finish().await?;
        if finished.code() != Some(0) {
            // A broken index must not fail the reset.
            files::remove(&self.index())?;
            self.git().args(reset).run().await?;
        }
        if !clean.is_empty() {
            self.git().args(["clean", "--quiet"]).args(clean).run().await?;
        }
        self.set_at(commit)?;
        files::remove(&self.records.join(RESETTING))
    }

    /// Whether the files that are not ignored are those of Longhaul's own index.
    pub(in crate::git) async fn is_as_indexed(&self) -> Result<bool, Failure> {
        self.lists_nothing(&["--modified", "--deleted", "--others", "--exclude-standard"]).await
    }

    /// Whether all files of Longhaul's own index are unchanged.
    pub(in crate::git) async fn has_tracked_files_as_indexed(&self) -> Result<bool, Failure> {
        self.lists_nothing(&["--modified", "--deleted"]).await
    }

    async fn lists_nothing(&self, options: &[&str]) -> Result<bool, Failure> {
        if !files::is_there(&self.index()) {
            return Ok(false);
        }
        let listed = self.git().args(["ls-files", "-z"]).args(options).finish().await?;
        Ok(listed.code() == Some(0) && listed.stdout.is_empty() && !listed.was_denied())
    }

    /// Lets Longhaul read the private repository and its own directory, and enter the tree,
    /// whatever rights a program left there.
    pub(in crate::git) fn let_read(&self) {
        let is_closed = self.is_directory() && std::fs::read_dir(&self.path).is_err();
        if is_closed {
            give_reading(&self.path);
        }
        for dir in [self.private_dir(), self.path.join(OWN_DIR)] {
            give_reading(&dir);
        }
    }

    /// Records the commit of the files and the index.
    pub(in crate::git) fn set_at(&self, commit: &str) -> Result<(), Failure> {
        files::write(&self.records.join(AT), commit.as_bytes())
    }

    /// The commit of the last reset.
    pub(in crate::git) fn at(&self) -> Result<Option<String>, Failure> {
        self.recorded(AT)
    }

    /// Records the commit to which Longhaul set the branch in the private repository.
    pub(in crate::git) fn set_branch_at(&self, commit: &str) -> Result<(), Failure> {
        files::write(&self.records.join(BRANCH), commit.as_bytes())
    }

    /// The commit to which Longhaul last set the branch in the private repository.
    pub(in crate::git) fn branch_at(&self) -> Result<Option<String>, Failure> {
        self.recorded(BRANCH)
    }

    /// Records the commit of the files before a seal moves the branch there: it may die in between.
    pub(in crate::git) fn set_sealed(&self, commit: &str) -> Result<(), Failure> {
        files::write(&self.records.join(SEALED), commit.as_bytes())
    }

    /// Whether Longhaul moved the branch to this commit with the files of the tree. Otherwise
    /// another program did, and the files are not based on it.
    pub(in crate::git) fn has_set_branch(&self, commit: &str) -> Result<bool, Failure> {
        let Some(at) = self.at()? else { return Ok(true) };
        let known = [Some(at), self.branch_at()?, self.recorded(SEALED)?];
        Ok(known.iter().flatten().any(|known| known == commit))
    }

    /// Records the commit of the target that the content is based on.
    pub(in crate::git) fn set_base(&self, commit: &str) -> Result<(), Failure> {
        files::write(&self.records.join(BASE), commit.as_bytes())
    }

    /// The commit of the target that the content is based on.
    pub(in crate::git) fn base(&self) -> Result<Option<String>, Failure> {
        self.recorded(BASE)
    }

    /// A recorded commit; `None` if a power cut emptied the record.
    fn recorded(&self, name: &str) -> Result<Option<String>, Failure> {
        let bytes = files::read(&self.records.join(name))?;
        Ok(bytes.map(|bytes| files::shown(&bytes)).filter(|commit| is_object_name(commit)))
    }

    /// Whether a reset was interrupted. The state before it was kept, and the current files have no
    /// value.
    pub(in crate::git) fn is_half_reset(&self) -> bool {
        self.records.join(RESETTING).exists()
    }

    /// Whether the project's set-up has succeeded in it; with a commit: since the tree was reset to
    /// it, and no check has begun since.
    pub(in crate::git) fn is_set_up(&self, commit: Option<&str>) -> Result<bool, Failure> {
        let at = files::read(&self.records.join(SET_UP))?;
        Ok(at.is_some_and(|at| commit.is_none_or(|commit| at == commit.as_bytes())))
    }

    /// Begins the project's set-up. Removes the remains of an interrupted one.
    pub(in crate::git) async fn begin_setup(&self) -> Result<(), Failure> {
        let mark = self.records.join(SETTING_UP);
        if mark.exists() {
            self.empty().await?;
        }
        files::write(&mark, b"")
    }

    /// Records the end of a set-up, and the commit if it succeeded.
    pub(in crate::git) fn end_setup(&self, succeeded_at: Option<&str>) -> Result<(), Failure> {
        if let Some(commit) = succeeded_at {
            files::write(&self.records.join(SET_UP), commit.as_bytes())?;
        }
        files::remove(&self.records.join(SETTING_UP))
    }

    /// Clears the record of the set-up: its next use begins without ignored files.
    pub(in crate::git) fn forget_set_up(&self) -> Result<(), Failure> {
        files::remove(&self.records.join(SET_UP))
    }

    /// Removes everything that git does not track, ignored files too.
    pub(in crate::git) async fn empty(&self) -> Result<(), Failure> {
        self.forget_set_up()?;
        self.forget_checked()?;
        self.git().args(["clean", "-ffdxq"]).run().await.map(drop)
    }

    /// Records that checks have passed on this content.
    pub(in crate::git) fn set_checked(&self, content: &str) -> Result<(), Failure> {
        files::write(&self.records.join(CHECKED), content.as_bytes())
    }

    pub(in crate::git) fn forget_checked(&self) -> Result<(), Failure> {
        files::remove(&self.records.join(CHECKED))
    }

    /// Whether checks have passed on this content, and nothing has changed the tree since.
    pub(in crate::git) fn has_checked(&self, content: &str) -> Result<bool, Failure> {
        let checked = files::read(&self.records.join(CHECKED))?;
        Ok(self.is_presentable() && checked.is_some_and(|checked| checked == content.as_bytes()))
    }

    /// Records that a held-out check runs in the tree.
    pub(in crate::git) fn begin_held_out(&self) -> Result<(), Failure> {
        files::write(&self.records.join(HELD_OUT), b"")
    }

    /// Makes the tree usable: recreates it, without files, if it is missing or suspect, or if a
    /// held-out check has run in it. The caller has kept its content. Returns whether it is new.
    pub(in crate::git) fn make_usable(&self) -> Result<bool, Failure> {
        let is_new = self.condition()? != Condition::Sound || self.records.join(HELD_OUT).exists();
        if is_new {
            self.remove()?;
            self.make()?;
        }
        self.begin_use()?;
        Ok(is_new)
    }

    /// Creates its directory and its records.
    fn make(&self) -> Result<(), Failure> {
        for dir in [&self.path, &self.records] {
            std::fs::create_dir_all(dir)
                .map_err(|error| files::failed("make the directory", dir, &error))?;
        }
        Ok(())
    }

    /// Whether a program left nothing in it that only a removal undoes.
    pub(in crate::git) fn is_presentable(&self) -> bool {
        !self.records.join(HELD_OUT).exists() && !self.is_half_reset() && self.is_directory()
    }

    /// Gives it the place of a missing tree. A crash in between leaves two incomplete trees, which
    /// count as missing.
    pub(in crate::git) fn rename_to(&self, other: &Self) -> Result<(), Failure> {
        for (from, to) in [(&self.path, &other.path), (&self.records, &other.records)] {
            std::fs::rename(from, to).map_err(|error| files::failed("rename", from, &error))?;
        }
        Ok(())
    }

    /// Removes it, with Longhaul's records, in any state.
    pub(in crate::git) fn remove(&self) -> Result<(), Failure> {
        files::remove(&self.path)?;
        files::remove(&self.records)
    }
}

impl Repository {
    /// A tree by its name.
    pub(in crate::git) fn tree(&self, name: &str) -> Tree {
        Tree {
            path: self.worktrees.join(name),
            records: self.records.join(name),
            plumbing: self.plumbing.clone(),
            process: Arc::clone(&self.process),
        }
    }

    /// All trees that have records.
    pub(in crate::git) fn trees(&self) -> Vec<Tree> {
        let entries = std::fs::read_dir(&self.records).into_iter().flatten().flatten();
        entries.map(|entry| self.tree(&entry.file_name().to_string_lossy())).collect()
    }

    /// The tree of a feature, which can be read.
    pub(in crate::git) fn feature_tree(&self, feature: &FeatureId) -> Tree {
        let tree = self.tree(feature.as_str());
        tree.let_read();
        tree
    }
}
