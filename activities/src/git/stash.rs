//! Stashes files of the user's checkout that people and Longhaul write at any time, while git moves
//! the checkout.
//!
//! The bytes are on disk before the file changes, and are restored after a crash, too.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;
use longhaul_workflows::contracts::ProjectRef;
use serde::{Deserialize, Serialize};

use super::GitHandlers;
use super::checkout::Step;
use super::command::Git;
use super::files;
use super::names::head_ref;
use super::refs::Repository;
use super::repository::git_dir;
use super::stale_locks::clear_lock;

/// The prefix of the marker files for moves in progress.
const AT_WORK: &str = "at-work-";

/// The first line of a saved file; the file's bytes follow.
#[derive(Debug, Serialize, Deserialize)]
struct Home {
    checkout: PathBuf,
    file: String,
}

/// A move of a checkout in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) checkout: PathBuf,
    branch: String,
    pub(super) from: String,
    pub(super) to: String,
}

/// A file that was put aside.
#[derive(Debug)]
pub(super) struct Save {
    place: PathBuf,
    target: PathBuf,
    bytes: Vec<u8>,
}

impl Save {
    /// Restores the file.
    pub(super) fn put_back(&self) -> Result<(), Failure> {
        files::write_durably(&self.target, &self.bytes)?;
        files::remove(&self.place)
    }
}

impl GitHandlers {
    /// Restores the files that a killed Longhaul had put aside in a project. The project's log must
    /// not be in use.
    pub async fn put_back(&self, project: &ProjectRef) -> Result<(), Failure> {
        let repository = self.repository(project).await?;
        let _held = repository.exclusive().await;
        repository.put_back_all().await
    }
}

impl Repository {
    /// Puts a file of a checkout aside, and checks out its HEAD version.
    pub(super) async fn put_aside(&self, checkout: &Path, file: &str) -> Result<Save, Failure> {
        let target = checkout.join(file);
        let bytes = files::read(&target)?.ok_or_else(|| {
            Failure::retryable(format!("{} has just been removed", target.display()))
        })?;
        let home = Home { checkout: checkout.to_owned(), file: file.to_owned() };
        let mut content =
            serde_json::to_vec(&home).map_err(|error| Failure::terminal(error.to_string()))?;
        content.push(b'\n');
        content.extend_from_slice(&bytes);
        let name = blake3::hash(target.as_os_str().as_encoded_bytes()).to_hex();
        let save = Save { place: self.saved.join(format!("file-{}", &name[..16])), target, bytes };
        files::write_durably(&save.place, &content)?;
        let taken = Git::at(checkout)
            .args(["checkout", "--quiet", "HEAD", "--", file])
            .uninterrupted()
            .run()
            .await;
        // The file may have been written at this moment; git refuses to replace unexpected content.
        taken.map_err(crate::machine::into_retryable)?;
        Ok(save)
    }

    /// Records durably that git is moving a checkout, and between which commits: after a crash, its
    /// locks and half-written files are Longhaul's, not the user's.
    pub(super) fn mark_work(&self, checkout: &Path, step: Step<'_>) -> Result<PathBuf, Failure> {
        let move_ = Move {
            checkout: checkout.to_owned(),
            branch: step.branch.to_owned(),
            from: step.from.to_owned(),
            to: step.to.to_owned(),
        };
        let content =
            serde_json::to_vec(&move_).map_err(|error| Failure::terminal(error.to_string()))?;
        let name = blake3::hash(checkout.as_os_str().as_encoded_bytes()).to_hex();
        let mark = self.saved.join(format!("{AT_WORK}{}", &name[..16]));
        files::write_durably(&mark, &content)?;
        Ok(mark)
    }

    /// Completes interrupted moves: restores each checkout from its HEAD.
    async fn end_interrupted_moves(&self) -> Result<(), Failure> {
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
                let branch = self.common.join(format!("{}.lock", head_ref(&move_.branch)));
                let locks =
                    ["index.lock", "HEAD.lock", "ORIG_HEAD.lock"].map(|name| admin.join(name));
                for lock in locks.iter().chain([&branch]) {
                    clear_lock(lock, Some(&move_.checkout)).await?;
                }
                self.end_move(&move_, &admin).await?;
            }
            files::remove(&mark)?;
        }
        Ok(())
    }

    /// Restores files that a crash left aside. A file written since stays, and so does the saved
    /// copy.
    pub(super) async fn put_back_all(&self) -> Result<(), Failure> {
        self.end_interrupted_moves().await?;
        let Ok(entries) = std::fs::read_dir(&self.saved) else { return Ok(()) };
        for place in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let is_save = place.file_name().is_some_and(|name| {
                let name = name.to_string_lossy();
                name.starts_with("file-") && !name.contains('.')
            });
            if is_save && let Some(content) = files::read(&place)? {
                self.put_back_one(place, &content).await?;
            }
        }
        Ok(())
    }

    async fn put_back_one(&self, place: PathBuf, content: &[u8]) -> Result<(), Failure> {
        let (head, bytes) = content
            .split_at(content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len()));
        let Ok(home) = serde_json::from_slice::<Home>(head) else { return set_apart(&place) };
        let save = Save {
            place,
            target: home.checkout.join(&home.file),
            bytes: bytes[1.min(bytes.len())..].to_vec(),
        };
        if files::read(&save.target)?.is_some_and(|now| now == save.bytes) {
            return files::remove(&save.place);
        }
        let git = Git::at(&home.checkout);
        // Git removes a file before it writes it.
        let is_gone = home.checkout.is_dir() && std::fs::symlink_metadata(&save.target).is_err();
        let untouched = is_gone
            || home.checkout.is_dir()
                && git
                    .args(["diff", "--no-ext-diff", "--quiet", "HEAD", "--", &home.file])
                    .answer()
                    .await?;
        if untouched {
            tracing::warn!(
                file = %save.target.display(),
                "putting a file back that was aside when Longhaul was killed",
            );
            return save.put_back();
        }
        set_apart(&save.place)
    }
}

/// Renames a saved copy that must not be restored, so that it is not looked at again.
fn set_apart(place: &Path) -> Result<(), Failure> {
    let kept = files::first_free(|number| place.with_extension(number.to_string()));
    tracing::warn!(
        kept = %kept.display(),
        "a file was written to while it was aside; its earlier bytes are kept there",
    );
    std::fs::rename(place, &kept).map_err(|error| files::failed("set aside", place, &error))
}
