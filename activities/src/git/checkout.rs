//! Moves a branch that the user may have checked out. The user's changes are never overwritten.

pub(super) mod filters;
pub(super) mod interrupted;
pub(super) mod own_files;

use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::Land;

use super::checkout::own_files::stage;
use super::command::directories::git_dir;
use super::command::{Git, is_contention};
use super::damage::{damaged_index, remove_broken_orig_head};
use super::files;
use super::locks::stale::foreign_lock;
use super::names::{NEXT, branch_ref};
use super::objects::read::Change;
use super::objects::refs::Repository;
use super::repository::{checked_out, operation_in};
use crate::files::{LIST_LOCK_TIMEOUT, files_lock, lock_list};

/// What to do with changes that block a move. The files are named, because the list may have
/// changes of the user that are to stay.
pub(super) const SET_ASIDE: &str =
    "commit them, or set them aside with `git stash push -u -- FILE`";

/// Attempts on a checkout that another git process is using.
const TRIES: u32 = 5;

/// The result of moving a branch.
#[derive(Debug)]
pub(super) enum MoveResult {
    Moved,
    /// A checkout of the branch cannot follow: path and reason. Nothing was changed.
    Blocked(String),
}

/// The move of a branch, forward or back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) branch: &'a str,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// Files and directories that Longhaul itself writes in the checkout: changes in them are kept
    /// and never block the move.
    pub(super) own_files: &'a [&'a str],
    /// Whether the move goes backward, by a person's request.
    pub(super) back: bool,
}

/// The uncommitted changes of one checkout.
#[derive(Debug, Default)]
struct Changes {
    /// Changed files that Longhaul writes.
    own: HashSet<Vec<u8>>,
    /// All other changed files.
    foreign: Vec<Vec<u8>>,
}

impl Repository {
    /// The checkouts of a branch. A work tree whose directory is gone does not count.
    pub(super) async fn checkouts_of(&self, branch: &str) -> Result<Vec<PathBuf>, Failure> {
        let wanted = self.end_of(branch_ref(branch)).await?;
        if let Some(on) = self.branch_of_only_checkout() {
            let is_on = self.end_of(on).await? == wanted;
            return Ok(if is_on { vec![self.root.clone()] } else { Vec::new() });
        }
        let listed = self.git().args(["worktree", "list", "--porcelain", "-z"]).run().await?;
        let wanted = format!("branch {wanted}");
        let mut found = Vec::new();
        let mut path = PathBuf::new();
        for line in files::nul_separated(&listed.stdout) {
            if let Some(place) = line.strip_prefix(b"worktree ") {
                files::path_of(place).clone_into(&mut path);
                // Git does not know the checkout of a git directory at another place.
                if path == self.common {
                    self.root.clone_into(&mut path);
                }
            } else if line == wanted.as_bytes() && path.is_dir() {
                found.push(path.clone());
            }
        }
        Ok(found)
    }

    /// The ref that a symbolic ref points to; any other ref itself. `longhaul/next` is Longhaul's
    /// own: a symbolic ref in its place is not followed.
    async fn end_of(&self, name: String) -> Result<String, Failure> {
        if name == branch_ref(NEXT) {
            return Ok(name);
        }
        // Most refs are files with an object name; git need not be started for them.
        let loose = files::read(&self.common.join(&name)).ok().flatten();
        if loose.is_some_and(|bytes| !bytes.starts_with(b"ref:")) {
            return Ok(name);
        }
        let pointed = self.git().args(["symbolic-ref", "--quiet"]).arg(&name).find().await?;
        Ok(pointed.unwrap_or(name))
    }

    /// The ref checked out in a repository with one checkout; `None` if there are more, or only git
    /// can read it.
    fn branch_of_only_checkout(&self) -> Option<String> {
        let has_linked = std::fs::read_dir(self.common.join("worktrees"))
            .is_ok_and(|mut linked| linked.next().is_some());
        if has_linked || self.root.join(".git") != self.common {
            return None;
        }
        checked_out(&self.common)
    }

