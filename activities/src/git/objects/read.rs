//! Reads trees and commits: the files of a commit, the changes between two trees, ancestry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use longhaul_engine::Failure;

use super::refs::Repository;
use crate::git::files;

/// The mode of a directory in a tree.
pub(in crate::git) const DIRECTORY: &str = "040000";

/// The commits to read before git is asked for the ancestry of a commit.
const NEAR: usize = 24;

/// The entries of one directory, by name.
pub(in crate::git) type Entries = BTreeMap<Vec<u8>, Entry>;

impl Entry {
    pub(in crate::git) fn is_directory(&self) -> bool {
        self.mode == DIRECTORY
    }

    /// No entry, in a repository whose object names are as long as this one.
    fn absent(object: &str) -> Self {
        Self { mode: "000000".to_owned(), object: "0".repeat(object.len()) }
    }
}

impl Repository {
    /// The paths that differ between two trees, for display.
    pub(in crate::git) async fn changed_files(
        &self,
        before: &str,
        after: &str,
    ) -> Result<Vec<String>, Failure> {
        let changes = self.changes(before, after).await?;
        Ok(changes.iter().map(|change| files::shown(&change.path)).collect())
    }

    /// Every path that differs between two trees, in the order of the paths.
    pub(in crate::git) async fn changes(
        &self,
        before: &str,
        after: &str,
    ) -> Result<Vec<Change>, Failure> {
        if before == after {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        let trees = [Some(self.tree_of(before).await?), Some(self.tree_of(after).await?)];
        let mut pending = vec![(Vec::new(), trees)];
        while let Some((place, [before, after])) = pending.pop() {
            if before == after {
                continue;
            }
            let [before, after] =
                [self.entries(before.as_deref()).await?, self.entries(after.as_deref()).await?];
            let names: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
            for name in names {
                let sides = [before.get(name), after.get(name)];
                if sides[0] == sides[1] {
                    continue;
                }
                let path = [place.as_slice(), name].concat();
                let directories = sides.map(|side| side.filter(|entry| entry.is_directory()));
                if directories.iter().any(Option::is_some) {
                    let trees = directories.map(|side| side.map(|entry| entry.object.clone()));
                    pending.push(([path.as_slice(), b"/"].concat(), trees));
                }
                changes.extend(change(path, sides));
            }
        }
        changes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// The entry of a path in a commit or a tree.
    pub(in crate::git) async fn entry_in(
        &self,
        tree: &str,
        path: &str,
    ) -> Result<Option<Entry>, Failure> {
        let mut tree = self.tree_of(tree).await?;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let entry = self.entries(Some(&tree)).await?.remove(part.as_bytes());
            match entry {
                Some(entry) if parts.peek().is_none() => return Ok(Some(entry)),
                Some(entry) if entry.is_directory() => tree = entry.object,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The files and submodules of a commit at and under a path; the empty path is the root.
    pub(in crate::git) async fn files_under(
        &self,
        commit: &str,
        path: &str,
    ) -> Result<Vec<(Vec<u8>, Entry)>, Failure> {
        let mut found = Vec::new();
        let mut pending = vec![match path {
            "" => (Vec::new(), self.tree_of(commit).await?),
            path => match self.entry_in(commit, path).await? {
                None => return Ok(found),
                Some(entry) if entry.is_directory() => (format!("{path}/").into(), entry.object),
                Some(entry) => return Ok(vec![(path.into(), entry)]),
            },
        }];
        while let Some((place, tree)) = pending.pop() {
            for (name, entry) in self.entries(Some(&tree)).await? {
                let path = [place.as_slice(), &name].concat();
                if entry.is_directory() {
                    pending.push(([path.as_slice(), b"/"].concat(), entry.object));
                } else {
                    found.push((path, entry));
                }
            }
        }
        Ok(found)
    }

    /// The bytes of a file in a commit or a tree, with its mode; `None` if the path is absent or
    /// not a file.
    pub(in crate::git) async fn file_in(
        &self,
        tree: &str,
        path: &str,
    ) -> Result<Option<(String, Vec<u8>)>, Failure> {
        let entry = self.entry_in(tree, path).await?.filter(Entry::is_file);
        let Some(Entry { mode, object }) = entry else { return Ok(None) };
        Ok(Some((mode, self.blob(&object).await?)))
    }

    /// The bytes of a file, by the name of its object.
    pub(in crate::git) async fn blob(&self, object: &str) -> Result<Vec<u8>, Failure> {
        self.reader.read(object).await?.map(|found| found.bytes).ok_or_else(|| missing(object))
    }

    /// The entries of a tree; none of no tree.
    pub(in crate::git) async fn entries(&self, tree: Option<&str>) -> Result<Entries, Failure> {
        let Some(tree) = tree else { return Ok(Entries::new()) };
        let bytes = self.reader.tree(tree).await?.ok_or_else(|| missing(tree))?;
        parse(&bytes, tree.len() / 2)
            .ok_or_else(|| Failure::terminal(format!("the tree {tree} cannot be read")))
    }

    /// Whether one commit is an ancestor of the other, if few commits are between them; `None` if
    /// that is not known.
    pub(in crate::git) async fn is_near_ancestor(
        &self,
        ancestor: &str,
        commit: &str,
    ) -> Result<Option<bool>, Failure> {
        for (from, to, answer) in [(commit, ancestor, true), (ancestor, commit, false)] {
            if self.reaches(from, to).await? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    async fn reaches(&self, from: &str, to: &str) -> Result<bool, Failure> {
        let mut seen = BTreeSet::from([from.to_owned()]);
        let mut pending = VecDeque::from([from.to_owned()]);
        while let Some(next) = pending.pop_front().filter(|_| seen.len() <= NEAR) {
            for parent in self.parents(&next).await? {
                if parent == to {
                    return Ok(true);
                }
                if seen.insert(parent.clone()) {
                    pending.push_back(parent);
                }
            }
        }
        Ok(false)
    }

    /// The parents of a commit; none of a missing one, such as the last of a shallow repository.
    pub(in crate::git) async fn parents(&self, commit: &str) -> Result<Vec<String>, Failure> {
        let found = self.reader.read(commit).await?.filter(|found| found.kind == "commit");
        let text = found.map(|found| files::shown(&found.bytes)).unwrap_or_default();
        let lines = text.lines().skip(1).map_while(|line| line.strip_prefix("parent "));
        Ok(lines.map(str::to_owned).collect())
    }
}

/// The change of a path that is no directory on both sides.
fn change(path: Vec<u8>, sides: [Option<&Entry>; 2]) -> Option<Change> {
    let files = sides.map(|side| side.filter(|entry| !entry.is_directory()));
    let there = files.iter().copied().flatten().next()?;
    let [before, after] = files.map(|side| side.cloned().unwrap_or(Entry::absent(&there.object)));
    Some(Change { path, before, after })
}

/// Parses the entries `<mode> <name>\0<object>` of a tree.
fn parse(mut bytes: &[u8], length: usize) -> Option<Entries> {
    use std::fmt::Write as _;
    let mut entries = Entries::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let end = space + bytes[space..].iter().position(|byte| *byte == 0)?;
        let name = bytes[space + 1..end].to_vec();
        let raw = bytes.get(end + 1..end + 1 + length)?;
        let mode = usual_mode(u32::from_str_radix(&files::shown(&bytes[..space]), 8).ok()?);
        let object = raw.iter().fold(String::with_capacity(2 * length), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        entries.insert(name, Entry { mode: mode.to_owned(), object });
        bytes = &bytes[end + 1 + length..];
    }
    Some(entries)
}

/// The mode as git shows it. Trees of old programs have others, too.
fn usual_mode(mode: u32) -> &'static str {
    match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => "100755",
        0o100_000 => "100644",
        0o120_000 => "120000",
        0o040_000 => DIRECTORY,
        _ => "160000",
    }
}

fn missing(object: &str) -> Failure {
    Failure::terminal(format!("the object {object} is not in the repository"))
}

/// The entries of one path in two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct Change {
    /// Relative to the top, as git has it.
    pub(in crate::git) path: Vec<u8>,
    pub(in crate::git) before: Entry,
    pub(in crate::git) after: Entry,
}

/// A mode and an object; an absent entry has the mode `000000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct Entry {
    pub(in crate::git) mode: String,
    pub(in crate::git) object: String,
}

impl Entry {
    pub(in crate::git) fn is_there(&self) -> bool {
        self.mode != "000000"
    }

    pub(in crate::git) fn is_file(&self) -> bool {
        self.is_there() && self.kind() == "blob"
    }

    /// The type of its object.
    pub(super) fn kind(&self) -> &'static str {
        match self.mode.as_str() {
            DIRECTORY => "tree",
            "160000" => "commit",
            _ => "blob",
        }
    }

    /// Whether files under it are invisible to git: it is a symbolic link, or another repository.
    pub(in crate::git) fn hides_files(&self) -> bool {
        matches!(self.mode.as_str(), "120000" | "160000")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_trees_are_parsed() {
        let tree = [b"100664 a b\0".as_slice(), &[1; 20], b"40000 c\0", &[0xab; 20]].concat();
        let entries = parse(&tree, 20).unwrap();
        let file = Entry { mode: "100644".into(), object: "01".repeat(20) };
        let directory = Entry { mode: DIRECTORY.into(), object: "ab".repeat(20) };
        assert_eq!(entries, [(b"a b".to_vec(), file), (b"c".to_vec(), directory)].into());
        assert_eq!(parse(&tree[..tree.len() - 1], 20), None);
    }
}
