//! Git trees without a work tree: merges them, and replaces single files.

use longhaul_engine::{Failure, FailureKind};
use tempfile::TempDir;

use super::read::{DIRECTORY, Entries, Entry};
use super::refs::Repository;
use crate::git::command::Git;
use crate::git::files;

/// The result of merging two commits.
#[derive(Debug)]
pub(in crate::git) struct TreeMerge {
    /// The merged tree; files in conflict contain conflict markers.
    pub(in crate::git) tree: String,
    /// The files in conflict.
    pub(in crate::git) conflicts: Vec<Vec<u8>>,
    /// Git's messages about the conflicts.
    pub(in crate::git) output: String,
}

impl Repository {
    /// Merges two commits without a work tree. Commits without a common ancestor are merged by
    /// their content: files that differ are in conflict.
    pub(in crate::git) async fn merge_commits(
        &self,
        ours: &str,
        theirs: &str,
    ) -> Result<TreeMerge, Failure> {
        let ahead = match self.is_near_ancestor(ours, theirs).await? {
            _ if ours == theirs => Some(ours),
            Some(true) => Some(theirs),
            Some(false) => Some(ours),
            None => None,
        };
        if let Some(ahead) = ahead {
            let tree = self.tree_of(ahead).await?;
            return Ok(TreeMerge { tree, conflicts: Vec::new(), output: String::new() });
        }
        self.merge_trees(ours, theirs, None).await
    }

    /// Merges two commits like [`Self::merge_commits`]. `left` is a commit of the work that the
    /// target had and has no more: only what the work changed since counts as its own. Without it,
    /// the work would bring back what a person took from the target, and would be in conflict with
    /// a history that a person began anew.
    pub(in crate::git) async fn merge_on_base(
        &self,
        ours: &str,
        theirs: &str,
        left: Option<&str>,
    ) -> Result<TreeMerge, Failure> {
        let Some(left) = left else { return self.merge_commits(ours, theirs).await };
        match self.merge_trees(ours, theirs, Some(left)).await {
            // Git before 2.40 has no such option.
            Err(failure) if failure.kind != FailureKind::Machine => {
                self.merge_commits(ours, theirs).await
            }
            merged => merged,
        }
    }

    async fn merge_trees(
        &self,
        ours: &str,
        theirs: &str,
        base: Option<&str>,
    ) -> Result<TreeMerge, Failure> {
        let options = ["--write-tree", "--name-only", "--messages"];
        let base = match base {
            Some(base) => format!("--merge-base={base}"),
            None => "--allow-unrelated-histories".to_owned(),
        };
        let git = self.plumbing.git().arg("merge-tree").args(options).arg(base);
        let finished = git.args(["-z", ours, theirs]).finish().await?;
        // Without a tree, it could not read a commit.
        if !matches!(finished.code(), Some(0 | 1)) || finished.stdout.is_empty() {
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

    /// The same tree with new bytes in one of its files.
    pub(in crate::git) async fn with_file(
        &self,
        tree: &str,
        path: &str,
        mode: &str,
        bytes: &[u8],
    ) -> Result<String, Failure> {
        let mut object =
            self.plumbing.git().args(["hash-object", "-w", "--stdin"]).input(bytes).text().await?;
        let mut mode = mode;
        let mut path = path;
        // The trees from that of the file up to the root.
        loop {
            let (place, name) = path.rsplit_once('/').unwrap_or(("", path));
            let old = if place.is_empty() {
                self.tree_of(tree).await?
            } else {
                self.entry_in(tree, place).await?.map(|entry| entry.object).unwrap_or_default()
            };
            let mut entries = self.entries(Some(&old)).await?;
            entries.insert(name.as_bytes().to_vec(), Entry { mode: mode.to_owned(), object });
            object = self.make_tree(&entries).await?;
            if place.is_empty() {
                return Ok(object);
            }
            mode = DIRECTORY;
            path = place;
        }
    }

    /// Writes a tree. Not with `mktree`, which does not sync the object, whatever `core.fsync`
    /// says.
    async fn make_tree(&self, entries: &Entries) -> Result<String, Failure> {
        let git = self.plumbing.git().args(["hash-object", "-t", "tree", "-w", "--stdin"]);
        git.input(tree_object(entries)).text().await
    }

    /// The same tree with these entries.
    pub(in crate::git) async fn with_entries(
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
pub(in crate::git) fn temporary_dir() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("longhaul-").tempdir();
    made.map_err(|error| files::failed("make a directory in", &std::env::temp_dir(), &error))
}

/// Writes entries to the index that `git` works on; absent ones are removed.
pub(in crate::git) async fn set_entries(
    git: Git,
    entries: &[(&[u8], &Entry)],
) -> Result<(), Failure> {
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

/// The content of a tree object. Git sorts a directory as if its name ended with a slash.
fn tree_object(entries: &Entries) -> Vec<u8> {
    let sorted_as = |name: &[u8], entry: &Entry| {
        let end: &[u8] = if entry.kind() == "tree" { b"/" } else { b"" };
        [name, end].concat()
    };
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by_key(|(name, entry)| sorted_as(name, entry));
    let mut object = Vec::new();
    for (name, entry) in sorted {
        object.extend(entry.mode.trim_start_matches('0').bytes());
        object.push(b' ');
        object.extend(name);
        object.push(0);
        let digits = entry.object.as_bytes().chunks(2);
        object.extend(
            digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()),
        );
    }
    object
}
