//! Git trees without a work tree: compares, merges, and replaces single files.

use longhaul_engine::Failure;
use tempfile::TempDir;

use super::command::Git;
use super::files;
use super::refs::Repository;

/// The entries of one path in two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Relative to the top, as git has it.
    pub(super) path: Vec<u8>,
    pub(super) before: Entry,
    pub(super) after: Entry,
}

/// A mode and an object; an absent entry has the mode `000000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: String,
    pub(super) object: String,
}

impl Entry {
    pub(super) fn is_there(&self) -> bool {
        self.mode != "000000"
    }

    /// Whether files under it are invisible to git: it is a symbolic link, or another repository.
    pub(super) fn hides_files(&self) -> bool {
        matches!(self.mode.as_str(), "120000" | "160000")
    }
}

/// The result of merging two commits.
#[derive(Debug)]
pub(super) struct TreeMerge {
    /// The merged tree; files in conflict contain conflict markers.
    pub(super) tree: String,
    /// The files in conflict.
    pub(super) conflicts: Vec<Vec<u8>>,
    /// Git's messages about the conflicts.
    pub(super) output: String,
}

impl Repository {
    /// Every path that differs between two trees.
    pub(super) async fn changes(&self, before: &str, after: &str) -> Result<Vec<Change>, Failure> {
        if before == after || self.tree_of(before).await? == self.tree_of(after).await? {
            return Ok(Vec::new());
        }
        self.changes_in_paths(before, after, &[]).await
    }

    /// Those of the given paths that differ between two trees; of none given, all.
    pub(super) async fn changes_in_paths(
        &self,
        before: &str,
        after: &str,
        paths: &[&str],
    ) -> Result<Vec<Change>, Failure> {
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after];
        let finished = self.plumbing.git().args(args).arg("--").args(paths).run().await?;
        let mut parts = files::nul_separated(&finished.stdout);
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            let head = files::shown(head);
            let mut words = head.trim_start_matches(':').split(' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            let (old_mode, new_mode, old, new) = (word(), word(), word(), word());
            let before = Entry { mode: old_mode, object: old };
            let after = Entry { mode: new_mode, object: new };
            changes.push(Change { path: path.to_owned(), before, after });
        }
        Ok(changes)
    }

    /// Merges two commits without a work tree.
    pub(super) async fn merge_commits(
        &self,
        ours: &str,
        theirs: &str,
    ) -> Result<TreeMerge, Failure> {
        let args = ["merge-tree", "--write-tree", "--name-only", "--messages", "-z", ours, theirs];
        let finished = self.plumbing.git().args(args).finish().await?;
        if !matches!(finished.code(), Some(0 | 1)) {
            return Err(finished.failure());
        }
        let mut parts = finished.stdout.split(|byte| *byte == 0);
        let tree = parts.next().map(files::shown).unwrap_or_default();
        // An empty part ends the files; the messages follow.
        let mut conflicts: Vec<Vec<u8>> =
            parts.by_ref().take_while(|part| !part.is_empty()).map(<[u8]>::to_vec).collect();
        conflicts.sort_unstable();
        conflicts.dedup();
        if finished.code() == Some(0) {
            conflicts.clear();
        }
        Ok(TreeMerge { tree, conflicts, output: conflict_messages(parts) })
    }

    /// The bytes of a file in a commit or a tree, with its mode; `None` if the path is absent or
    /// not a file.
    pub(super) async fn file_in(
        &self,
        tree: &str,
        path: &str,
    ) -> Result<Option<(String, Vec<u8>)>, Failure> {
        let listed = self.plumbing.git().args(["ls-tree", "-z", tree, "--", path]).run().await?;
        let listed = files::shown(&listed.stdout);
        let mut words = listed.split([' ', '\t']);
        let (Some(mode), Some("blob"), Some(object)) = (words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        let bytes = self.plumbing.git().args(["cat-file", "blob", object]).run().await?.stdout;
        Ok(Some((mode.to_owned(), bytes)))
    }

    /// The same tree with new bytes in one file.
    pub(super) async fn with_file(
        &self,
        tree: &str,
        path: &str,
        mode: &str,
        bytes: &[u8],
    ) -> Result<String, Failure> {
        let object =
            self.plumbing.git().args(["hash-object", "-w", "--stdin"]).input(bytes).text().await?;
        self.with_entry(tree, path, Some((mode, &object))).await
    }

    /// The same tree with one entry replaced or removed.
    pub(super) async fn with_entry(
        &self,
        tree: &str,
        path: &str,
        entry: Option<(&str, &str)>,
    ) -> Result<String, Failure> {
        let (mode, object) = entry.unwrap_or(("000000", ""));
        let object = if object.is_empty() { "0".repeat(tree.len()) } else { object.to_owned() };
        let entry = Entry { mode: mode.to_owned(), object };
        self.with_entries(tree, &[(path.as_bytes(), &entry)]).await
    }

    /// The same tree with these entries.
    pub(super) async fn with_entries(
        &self,
        tree: &str,
        entries: &[(&[u8], &Entry)],
    ) -> Result<String, Failure> {
        let dir = temporary_dir()?;
        let index = dir.path().join("index");
        let git = || self.plumbing.git().env("GIT_INDEX_FILE", &index);
        git().args(["read-tree", tree]).run().await?;
        set_entries(git(), entries).await?;
        git().arg("write-tree").text().await
    }
}

/// A directory for an index that is not a work tree's own.
pub(super) fn temporary_dir() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("longhaul-").tempdir();
    made.map_err(|error| files::failed("make a directory in", &std::env::temp_dir(), &error))
}

/// Writes entries to the index that `git` works on; absent ones are removed.
pub(super) async fn set_entries(git: Git, entries: &[(&[u8], &Entry)]) -> Result<(), Failure> {
    let mut input = Vec::new();
    // Removals first: a file may replace a directory.
    for there in [false, true] {
        for (path, entry) in entries.iter().filter(|(_, entry)| entry.is_there() == there) {
            let mode = if there { entry.mode.as_str() } else { "0" };
            input.extend_from_slice(format!("{mode} {}\t", entry.object).as_bytes());
            input.extend_from_slice(path);
            input.push(0);
        }
    }
    if input.is_empty() {
        return Ok(());
    }
    git.args(["update-index", "--replace", "-z", "--index-info"]).input(input).run().await.map(drop)
}

/// The texts about conflicts, out of `<count> <paths>... <kind> <text>` sections.
fn conflict_messages<'a>(mut parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut output = String::new();
    while let Some(count) = parts.next().and_then(|part| files::shown(part).parse::<usize>().ok()) {
        let mut rest = parts.by_ref().skip(count);
        let (Some(kind), Some(text)) = (rest.next(), rest.next()) else { break };
        if kind.starts_with(b"CONFLICT") {
            output.push_str(&files::shown(text));
        }
    }
    output.trim_end().to_owned()
}
