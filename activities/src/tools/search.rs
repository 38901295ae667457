//! `search` and `list`.

use std::fmt::Write as _;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};

use super::text::{Secrets, start_of_line};
use super::tool_tree::{Fault, Kind, ToolTree, quoted, shown};
use super::walk::{Stopped, Walk, glob};

/// The most matching lines of an answer.
const MATCHES: usize = 200;
/// The most bytes of a matching line.
const LINE: usize = 300;
/// The most bytes of an answer.
const BYTES: usize = 24 * 1024;
/// The longest file to search, in bytes.
const SEARCHED: u64 = 4 * 1024 * 1024;
/// The most memory of a compiled expression, in bytes.
const REGEX: usize = 4 * 1024 * 1024;
/// The most entries of a list.
const LISTED: usize = 500;

/// The files that a call looks at.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) tree: &'a ToolTree,
    pub(super) path: Option<&'a str>,
    pub(super) glob: Option<&'a str>,
    pub(super) is_cancelled: &'a dyn Fn() -> bool,
}

/// A search in progress.
struct Search<'a> {
    tree: &'a ToolTree,
    secrets: &'a Secrets,
    regex: Regex,
    answer: String,
    matches: usize,
    too_long: usize,
}

/// The lines that match a regular expression.
pub(super) fn search(scope: Scope<'_>, secrets: &Secrets, pattern: &str) -> Result<String, Fault> {
    let regex = RegexBuilder::new(pattern).size_limit(REGEX).build();
    let regex =
        regex.map_err(|error| format!("`pattern` is not a regular expression: {error}."))?;
    let tree = scope.tree;
    let mut search =
        Search { tree, secrets, regex, answer: String::new(), matches: 0, too_long: 0 };
    let top = tree.path(scope.path.unwrap_or("."))?;
    let stopped = if tree.metadata(&top)?.is_dir() {
        scope.files(&top, &mut |path| search.file(path))?
    } else {
        // A named file is read even if it is long, and its faults are told.
        let content = tree.read(&top, super::tool_tree::LONGEST)?;
        (!search.lines(&top, &content)).then_some(Stopped::Enough)
    };
    let mut answer = search.answer;
    if answer.is_empty() {
        answer.push_str("No line matches.\n");
    }
    let _ = match stopped {
        Some(Stopped::Enough) => writeln!(
            answer,
            "[only the first {} lines: narrow the pattern, `path` or `glob`]",
            search.matches
        ),
        Some(Stopped::TooLong) => {
            writeln!(answer, "[stopped after too many files: narrow `path` or `glob`]")
        }
        None => Ok(()),
    };
    if search.too_long > 0 {
        let _ = writeln!(answer, "[{} long files were skipped]", search.too_long);
    }
    Ok(answer)
}

impl Search<'_> {
    /// Searches a file that a walk found. Returns whether to go on.
    fn file(&mut self, path: &Path) -> Result<bool, Fault> {
        match self.tree.metadata(path) {
            Ok(found) if found.len() > SEARCHED => {
                self.too_long += 1;
                return Ok(true);
            }
            Err(Fault::Call(failure)) => return Err(Fault::Call(failure)),
            _ => {}
        }
        match self.tree.read(path, SEARCHED) {
            Ok(content) => Ok(self.lines(path, &content)),
            // It may be unreadable, or gone by now.
            Err(Fault::Tool(_)) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// Returns whether to go on.
    fn lines(&mut self, path: &Path, content: &[u8]) -> bool {
        if content.is_empty() || content.contains(&0) {
            return true;
        }
        let whole = 0..content.len();
        // Secrets first: one may have several lines.
        let content = self.secrets.redacted_part(content, whole);
        let lines = content.strip_suffix(b"\n").unwrap_or(&content);
        for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !self.regex.is_match(line) {
                continue;
            }
            if self.matches == MATCHES || self.answer.len() > BYTES {
                return false;
            }
            self.matches += 1;
            let file = shown(path.as_os_str());
            let text = start_of_line(&String::from_utf8_lossy(line), LINE);
            let _ = writeln!(self.answer, "{file}:{}:{text}", index + 1);
        }
        true
    }
}

/// A directory, or the files below it that match.
pub(super) fn list(scope: Scope<'_>) -> Result<String, Fault> {
    let top = scope.tree.path(scope.path.unwrap_or("."))?;
    if !scope.tree.metadata(&top)?.is_dir() {
        return Err(format!("{} is not a directory: use `read`.", quoted(&top)).into());
    }
    let mut answer = String::new();
    let mut count = 0;
    let stopped = if scope.glob.is_some() {
        scope.files(&top, &mut |path| {
            count += 1;
            if count <= LISTED {
                let _ = writeln!(answer, "{}", shown(path.as_os_str()));
            }
            Ok(count <= LISTED)
        })?
    } else {
        let (entries, is_more) = scope.tree.entries(&top, LISTED)?;
        for (name, kind) in entries {
            let mark = match kind {
                Kind::Directory => "/".to_owned(),
                Kind::File => String::new(),
                Kind::Link => " (link)".to_owned(),
                Kind::Other(kind) => format!(" ({kind})"),
            };
            let _ = writeln!(answer, "{}{mark}", shown(&name));
        }
        is_more.then_some(Stopped::Enough)
    };
    if answer.is_empty() {
        answer.push_str(if scope.glob.is_some() { "No file matches.\n" } else { "It is empty.\n" });
    }
    if stopped.is_some() {
        let _ = writeln!(answer, "[there are more: narrow `path` or `glob`]");
    }
    Ok(answer)
}

impl Scope<'_> {
    /// Visits the files below a directory that match the glob, if there is one.
    fn files(
        self,
        top: &Path,
        visit: &mut dyn FnMut(&Path) -> Result<bool, Fault>,
    ) -> Result<Option<Stopped>, Fault> {
        let matcher = self.glob.map(glob).transpose()?;
        let walk = Walk::new(self.tree, self.is_cancelled);
        walk.files(top, &mut |path| {
            let below = path.strip_prefix(top).unwrap_or(path);
            let is_wanted = matcher.as_ref().is_none_or(|matcher| matcher.is_match(below));
            if is_wanted { visit(path) } else { Ok(true) }
        })
    }
}
