//! Longhaul's own work trees: found, mended after a crash or an agent, made, brought to a commit, removed.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::command::Git;
use super::files;
use super::left::clear_left_in;
use super::names::head_ref;
use super::refs::Repository;
use super::remake::is_of;
use super::trees::index_entries;

/// A mark, beside a work tree's index, that a reset has begun and not ended.
const RESETTING: &str = "longhaul-resetting";

/// A work tree that git knows and that works.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// Its directory.
    pub(super) path: PathBuf,
    /// What git keeps about it: `worktrees/<name>` in the common directory.
    pub(super) admin: PathBuf,
}

/// A mark, beside a work tree's index, that the project's set-up has run in it since it was made.
const SET_UP: &str = "longhaul-set-up";
/// A mark, beside a work tree's index, that a set-up has begun in it and not ended.
const SETTING_UP: &str = "longhaul-setting-up";

/// What a new work tree stands on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stand<'a> {
    Branch(&'a str),
    Commit(&'a str),
}

impl Tree {
    /// A command in it.
    pub(super) fn git(&self) -> Git {
        Git::at(&self.path).setting("core.sparseCheckout=false")
    }

    /// Its index.
    pub(super) fn index(&self) -> PathBuf {
        self.admin.join("index")
    }

    /// The branch that it is on; `None` for a detached HEAD.
    pub(super) async fn branch(&self) -> Result<Option<String>, Failure> {
        self.git().args(["symbolic-ref", "--quiet", "HEAD"]).find().await
    }

    /// The commit that it is on; `None` on a branch without one.
    pub(super) async fn head(&self) -> Result<Option<String>, Failure> {
        self.git().args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).find().await
    }

    /// Brings every file that is not ignored to a commit, and ends what is unfinished. HEAD must be where it belongs: the
    /// branch moves along. What is uncommitted is lost, so it must have been kept before.
    pub(super) async fn reset_to(&self, commit: &str) -> Result<(), Failure> {
        let mark = self.admin.join(RESETTING);
        files::write_durably(&mark, b"")?;
        // A new index: the old one may be broken, or have flags that hide files.
        let entries = index_entries(self.git(), &self.index()).await?;
        files::remove(&self.index())?;
        match entries {
            Some(entries) => self.git().args(["update-index", "-z", "--index-info"]).input(entries).run().await?,
            None => self.git().args(["read-tree", commit]).run().await?,
        };
        // Compares what is there, so that files that are right keep their times: build caches go by them.
        self.git().args(["update-index", "-q", "--refresh"]).finish().await?;
        self.git().args(["reset", "--quiet", "--hard", commit]).run().await?;
        self.git().args(["clean", "-fdq"]).run().await?;
        self.forget_unfinished()?;
        files::remove(&mark)
    }

    /// Whether a reset was killed halfway. What it was to overwrite had been kept, and what is there is of no value.
    pub(super) fn is_half_reset(&self) -> bool {
        self.admin.join(RESETTING).exists()
    }

    /// Whether the project's set-up has run in it since it was made.
    pub(super) fn is_set_up(&self) -> bool {
        self.admin.join(SET_UP).exists()
    }

    /// To be called before the project's set-up is run in it. What one left that was cut is not built upon.
    pub(super) async fn begin_setup(&self) -> Result<(), Failure> {
        let mark = self.admin.join(SETTING_UP);
        if mark.exists() {
            self.empty().await?;
        }
        files::write_durably(&mark, b"")
    }

    /// Says that a set-up came to its end, and whether it was one.
    pub(super) fn end_setup(&self, is_set_up: bool) -> Result<(), Failure> {
        if is_set_up {
            files::write_durably(&self.admin.join(SET_UP), b"")?;
        }
        files::remove(&self.admin.join(SETTING_UP))
    }

    /// Removes all that git does not keep, ignored files too.
    pub(super) async fn empty(&self) -> Result<(), Failure> {
        self.git().args(["clean", "-ffdxq"]).run().await.map(drop)
    }

    /// Whether whoever made it, or brought it to a commit, died in the middle: no file in it is of value.
    pub(super) fn is_unfinished(&self) -> bool {
        let is_empty = || std::fs::read_dir(&self.path).is_ok_and(|entries| entries.count() <= 1);
        self.is_half_reset() || (!self.index().exists() && is_empty())
    }

    /// Forgets an unfinished merge, rebase or the like, without touching a file.
    pub(super) fn forget_unfinished(&self) -> Result<(), Failure> {
        const MARKS: [&str; 14] = [
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
        ];
        MARKS.iter().try_for_each(|mark| files::remove(&self.admin.join(mark)))
    }
}