    /// Moves a branch forward, with its checkout if it has one. The caller holds the repository
    /// lock.
    pub(super) async fn advance(&self, step: Step<'_>) -> Result<MoveResult, Failure> {
        let end = self.end_of(branch_ref(step.branch)).await?;
        let step = Step { branch: end.strip_prefix("refs/heads/").unwrap_or(step.branch), ..step };
        if !step.back && !self.is_ancestor(step.from, step.to).await? {
            return Err(stale(format!(
                "`{}` is at {}, which is not an ancestor of {}",
                step.branch, step.from, step.to
            )));
        }
        match self.checkouts_of(step.branch).await?.as_slice() {
            [] => {
                if let Some(lock) = foreign_lock(step.branch, &self.common, None).await? {
                    return Ok(MoveResult::Blocked(lock));
                }
                self.move_ref(&branch_ref(step.branch), Some(step.from), step.to).await?;
                self.sync().await?;
                Ok(MoveResult::Moved)
            }
            [checkout] => self.advance_checkout(checkout, step).await,
            several => Ok(MoveResult::Blocked(format!(
                "`{}` is checked out in several places: {}; leave it checked out in one of them",
                step.branch,
                several
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
        }
    }

    async fn advance_checkout(
        &self,
        checkout: &Path,
        step: Step<'_>,
    ) -> Result<MoveResult, Failure> {
        // Longhaul's own writes wait, so that only the user's meet the move.
        let lock = files_lock(checkout);
        let _lock = lock.lock().await;
        let root = checkout.to_owned();
        let _list = tokio::task::spawn_blocking(move || lock_list(&root, LIST_LOCK_TIMEOUT)).await;
        if let Some(lock) = foreign_lock(step.branch, &self.common, Some(checkout)).await? {
            return Ok(MoveResult::Blocked(lock));
        }
        let changes = match self.changes_if_free(checkout, step).await? {
            Ok(changes) => changes,
            Err(reason) => return Ok(MoveResult::Blocked(reason)),
        };
        let mark = self.mark_work(checkout, step)?;
        let outcome = self.move_checkout(checkout, step, &changes).await?;
        // A power cut before this line leaves empty files; the marker records that they are
        // Longhaul's.
        self.disk
            .sync(&[checkout, &self.common])
            .await
            .map_err(|error| files::failed("sync", checkout, &error))?;
        files::remove(&mark)?;
        Ok(outcome)
    }

    async fn move_checkout(
        &self,
        checkout: &Path,
        step: Step<'_>,
        changes: &Changes,
    ) -> Result<MoveResult, Failure> {
        let own = self.own_changes(step.from, step.to, step.own_files).await?;
        // A user's edit at any moment of the move must survive it.
        let ahead = || own.iter().map(|change| (change.path.as_slice(), &change.after));
        stage(checkout, ahead()).await?;
        let outcome = self.move_with_checkout(checkout, step).await;
        if !matches!(outcome, Ok(MoveResult::Moved)) {
            let back = own.iter().map(|change| (change.path.as_slice(), &change.before));
            stage(checkout, back).await?;
            return outcome;
        }
        let is_edited = |change: &&Change| changes.own.contains(&change.path);
        for change in own.iter().filter(|change| !is_edited(change)) {
            self.bring(checkout, change).await?;
        }
        outcome
    }

    /// Why a checkout cannot follow, if the user's changes block it.
    pub(super) async fn blocker(
        &self,
        checkout: &Path,
        step: Step<'_>,
    ) -> Result<Option<String>, Failure> {
        Ok(self.changes_if_free(checkout, step).await?.err())
    }

    /// The changes in a checkout, or why it cannot follow.
    async fn changes_if_free(
        &self,
        checkout: &Path,
        step: Step<'_>,
    ) -> Result<Result<Changes, String>, Failure> {
        let shown = checkout.display();
        if let Some(operation) = operation_in(&git_dir(checkout).await?) {
            return Ok(Err(format!(
                "{shown} is in the middle of a {operation}; finish or abort it"
            )));
        }
        let changes = changes_in(checkout, step.own_files).await;
        // Git reports a damaged index as changes, or fails.
        if !changes.as_ref().is_ok_and(|changes| changes.foreign.is_empty())
            && let Some(index) = damaged_index(checkout).await?
        {
            let (state, remedy) = if files::is_there(&index) {
                ("damaged", "move it away and run")
            } else {
                ("missing", "run")
            };
            let index = index.display();
            return Ok(Err(format!(
                "the index {index} is {state}; {remedy} `git reset` in {shown}"
            )));
        }
        let changes = changes?;
        if changes.foreign.is_empty() {
            return Ok(Ok(changes));
        }
        let named = named(&changes.foreign);
        Ok(Err(format!("{shown} has uncommitted changes in {named}; {SET_ASIDE}")))
    }

    /// Lets git move a checkout together with the branch.
    async fn move_with_checkout(
        &self,
        checkout: &Path,
        step: Step<'_>,
    ) -> Result<MoveResult, Failure> {
        remove_broken_orig_head(checkout)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let args: &[&str] = if step.back {
                &[
                    "checkout",
                    "--quiet",
                    "--no-overwrite-ignore",
                    "--no-track",
                    "--ignore-other-worktrees",
                    "-B",
                    step.branch,
                    step.to,
                ]
            } else {
                &[
                    "merge",
                    "--ff-only",
                    "--no-overwrite-ignore",
                    "--no-autostash",
                    "--quiet",
                    step.to,
                ]
            };
            if step.back {
                // Refreshes the index: a file rewritten with the same bytes would count as changed.
                Git::at(checkout)
                    .args(["update-index", "-q", "--refresh"])
                    .keep_running_on_drop()
                    .finish()
                    .await?;
            }
            let merged = Git::at(checkout).args(args).keep_running_on_drop().finish().await?;
            if merged.code() == Some(0) {
                return Ok(MoveResult::Moved);
            }
            if merged.machine_cause().is_some() {
                return Err(merged.failure());
            }
            let stderr = merged.error_text().to_owned();
            let dir = checkout.display();
            if !is_contention(&stderr) {
                return Ok(MoveResult::Blocked(refusal(checkout, &stderr)));
            }
            if tries == TRIES {
                let lock = foreign_lock(step.branch, &self.common, Some(checkout)).await?;
                return Ok(MoveResult::Blocked(
                    lock.unwrap_or_else(|| format!("another git is at work in {dir}; wait for it")),
                ));
            }
            // The lock of git is a file that the other git removes: its end is no event.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Detaches HEAD of a checkout and leaves its files as they are.
pub(super) async fn detach(checkout: &Path) -> Result<(), Failure> {
    Git::at(checkout)
        .args(["checkout", "--quiet", "--detach"])
        .keep_running_on_drop()
        .run()
        .await
        .map(drop)
}

/// Why git did not move a checkout. Git indents the names of the blocking files.
fn refusal(checkout: &Path, stderr: &str) -> String {
    let dir = checkout.display();
    let files: Vec<Vec<u8>> = stderr
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .map(|name| name.as_bytes().to_vec())
        .collect();
    if stderr.contains("untracked") && !files.is_empty() {
        return format!(
            "{dir} has untracked files that block it: {}; move or remove them",
            named(&files)
        );
    }
    format!(
        "git could not move {dir} ({})",
        stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

/// Whether a file of Longhaul's, or a directory of its files, covers a path.
pub(super) fn covers(own: &str, path: &[u8]) -> bool {
    let rest = path.strip_prefix(own.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Whether the index version of a file equals HEAD or the file itself.
async fn is_one_change(checkout: &Path, state: &[u8], path: &[u8]) -> Result<bool, Failure> {
    match state {
        b" M" | b"M " => Ok(true),
        b"MM" => {
            let diff = Git::at(checkout).args(["diff", "--no-ext-diff", "--quiet", "--"]);
            diff.arg(files::path_of(path)).answer().await
        }
        _ => Ok(false),
    }
}

/// The paths whose files have the bytes and the mode of the index. Only a filter or a conversion of
/// line ends makes git report them as changed. Git still does not overwrite them.
async fn filtered(checkout: &Path, paths: &[&[u8]]) -> Result<HashSet<Vec<u8>>, Failure> {
    let mut modes = BTreeMap::new();
    for &path in paths {
        let metadata = std::fs::symlink_metadata(checkout.join(files::path_of(path)));
        if let Some(file) = metadata.ok().filter(Metadata::is_file) {
            let is_executable = file.permissions().mode() & 0o100 != 0;
            modes.insert(path, if is_executable { "100755" } else { "100644" });
        }
    }
    if modes.is_empty() {
        return Ok(HashSet::new());
    }
    let names = || modes.keys().map(|path| files::path_of(path));
    let hash = Git::at(checkout).args(["hash-object", "--no-filters", "--"]).args(names());
    let hashes = hash.finish().await?;
    if hashes.code() != Some(0) {
        // A file cannot be read or vanished: it counts as changed.
        return Ok(HashSet::new());
    }
    let in_files: HashSet<Vec<u8>> = (modes.iter().zip(hashes.text().lines()))
        .map(|((path, mode), hash)| [format!("{mode} {hash} 0\t").as_bytes(), path].concat())
        .collect();
    let list = ["ls-files", "--stage", "-z", "--"];
    let in_index = Git::at(checkout).args(list).args(names()).run().await?;
    Ok(files::nul_separated(&in_index.stdout)
        .filter(|entry| in_files.contains(*entry))
        .filter_map(|entry| Some(entry.splitn(2, |byte| *byte == b'\t').nth(1)?.to_vec()))
        .collect())
}

pub(super) fn named(paths: &[Vec<u8>]) -> String {
    const SHOWN: usize = 3;
    let names: Vec<String> = paths.iter().take(SHOWN).map(|path| files::shown(path)).collect();
    let more = paths.len().saturating_sub(SHOWN);
    let rest = if more == 0 { String::new() } else { format!(" (+{more} more)") };
    format!("{}{rest}", names.join(", "))
}

async fn changes_in(checkout: &Path, own_files: &[&str]) -> Result<Changes, Failure> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=no",
        "--no-renames",
        "--ignore-submodules=dirty",
    ];
    let status = Git::at(checkout).args(args).run().await?;
    let mut changes = Changes::default();
    let mut contents = Vec::new();
    for line in files::nul_separated(&status.stdout).filter(|line| line.len() > 3) {
        let state = &line[..2];
        let path = &line[3..];
        let can_be_own = own_files.iter().any(|own| covers(own, path)) && state != b" D";
        if can_be_own && is_one_change(checkout, state, path).await? {
            changes.own.insert(path.to_owned());
        } else if state == b" M" {
            contents.push(path);
        } else {
            changes.foreign.push(path.to_owned());
        }
    }
    for paths in contents.chunks(200) {
        let filtered = filtered(checkout, paths).await?;
        let changed = paths.iter().filter(|path| !filtered.contains(**path));
        changes.foreign.extend(changed.map(|path| path.to_vec()));
    }
    changes.foreign.sort_unstable();
    Ok(changes)
}

/// The changed files of a checkout that keep finished work from landing, for people; `None`: there
/// are none.
pub(super) async fn uncommitted(
    checkout: &Path,
    own_files: &[&str],
) -> Result<Option<String>, Failure> {
    let changes = changes_in(checkout, own_files).await?.foreign;
    Ok((!changes.is_empty()).then(|| named(&changes)))
}

/// The failure for a target that has moved: the work must be merged again.
pub(super) fn stale(message: String) -> Failure {
    Failure::terminal(message).with_code(Land::STALE)
}
