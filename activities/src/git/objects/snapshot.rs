//! The current content of a work tree as a git tree, independent of its own index, flags or
//! unfinished merge.

use std::path::{Path, PathBuf};

use longhaul_engine::{Failure, FailureKind};
use longhaul_workflows::contracts::LeftOut;
use tempfile::TempDir;

use super::plumbing::Plumbing;
use super::read::Entry;
use super::refs::Repository;
use super::too_large::{TooLarge, is_too_large, remove_large_rules, too_large, too_large_in};
use super::trees::{set_entries, temporary_dir};
use crate::files::give_reading;
use crate::git::command::Git;
use crate::git::files;

/// The mark of a file that is not in the index, in the output of `ls-files -t`.
const TAG: &[u8] = b"? ";

/// A separate index over a work tree.
#[derive(Debug)]
pub(in crate::git) struct Snapshot {
    dir: TempDir,
    plumbing: Plumbing,
    work_tree: PathBuf,
    /// Whether the index of the tree was readable.
    pub(in crate::git) had_index: bool,
    /// The files that the index did not have before this snapshot, ignored ones too: the output of
    /// `ls-files`.
    others: Vec<u8>,
    /// The files that are too large to be added.
    too_large: Vec<TooLarge>,
    /// The tree of the index, if it was written since the last change.
    written: tokio::sync::Mutex<Option<String>>,
    /// Whether git could not read some files.
    was_denied: bool,
    /// The commit whose files are listed where the index cannot be used.
    commit: String,
}

impl Snapshot {
    /// Captures everything in a work tree that is not ignored. `index` is Longhaul's own index of
    /// the tree, if any; `commit` is the fallback when it cannot be read. Files that a program made
    /// unreadable become readable for their owner: git would leave them out.
    pub(in crate::git) async fn take(
        repo: &Repository,
        work_tree: &Path,
        index: &Path,
        commit: &str,
    ) -> Result<Self, Failure> {
        let taken = Self::of_readable(repo, work_tree, index, commit).await;
        let is_whole = taken.as_ref().is_ok_and(|snapshot| !snapshot.was_denied);
        if !is_whole && give_reading(work_tree) {
            return Self::of_readable(repo, work_tree, index, commit).await;
        }
        taken
    }

    async fn of_readable(
        repo: &Repository,
        work_tree: &Path,
        index: &Path,
        commit: &str,
    ) -> Result<Self, Failure> {
        let mut snapshot = Self {
            dir: temporary_dir()?,
            plumbing: repo.plumbing.clone(),
            work_tree: work_tree.to_owned(),
            had_index: true,
            others: Vec::default(),
            too_large: Vec::default(),
            written: tokio::sync::Mutex::default(),
            was_denied: false,
            commit: commit.to_owned(),
        };
        let is_copied = files::copy_with_time(index, &snapshot.file())?;
        if !is_copied || snapshot.add_nested().await.is_err() {
            // The index is missing or broken.
            snapshot.had_index = false;
            files::remove(&snapshot.file())?;
            snapshot.git().args(["read-tree", commit]).run().await?;
            snapshot.add_nested().await?;
        }
        // Exit code 1 means that single files could not be read, or not be written to the
        // repository; the others are in.
        let added = snapshot.add().finish().await?;
        snapshot.was_denied |= added.was_denied();
        match added.code() {
            Some(0) => {}
            Some(1) if added.machine_cause().is_none() && !snapshot.lacks_readable().await? => {
                tracing::warn!(
                    dir = %snapshot.work_tree.display(),
                    error = added.error_text(),
                    "some files were left out",
                );
            }
            _ => return Err(added.repair()),
        }
        Ok(snapshot)
    }

    /// The command that adds everything but what is too large.
    fn add(&self) -> Git {
        let git = self.git().args(["add", "--all", "--ignore-errors"]);
        if self.too_large.is_empty() {
            return git;
        }
        let mut paths = b".\0".to_vec();
        for file in &self.too_large {
            paths.extend([b":(top,exclude,literal)", &file.path[..], b"\0"].concat());
        }
        let from_input = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        git.env("GIT_LITERAL_PATHSPECS", "0").args(from_input).input(paths)
    }

    /// The files that are too large for a commit.
    pub(in crate::git) fn left_out(&self) -> Vec<LeftOut> {
        self.too_large.iter().map(TooLarge::shown).collect()
    }

    fn is_left_out(&self, path: &[u8]) -> bool {
        self.too_large.iter().any(|file| file.path == path)
    }

    /// Whether a file that can be read is not in the index.
    async fn lacks_readable(&self) -> Result<bool, Failure> {
        let args = ["ls-files", "-z", "--others", "--modified", "--exclude-standard"];
        let listed = self.git().args(args).run().await?;
        let is_readable = |name: &[u8]| {
            let path = self.work_tree.join(files::path_of(name));
            let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
            is_file && std::fs::File::open(&path).is_ok()
        };
        // Git refuses some names wherever the files are.
        let is_refused = |name: &[u8]| {
            let mut parts = name.split(|byte| *byte == b'/');
            parts.any(|part| part.to_ascii_lowercase().starts_with(b".git"))
        };
        let names = files::nul_separated(&listed.stdout).filter(|name| !name.ends_with(b"/"));
        let names = names.filter(|name| !is_refused(name) && !self.is_left_out(name));
        Ok(names.into_iter().any(is_readable))
    }