impl Repository {
    /// The work tree at a path, mended where that is possible; `None` if it is missing or broken.
    pub(super) async fn find_tree(&self, path: &Path) -> Result<Option<Tree>, Failure> {
        let Some(admin) = self.admin_of(path)? else { return Ok(None) };
        if !path.is_dir() {
            return Ok(None);
        }
        let tree = Tree { path: path.to_owned(), admin };
        self.mend_link(&tree)?;
        clear_left_in(&tree.path, &tree.admin, &self.common).await?;
        let answer = Git::at(path).args(["rev-parse", "--absolute-git-dir"]).finish().await?;
        let works = answer.code() == Some(0) && files::canonical(Path::new(&answer.text()))? == tree.admin;
        Ok(works.then_some(tree))
    }

    /// Makes a work tree without files, over whatever is left of an earlier one. To be called with the repository held.
    pub(super) async fn add_tree(&self, path: &Path, stand: Stand<'_>) -> Result<Tree, Failure> {
        self.drop_tree(path)?;
        std::fs::create_dir_all(&self.worktrees)
            .map_err(|error| files::failed("make the directory", &self.worktrees, &error))?;
        let git =
            self.git().setting("worktree.useRelativePaths=false").args(["worktree", "add", "--quiet", "--no-checkout"]);
        let git = match stand {
            Stand::Branch(branch) => git.arg(path).arg(branch),
            Stand::Commit(commit) => git.arg("--detach").arg(path).arg(commit),
        };
        git.run().await?;
        let tree = self.find_tree(path).await?.ok_or_else(|| {
            Failure::retryable(format!("git made a work tree at {} that does not work", path.display()))
        })?;
        // A sparse checkout of the user's is copied to new work trees; an agent needs all files.
        let sparse = Git::at(path).args(["config", "--type=bool", "--get", "core.sparseCheckout"]).find().await?;
        if sparse.as_deref() == Some("true") {
            Git::at(path).args(["sparse-checkout", "disable"]).run().await?;
        }
        Ok(tree)
    }

    /// Removes a work tree and what git keeps about it, in any state. To be called with the repository held.
    pub(super) fn drop_tree(&self, path: &Path) -> Result<(), Failure> {
        let admin = self.admin_of(path)?;
        files::remove(path)?;
        // Only ours: `git worktree prune` would also forget a user's work tree on a disk that is not there now.
        admin.map_or(Ok(()), |admin| files::remove(&admin))
    }

    /// The path of one of our own work trees, by one that was handed in: that of a log which was carried here is elsewhere.
    pub(super) fn own_path(&self, path: &Path, project: &str) -> Result<PathBuf, Failure> {
        let inside = path.parent() == Some(&self.worktrees);
        let inside =
            inside || path.parent().and_then(|parent| files::canonical(parent).ok()).as_ref() == Some(&self.worktrees);
        let inside = inside || is_of(path, project);
        match path.file_name() {
            Some(name) if inside => Ok(self.worktrees.join(name)),
            _ => Err(Failure::terminal(format!(
                "{} is no work tree of this project: those are in {}",
                path.display(),
                self.worktrees.display()
            ))),
        }
    }

    /// What git keeps about the work tree at a path.
    pub(super) fn admin_of(&self, path: &Path) -> Result<Option<PathBuf>, Failure> {
        let dir = self.common.join("worktrees");
        let Ok(entries) = std::fs::read_dir(&dir) else { return Ok(None) };
        let link = path.join(".git");
        for entry in entries.filter_map(Result::ok) {
            let admin = entry.path();
            let Some(bytes) = files::read(&admin.join("gitdir"))? else { continue };
            if admin.join(files::path_of(bytes.trim_ascii_end())) == link {
                return Ok(Some(admin));
            }
        }
        Ok(None)
    }

    /// The commit of the branch that a broken work tree was on.
    pub(super) async fn branch_commit(&self, branch: &str) -> Result<Option<String>, Failure> {
        self.commit_of(&head_ref(branch)).await
    }

    /// A work tree's `.git` file says where its repository is. An agent may have removed it, or made a repository of its own
    /// there; that one is kept beside.
    fn mend_link(&self, tree: &Tree) -> Result<(), Failure> {
        let link = tree.path.join(".git");
        let right = format!("gitdir: {}\n", tree.admin.display());
        let is_right = link.is_file() && files::read(&link)?.is_some_and(|bytes| bytes == right.as_bytes());
        if !is_right {
            if link.is_dir() && !link.is_symlink() {
                self.keep_dir(&link)?;
            } else {
                files::remove(&link)?;
            }
            files::write_durably(&link, right.as_bytes())?;
        }
        // Left by a `git worktree add` that was killed.
        let locked = tree.admin.join("locked");
        if files::read(&locked)?.is_some_and(|reason| reason.trim_ascii() == b"initializing") {
            files::remove(&locked)?;
        }
        Ok(())
    }

    fn keep_dir(&self, dir: &Path) -> Result<(), Failure> {
        let kept = files::first_free(|number| self.saved.join(format!("repository-{number}")));
        std::fs::create_dir_all(&self.saved)
            .and_then(|()| std::fs::rename(dir, &kept))
            .map_err(|error| files::failed("set aside", dir, &error))?;
        tracing::warn!(dir = %dir.display(), kept = %kept.display(), "set a repository inside of a work tree aside");
        Ok(())
    }
}
