//! Files of a work tree that are too large for a commit. Git would read a sparse file of any size
//! for minutes, and hold a `.gitignore` in memory.

use std::path::Path;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::LeftOut;

use crate::git::command::Git;
use crate::git::files;

/// The largest file of a commit, in bytes.
const LARGEST: u64 = 2_000_000_000;
/// The largest file of rules for git.
const LARGEST_RULES: u64 = 8_000_000;
/// The files of rules that git reads in a work tree.
const RULES: [&str; 2] = [".gitignore", ".gitattributes"];

/// A file that is too large for a commit.
#[derive(Debug)]
pub(super) struct TooLarge {
    /// Relative to the top.
    pub(super) path: Vec<u8>,
    bytes: u64,
}

impl TooLarge {
    pub(super) fn shown(&self) -> LeftOut {
        LeftOut { file: files::shown(&self.path), bytes: self.bytes }
    }

    fn is_rules(&self) -> bool {
        is_rules(&self.path)
    }
}

fn is_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| RULES.iter().any(|rules| rules.as_bytes() == name))
}

/// The size of a file that is too large.
fn large(top: &Path, path: &[u8]) -> Option<u64> {
    let found = std::fs::symlink_metadata(top.join(files::path_of(path))).ok()?;
    let limit = if is_rules(path) { LARGEST_RULES } else { LARGEST };
    (found.is_file() && found.len() > limit).then_some(found.len())
}

/// Whether a file, named relative to a directory, is too large for a commit.
pub(super) fn is_too_large(top: &Path, path: &[u8]) -> bool {
    large(top, path).is_some()
}

/// The files that are too large and that git would add, given the names of all. Rules that are too
/// large are put back or removed: without that, no git command could read the tree.
pub(super) async fn too_large(
    git: impl Fn() -> Git,
    top: &Path,
    names: Vec<Vec<u8>>,
) -> Result<Vec<TooLarge>, Failure> {
    let of = top.to_owned();
    let find = move || {
        let sized = names.into_iter().map(|path| (large(&of, &path), path));
        sized.filter_map(|(bytes, path)| Some(TooLarge { path, bytes: bytes? })).collect()
    };
    let found: Vec<TooLarge> = tokio::task::spawn_blocking(find).await.map_err(|error| {
        Failure::retryable(format!("the search for large files ended: {error}"))
    })?;
    let (rules, mut others): (Vec<_>, Vec<_>) = found.into_iter().partition(TooLarge::is_rules);
    for file in &rules {
        files::remove(&top.join(files::path_of(&file.path)))?;
    }
    if !rules.is_empty() {
        let names = rules.iter().flat_map(|file| [&file.path[..], b"\0"].concat());
        // Fails for those that the index does not have.
        let restore = git().args(["checkout-index", "--force", "-z", "--stdin"]);
        restore.input(names.collect::<Vec<u8>>()).finish().await?;
    }
    if !others.is_empty() {
        // A leading colon would begin a pattern.
        let named = |file: &TooLarge| [b"./", &file.path[..]].concat();
        let names: Vec<_> = others.iter().map(named).collect();
        let check = git().args(["check-ignore", "-z", "--stdin"]).input(names.join(&0));
        // This command refuses literal patterns, and has no others but a leading colon.
        let checked = check.env("GIT_LITERAL_PATHSPECS", "0").finish().await?;
        // Exit code 1: none is ignored.
        if !matches!(checked.code(), Some(0 | 1)) {
            return Err(checked.failure());
        }
        let ignored: Vec<_> = files::nul_separated(&checked.stdout).collect();
        others.retain(|file| !ignored.contains(&&named(file)[..]));
    }
    Ok(rules.into_iter().chain(others).collect())
}

/// A file of a nested repository, if it is too large. `prefix`: the directory of the repository,
/// relative to the top.
pub(super) fn too_large_in(nested: &Path, prefix: &[u8], name: &[u8]) -> Option<TooLarge> {
    large(nested, name).map(|bytes| TooLarge { path: [prefix, name].concat(), bytes })
}

/// Removes rules of a nested repository that are too large.
pub(super) fn remove_large_rules(nested: &Path, prefix: &[u8]) -> Result<Vec<TooLarge>, Failure> {
    let large = RULES.iter().filter_map(|rules| too_large_in(nested, prefix, rules.as_bytes()));
    let large: Vec<_> = large.collect();
    for file in &large {
        files::remove(&nested.join(files::path_of(&file.path[prefix.len()..])))?;
    }
    Ok(large)
}