    /// A command on this index.
    pub(in crate::git) fn git(&self) -> Git {
        self.plumbing.git_in(&self.work_tree, &self.file())
    }

    /// The index file.
    pub(in crate::git) fn file(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    /// The tree.
    pub(in crate::git) async fn tree(&self) -> Result<String, Failure> {
        let mut written = self.written.lock().await;
        if let Some(tree) = &*written {
            return Ok(tree.clone());
        }
        let tree = match self.git().arg("write-tree").text().await {
            Ok(tree) => tree,
            // The repository has lost objects that the index names; the files may still be there.
            Err(failure) if failure.kind != FailureKind::Machine => {
                self.git().args(["read-tree", &self.commit]).run().await?;
                self.add().finish().await?;
                self.git().arg("write-tree").text().await.map_err(|_| failure)?
            }
            Err(failure) => return Err(failure),
        };
        Ok(written.insert(tree).clone())
    }

    /// Replaces entries of the index, not files of the work tree.
    pub(in crate::git) async fn set(&self, entries: &[(&[u8], &Entry)]) -> Result<(), Failure> {
        if !entries.is_empty() {
            *self.written.lock().await = None;
            set_entries(self.git(), entries).await?;
        }
        Ok(())
    }

    /// The ignored files that pass a filter.
    pub(in crate::git) async fn ignored(
        &self,
        filter: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let matching = |listed: &[u8]| {
            let files = files::nul_separated(listed).filter(|path| !path.ends_with(b"/"));
            let files = files.filter(|path| filter(path) && !is_too_large(&self.work_tree, path));
            files.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let others = matching(&self.others);
        if others.is_empty() {
            return Ok(others);
        }
        let args = ["ls-files", "--others", "--ignored", "--exclude-standard", "-z"];
        Ok(matching(&self.git().args(args).run().await?.stdout))
    }

    /// The tree with more files added, even ignored ones. The index does not change.
    pub(in crate::git) async fn tree_with(&self, paths: &[Vec<u8>]) -> Result<String, Failure> {
        let copy = self.dir.path().join("more");
        std::fs::copy(self.file(), &copy).map_err(|error| files::failed("write", &copy, &error))?;
        let git = || self.git().env("GIT_INDEX_FILE", &copy);
        let add = ["update-index", "--add", "--replace", "-z", "--stdin"];
        git().args(add).input(paths.join(&0)).run().await?;
        git().arg("write-tree").text().await
    }

    /// Adds nested repositories as plain files: git itself would fail on them, or leave their files
    /// out.
    async fn add_nested(&mut self) -> Result<(), Failure> {
        let args = ["ls-files", "-t", "--cached", "--others", "-z"];
        let listed = self.git().args(args).run().await?;
        self.was_denied |= listed.was_denied();
        let mut names = Vec::new();
        let mut others = Vec::new();
        for line in files::nul_separated(&listed.stdout) {
            let Some((tag, name)) = line.split_at_checked(TAG.len()) else { continue };
            if tag == TAG {
                others.extend_from_slice(name);
                others.push(0);
            }
            names.push(name.to_vec());
        }
        self.others = others;
        // Before git reads any rule or content.
        self.too_large = too_large(|| self.git(), &self.work_tree, names).await?;
        if directories(&self.others).next().is_none() {
            return Ok(());
        }
        // Those that are not ignored.
        let args = ["ls-files", "--others", "--exclude-standard", "-z"];
        let listed = self.git().args(args).run().await?;
        let mut nested: Vec<Vec<u8>> = directories(&listed.stdout).collect();
        let mut input = Vec::new();
        while let Some(prefix) = nested.pop() {
            let dir = self.work_tree.join(files::path_of(&prefix));
            self.too_large.extend(remove_large_rules(&dir, &prefix)?);
            let args = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
            let listed = Git::at(&dir).args(args).run().await?;
            self.was_denied |= listed.was_denied();
            nested.extend(
                directories(&listed.stdout).map(|inner| [prefix.as_slice(), &inner].concat()),
            );
            for name in files::nul_separated(&listed.stdout).filter(|name| !name.ends_with(b"/")) {
                let is_file = std::fs::symlink_metadata(dir.join(files::path_of(name)))
                    .is_ok_and(|it| !it.is_dir());
                if let Some(file) = too_large_in(&dir, &prefix, name) {
                    self.too_large.push(file);
                } else if is_file {
                    input.extend_from_slice(&prefix);
                    input.extend_from_slice(name);
                    input.push(0);
                }
            }
        }
        if input.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "--add", "--replace", "-z", "--stdin"];
        self.git().args(args).input(input).run().await.map(drop)
    }
}

/// Nested repositories in the output of `ls-files --others`: the paths that end with a slash.
fn directories(output: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    files::nul_separated(output).filter(|path| path.ends_with(b"/")).map(<[u8]>::to_vec)
}
