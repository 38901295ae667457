//! A walk over the files of a work tree, as `.gitignore` allows.
//!
//! Nothing is opened before its type is known: a `.gitignore` may be a named pipe or a link.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::tool_tree::{Fault, GIT, Kind, ToolTree};

/// The most entries to look at.
const ENTRIES: usize = 500_000;
/// The longest walk.
const LONGEST: Duration = Duration::from_mins(1);
/// The deepest directory.
const DEEPEST: usize = 200;
/// The longest `.gitignore` that counts, in bytes.
const LONGEST_IGNORE: u64 = 1024 * 1024;

/// Where a walk ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The visitor wants no more.
    Enough,
    /// It took too long, or there were too many entries.
    TooLong,
}

/// A walk in progress.
pub(super) struct Walk<'a> {
    tree: &'a ToolTree,
    /// Whether the call was cancelled.
    is_cancelled: &'a dyn Fn() -> bool,
    until: Instant,
    left: usize,
    /// The rules of each directory from the top to the current one.
    rules: Vec<Gitignore>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(tree: &'a ToolTree, is_cancelled: &'a dyn Fn() -> bool) -> Self {
        let until = Instant::now() + LONGEST;
        Self { tree, is_cancelled, until, left: ENTRIES, rules: Vec::new() }
    }

    /// Visits the files below a directory, in the order of their names; those that `.gitignore`
    /// names, repositories and links are skipped. A visitor that returns `false` ends the walk.
    pub(super) fn files(
        mut self,
        top: &Path,
        visit: &mut dyn FnMut(&Path) -> Result<bool, Fault>,
    ) -> Result<Option<Stopped>, Fault> {
        // The rules above the top hold below it too; the excluded files of the repository first.
        self.push_rules(Path::new(""), &Path::new(GIT).join("info/exclude"));
        let mut above = PathBuf::new();
        self.push_rules(&above, Path::new(".gitignore"));
        for part in top.iter().filter(|part| *part != ".") {
            above.push(part);
            self.push_rules(&above, &above.join(".gitignore"));
        }
        self.directory(&above, visit)
    }

    fn directory(
        &mut self,
        directory: &Path,
        visit: &mut dyn FnMut(&Path) -> Result<bool, Fault>,
    ) -> Result<Option<Stopped>, Fault> {
        let named = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        // A directory may be unreadable, or gone by now.
        let (entries, is_more) = match self.tree.entries(named, self.left) {
            Ok(found) => found,
            Err(Fault::Tool(_)) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        self.left = self.left.saturating_sub(entries.len());
        for (name, kind) in entries {
            if (self.is_cancelled)() || Instant::now() > self.until {
                return Ok(Some(Stopped::TooLong));
            }
            let path = directory.join(&name);
            let is_directory = kind == Kind::Directory;
            let is_wanted = is_directory || kind == Kind::File;
            if !is_wanted || name == GIT || self.ignores(&path, is_directory) {
                continue;
            }
            if !is_directory {
                if !visit(&path)? {
                    return Ok(Some(Stopped::Enough));
                }
            } else if path.iter().count() < DEEPEST {
                self.push_rules(&path, &path.join(".gitignore"));
                let stopped = self.directory(&path, visit)?;
                self.rules.pop();
                if stopped.is_some() {
                    return Ok(stopped);
                }
            }
        }
        Ok(is_more.then_some(Stopped::TooLong))
    }

    /// Adds the rules in a file for a directory; none if it is not a readable file.
    fn push_rules(&mut self, directory: &Path, file: &Path) {
        let mut builder = GitignoreBuilder::new(directory);
        let content = self.tree.read(file, LONGEST_IGNORE).unwrap_or_default();
        for line in String::from_utf8_lossy(&content).lines() {
            // A line that is no pattern counts for nothing, as with git.
            let _ = builder.add_line(None, line);
        }
        self.rules.push(builder.build().unwrap_or_else(|_| Gitignore::empty()));
    }

    fn ignores(&self, path: &Path, is_directory: bool) -> bool {
        let decided = self.rules.iter().rev().map(|rules| rules.matched(path, is_directory));
        decided.into_iter().find(|found| !found.is_none()).is_some_and(|found| found.is_ignore())
    }
}

/// A pattern for files below a directory: without a slash, for their names.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, Fault> {
    let pattern = pattern.trim_start_matches("./");
    let anywhere = if pattern.contains('/') { pattern.into() } else { format!("**/{pattern}") };
    match GlobBuilder::new(&anywhere).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(Fault::Tool(format!("`glob` is not a pattern: {error}."))),
    }
}
