//! Files that an agent may not change: matches, describes and reverts them.

use std::collections::HashSet;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use longhaul_engine::Failure;
use longhaul_workflows::contracts::Tampering;

use super::checkout::covers;
use super::command::Git;
use super::files;
use super::list;
use super::names::{OWN_DIR, PROGRESS_FILE};
use super::objects::read::{Change, Entry};
use super::objects::refs::Repository;
use super::objects::snapshot::Snapshot;
use super::objects::trees::temporary_dir;

/// The protected files of a project.
#[derive(Debug)]
pub(super) struct Protected {
    globs: GlobSet,
    list_file: String,
}

impl Protected {
    /// Parses the globs. `*` stops at a slash, `**` does not; a directory name covers its content.
    pub(super) fn of(protected: &[String], list_file: &str) -> Result<Self, Failure> {
        let mut globs = GlobSetBuilder::new();
        for text in protected {
            let text = text.trim_start_matches("./").trim_end_matches('/');
            globs.add(glob(text)?).add(glob(&format!("{text}/**"))?);
        }
        let globs =
            globs.build().map_err(|error| Failure::terminal(format!("`protected`: {error}")))?;
        Ok(Self { globs, list_file: list_file.to_owned() })
    }

    pub(super) fn covers(&self, path: &[u8]) -> bool {
        path == self.list_file.as_bytes() || self.globs.is_match(files::path_of(path))
    }

    /// Whether a change is to a protected file, or to something that could hide protected files
    /// under it.
    pub(super) fn covers_change(&self, change: &Change) -> bool {
        let hides = change.before.hides_files() || change.after.hides_files();
        self.covers(&change.path)
            || hides && self.globs.is_match(files::path_of(&change.path).join("any"))
    }

    /// Describes the change to a protected file; for the list, one sentence for each change in it.
    pub(super) async fn describe(
        &self,
        repo: &Repository,
        change: &Change,
    ) -> Result<Vec<Tampering>, Failure> {
        let file = files::shown(&change.path);
        let texts = match (change.before.is_there(), change.after.is_there()) {
            (false, _) => vec!["added".to_owned()],
            (_, false) => vec!["deleted".to_owned()],
            _ if change.after.mode == "120000" => vec!["replaced by a symbolic link".to_owned()],
            _ if change.before.object == change.after.object => {
                vec!["its mode was changed".to_owned()]
            }
            _ if file == self.list_file => list::differences(
                &repo.blob(&change.before.object).await?,
                &repo.blob(&change.after.object).await?,
            ),
            _ => vec!["changed".to_owned()],
        };
        Ok(texts.into_iter().map(|what| Tampering { file: file.clone(), what }).collect())
    }

    /// Protected files that were added and then hidden by new ignore rules. Files that the base
    /// also ignores are fine: caches beside acceptance scripts, for example.
    pub(super) async fn hidden(
        &self,
        repo: &Repository,
        snapshot: &Snapshot,
        base: &str,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let found = snapshot.ignored(|path| self.covers(path) && !is_own(path)).await?;
        if found.is_empty() {
            return Ok(found);
        }
        let fine = ignored_by(repo, base, &found).await?;
        Ok(found.into_iter().filter(|path| !fine.contains(path)).collect())
    }
}

/// Whether Longhaul writes this path in a work tree and never commits it.
pub(super) fn is_own(path: &[u8]) -> bool {
    covers(OWN_DIR, path) || path == PROGRESS_FILE.as_bytes()
}

/// Reverts protected files, in the work tree and in the snapshot.
pub(super) async fn put_back(
    work_tree: &Path,
    snapshot: &Snapshot,
    changes: &[Change],
    hidden: &[Vec<u8>],
) -> Result<(), Failure> {
    let added =
        changes.iter().filter(|change| !change.before.is_there()).map(|change| &change.path);
    for path in added.chain(hidden) {
        remove_with_empty_parents(work_tree, files::path_of(path))?;
    }
    restore_entries(snapshot, changes).await?;
    let there: Vec<&[u8]> = changes
        .iter()
        .filter(|change| change.before.is_there())
        .map(|change| change.path.as_slice())
        .collect();
    if there.is_empty() {
        return Ok(());
    }
    let args = ["checkout-index", "--force", "--quiet", "-z", "--stdin"];
    snapshot.git().args(args).input(there.join(&0)).run().await.map(drop)
}

/// Puts the earlier side of changes into the snapshot.
pub(super) async fn restore_entries(
    snapshot: &Snapshot,
    changes: &[Change],
) -> Result<(), Failure> {
    let entries: Vec<(&[u8], &Entry)> =
        changes.iter().map(|change| (change.path.as_slice(), &change.before)).collect();
    snapshot.set(&entries).await
}

fn glob(text: &str) -> Result<Glob, Failure> {
    let built = GlobBuilder::new(text).literal_separator(true).build();
    built.map_err(|error| {
        Failure::terminal(format!("`protected` in longhaul.toml has a wrong glob: {error}"))
    })
}

/// Removes a file, and its parent directories that become empty. Git has walked here without
/// following links, so no parent of the path is one.
pub(super) fn remove_with_empty_parents(top: &Path, path: &Path) -> Result<(), Failure> {
    files::remove(&top.join(path))?;
    for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
        if std::fs::remove_dir(top.join(parent)).is_err() {
            break;
        }
    }
    Ok(())
}

/// The paths that the ignore files of a commit cover, checked in a repository that has nothing
/// else.
async fn ignored_by(
    repo: &Repository,
    commit: &str,
    paths: &[Vec<u8>],
) -> Result<HashSet<Vec<u8>>, Failure> {
    let dir = temporary_dir()?;
    let top = dir.path();
    Git::at(top).args(["init", "--quiet", "--template="]).run().await?;
    let listed = repo
        .plumbing
        .git()
        .args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit])
        .run()
        .await?;
    for path in files::nul_separated(&listed.stdout)
        .map(files::path_of)
        .filter(|path| path.ends_with(".gitignore"))
    {
        if let Some((_, bytes)) = repo.file_in(commit, &path.to_string_lossy()).await? {
            files::write_durably(&top.join(path), &bytes)?;
        }
    }
    // The command takes patterns; the prefix `./` keeps paths from being special ones.
    let queries: Vec<Vec<u8>> =
        paths.iter().map(|path| [b"./", path.as_slice()].concat()).collect();
    let git = Git::at(top).env("GIT_LITERAL_PATHSPECS", "0").args([
        "check-ignore",
        "--no-index",
        "-z",
        "--stdin",
    ]);
    let finished = git.input(queries.join(&0)).finish().await?;
    if !matches!(finished.code(), Some(0 | 1)) {
        return Err(finished.failure());
    }
    Ok(files::nul_separated(&finished.stdout).map(|path| path[2..].to_vec()).collect())
}
