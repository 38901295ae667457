//! Longhaul's own files in the user's checkout while git moves it: the feature list,
//! `claude-progress.txt` and the files below `.longhaul/`.
//!
//! Users edit them at any time, so git never writes them: before the move, their index entries are
//! set to the new commit, which git then keeps. After it, an unchanged file gets its new content.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;
use longhaul_workflows::contracts::ProjectRef;
use serde::{Deserialize, Serialize};

use super::{Step, covers};
use crate::files as own_files;
use crate::git::GitHandlers;
use crate::git::command::Git;
use crate::git::command::directories::git_dir;
use crate::git::files;
use crate::git::locks::stale::clear_lock;
use crate::git::names::branch_ref;
use crate::git::objects::read::{Change, Entry};
use crate::git::objects::refs::Repository;
use crate::git::objects::trees::set_entries;

/// The prefix of the marker files for moves in progress.
const AT_WORK: &str = "at-work-";

/// A move of a checkout in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::git) struct Move {
    pub(in crate::git) checkout: PathBuf,
    branch: String,
    pub(in crate::git) from: String,
    pub(in crate::git) to: String,
    /// Longhaul's own files and directories in it.
    pub(in crate::git) own_files: Vec<String>,
}

impl GitHandlers {
    /// Completes the moves of checkouts that a killed Longhaul left. The project's log must not be
    /// in use.
    pub async fn end_moves(&self, project: &ProjectRef) -> Result<(), Failure> {
        let repository = self.repository(project).await?;
        let _guard = repository.exclusive().await;
        repository.end_interrupted_moves().await
    }
}

impl Repository {
    /// The changes of Longhaul's own files between two commits.
    pub(in crate::git) async fn own_changes(
        &self,
        from: &str,
        to: &str,
        own: &[&str],
    ) -> Result<Vec<Change>, Failure> {
        if own.is_empty() {
            return Ok(Vec::new());
        }
        let changes = self.changes(from, to).await?.into_iter();
        let is_own = |change: &Change| own.iter().any(|file| covers(file, &change.path));
        Ok(changes.filter(is_own).collect())
    }

    /// Records durably that git is moving a checkout, and between which commits: after a crash, its
    /// locks and half-written files are Longhaul's, not the user's.
    pub(in crate::git) fn mark_work(
        &self,
        checkout: &Path,
        step: Step<'_>,
    ) -> Result<PathBuf, Failure> {
        let move_ = Move {
            checkout: checkout.to_owned(),
            branch: step.branch.to_owned(),
            from: step.from.to_owned(),
            to: step.to.to_owned(),
            own_files: step.own_files.iter().map(|&file| file.to_owned()).collect(),
        };
        let content =
            serde_json::to_vec(&move_).map_err(|error| Failure::terminal(error.to_string()))?;
        let name = blake3::hash(checkout.as_os_str().as_encoded_bytes()).to_hex();
        let mark = self.saved.join(format!("{AT_WORK}{}", &name[..16]));
        files::write_durably(&mark, &content)?;
        Ok(mark)
    }

    /// Completes interrupted moves: restores each checkout from its HEAD.
    pub(in crate::git) async fn end_interrupted_moves(&self) -> Result<(), Failure> {
        for entry in std::fs::read_dir(&self.saved).into_iter().flatten().flatten() {
            let mark = entry.path();
            let is_mark = entry.file_name().to_string_lossy().starts_with(AT_WORK);
            let Some(content) = (if is_mark { files::read(&mark)? } else { None }) else {
                continue;
            };
            // The checkout of a moved project no longer exists at its path.
            if let Ok(move_) = serde_json::from_slice::<Move>(&content)
                && let Ok(admin) = git_dir(&move_.checkout).await
            {
                let branch = self.common.join(format!("{}.lock", branch_ref(&move_.branch)));
                let locks =
                    ["index.lock", "HEAD.lock", "ORIG_HEAD.lock"].map(|name| admin.join(name));
                for lock in locks.iter().chain([&branch]) {
                    clear_lock(lock, Some(&move_.checkout)).await?;
                }
                self.end_move(&move_, &admin).await?;
                // The mark may be on another disk: a power cut must not keep its removal and lose
                // the restored files.
                self.disk
                    .sync(&[&move_.checkout, &self.common])
                    .await
                    .map_err(|error| files::failed("sync", &move_.checkout, &error))?;
            }
            files::remove(&mark)?;
        }
        Ok(())
    }
}

/// Sets the index entries of files.
pub(in crate::git) async fn stage<'a>(
    checkout: &Path,
    entries: impl Iterator<Item = (&'a [u8], &'a Entry)>,
) -> Result<(), Failure> {
    let entries: Vec<_> = entries.collect();
    set_entries(Git::at(checkout).keep_running_on_drop(), &entries).await
}

impl Repository {
    /// Brings a file of a checkout to the new commit, if it is as in the old one. An edit stays.
    pub(in crate::git) async fn bring(
        &self,
        checkout: &Path,
        change: &Change,
    ) -> Result<(), Failure> {
        let path = checkout.join(files::path_of(&change.path));
        let old = files::read(&path)?;
        let new = match &old {
            // Git converts nothing in such a file.
            Some(old) if self.has_bytes(&change.before, old).await? => {
                self.bytes_of(&change.after).await?
            }
            Some(old) if !is_committed(checkout, change, old).await? => return Ok(()),
            None if change.before.is_there() => return Ok(()),
            _ => converted(checkout, change).await?,
        };
        // A file that was edited since it was read stays, too.
        let written = tokio::task::spawn_blocking(move || {
            match (&old, &new) {
                (Some(old), Some(new)) => own_files::swap(&path, old, new).map(drop),
                (None, Some(new)) => own_files::create(&path, new).map(drop),
                (Some(old), None) => own_files::remove(&path, old).map(drop),
                (None, None) => Ok(()),
            }
            .map_err(|error| files::failed("write", &path, &error))
        });
        written.await.map_err(|error| Failure::retryable(format!("a task ended early: {error}")))?
    }

    async fn has_bytes(&self, entry: &Entry, bytes: &[u8]) -> Result<bool, Failure> {
        Ok(self.bytes_of(entry).await?.as_deref() == Some(bytes))
    }

    async fn bytes_of(&self, entry: &Entry) -> Result<Option<Vec<u8>>, Failure> {
        if entry.is_there() { self.blob(&entry.object).await.map(Some) } else { Ok(None) }
    }
}

/// Whether git would commit these bytes of a file as the old content.
async fn is_committed(checkout: &Path, change: &Change, bytes: &[u8]) -> Result<bool, Failure> {
    let hash = Git::at(checkout).args(["hash-object", "--stdin"]).arg(as_named(change));
    Ok(hash.input(bytes).text().await? == change.before.object)
}

/// The new content of a file, as git writes it.
async fn converted(checkout: &Path, change: &Change) -> Result<Option<Vec<u8>>, Failure> {
    if !change.after.is_there() {
        return Ok(None);
    }
    let show = Git::at(checkout).args(["cat-file", "--filters"]).arg(as_named(change));
    Ok(Some(show.arg(&change.after.object).run().await?.stdout))
}

fn as_named(change: &Change) -> std::ffi::OsString {
    let mut named = std::ffi::OsString::from("--path=");
    named.push(files::path_of(&change.path));
    named
}
