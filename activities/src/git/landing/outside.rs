//! Branches that were moved outside of Longhaul: by a person, or by an agent without a sandbox.
//!
//! The target belongs to its owner and may move at any time; that is reported. `longhaul/next`
//! belongs to Longhaul: its commits land without further gates. So Longhaul records its value where
//! no sandboxed agent can write; any other value is reported, kept under a ref and reverted.

use std::path::PathBuf;

use longhaul_engine::{Attempt, Failure, RunId};
use longhaul_workflows::contracts::OutsideChange;
use longhaul_workflows::feature::feature_run;

use crate::git::checkout::detach;
use crate::git::files;
use crate::git::message::is_of_project;
use crate::git::names::{NEXT, branch_ref, foreign_ref};
use crate::git::objects::refs::Repository;
use crate::git::worktree::tree::{TargetSeen, Tree};

/// The number of landed commits remembered. If more land during one session, it reports the oldest
/// as foreign.
const REMEMBERED: usize = 1000;

impl Repository {
    /// The value of `longhaul/next` that Longhaul set.
    pub(in crate::git) async fn next(&self) -> Result<Option<String>, Failure> {
        let found = self.commit_of(&branch_ref(NEXT)).await?;
        self.ours(found.as_ref()).await
    }

    /// As [`Self::next`], for the value that was found there.
    async fn ours(&self, found: Option<&String>) -> Result<Option<String>, Failure> {
        let Some(ours) = self.recorded_next()? else { return Ok(found.cloned()) };
        if let Some(found) = found.filter(|found| ours.contains(found)) {
            return Ok(Some(found.clone()));
        }
        // The later one first: an interrupted landing is completed.
        for commit in ours.iter().rev() {
            if self.commit_of(commit).await?.is_some() {
                return Ok(Some(commit.clone()));
            }
        }
        Ok(None)
    }

    /// Accepts `longhaul/next` if nothing was recorded, because the data directory is new or was
    /// restored, and a run of this project made the commit, or the one that it joins to the target.
    pub(in crate::git) async fn adopt_next(&self) -> Result<(), Failure> {
        if self.recorded_next()?.is_some() {
            return Ok(());
        }
        let Some(found) = self.commit_of(&branch_ref(NEXT)).await? else {
            return self.record_next(&[]);
        };
        let is_ours = match self.commit_of(&format!("{found}^2")).await? {
            Some(joined) => self.is_landing(&joined).await? || self.is_landing(&found).await?,
            None => self.is_landing(&found).await?,
        };
        let ours = [found.as_str()];
        self.record_next(if is_ours { &ours } else { &[] })
    }

    /// Whether a run of this project made a commit, by its trailers.
    async fn is_landing(&self, commit: &str) -> Result<bool, Failure> {
        let project = self.worktrees.file_name().unwrap_or_default().to_string_lossy();
        let show = ["log", "-1", "--no-show-signature", "--format=%B", commit];
        let message = self.plumbing.git().args(show).text().await?;
        Ok(is_of_project(&message, &project))
    }

    /// Records the values that `longhaul/next` may have: before it moves both, so that a crash in
    /// between leaves nothing foreign; after a deletion none.
    pub(in crate::git) fn record_next(&self, commits: &[&str]) -> Result<(), Failure> {
        files::write_durably(&self.next_record(), commits.join("\n").as_bytes())
    }

    /// Reverts `longhaul/next` to Longhaul's value and keeps the foreign one. The caller holds the
    /// repository lock.
    pub(in crate::git) async fn restore_next(
        &self,
        target: &str,
    ) -> Result<Option<OutsideChange>, Failure> {
        let found = self.commit_of(&branch_ref(NEXT)).await?;
        let ours = self.ours(found.as_ref()).await?;
        if found == ours {
            return Ok(None);
        }
        let tip = self.target_commit(target).await?;
        // A value that the target contains no longer waits.
        let ours = match ours {
            Some(ours) if !self.is_ancestor(&ours, &tip).await? => Some(ours),
            _ => None,
        };
        match &found {
            Some(found) => {
                if ours.is_none() && self.is_ancestor(found, &tip).await? {
                    return Ok(None);
                }
                let kept = foreign_ref(found);
                let before = self.commit_of(&kept).await?;
                self.move_ref(&kept, before.as_deref(), found).await?;
                for checkout in self.checkouts_of(NEXT).await? {
                    detach(&checkout).await?;
                }
            }
            None if ours.is_none() => {
                self.record_next(&[])?;
                return Ok(None);
            }
            None => {}
        }
        match (&found, &ours) {
            (_, Some(ours)) => self.move_ref(&branch_ref(NEXT), found.as_deref(), ours).await?,
            (Some(found), None) => self.delete_ref(&branch_ref(NEXT), found).await?,
            (None, None) => {}
        }
        let change =
            OutsideChange { branch: NEXT.to_owned(), from: ours, to: found, put_back: true };
        tracing::warn!(root = %self.root.display(), "{change}");
        Ok(Some(change))
    }

    /// Records a commit that Longhaul puts on the target or on `longhaul/next`.
    pub(in crate::git) fn remember_landing(&self, commit: &str) -> Result<(), Failure> {
        let mut known = self.landings()?;
        if known.iter().any(|known| known == commit) {
            return Ok(());
        }
        known.push(commit.to_owned());
        let first = known.len().saturating_sub(REMEMBERED);
        files::write(&self.directory().join("landed"), known[first..].join("\n").as_bytes())
    }

    /// Records the target when a session begins. A session that is retried after a crash keeps its
    /// first record.
    pub(in crate::git) async fn remember_target(
        &self,
        tree: &Tree,
        target: &str,
        attempt: &Attempt,
    ) -> Result<(), Failure> {
        let session = attempt.key();
        if tree.target_seen()?.is_some_and(|seen| seen.session == session) {
            return Ok(());
        }
        let commit = self.target_commit(target).await?;
        tree.set_target_seen(&session, &commit)
    }

    /// The foreign moves of the target since the session began.
    pub(in crate::git) async fn moved_outside(
        &self,
        tree: &Tree,
        target: &str,
        attempt: &Attempt,
    ) -> Result<Option<OutsideChange>, Failure> {
        let run = feature_run(&attempt.run);
        let is_of_run = |seen: &TargetSeen| {
            let session = seen.session.rsplit_once('@').and_then(|(id, _)| RunId::new(id).ok());
            session.is_some_and(|session| feature_run(&session) == run)
        };
        let seen = tree.target_seen()?.filter(is_of_run);
        let Some(TargetSeen { commit: from, .. }) = seen else { return Ok(None) };
        let to = self.target_commit(target).await?;
        if from == to {
            return Ok(None);
        }
        if self.commit_of(&from).await?.is_some() && self.is_ancestor(&from, &to).await? {
            let known = self.landings()?;
            let range = format!("{from}..{to}");
            let listed = self.git().args(["rev-list", "--first-parent", &range]).text().await?;
            if listed.lines().all(|commit| known.iter().any(|known| known == commit)) {
                return Ok(None);
            }
        }
        Ok(Some(OutsideChange {
            branch: target.to_owned(),
            from: Some(from),
            to: Some(to),
            put_back: false,
        }))
    }

    /// The recorded values of `longhaul/next`; `None`: nothing was recorded.
    fn recorded_next(&self) -> Result<Option<Vec<String>>, Failure> {
        Ok(files::read(&self.next_record())?.map(|bytes| lines(&bytes)))
    }

    pub(in crate::git) fn landings(&self) -> Result<Vec<String>, Failure> {
        Ok(lines(&files::read(&self.directory().join("landed"))?.unwrap_or_default()))
    }

    fn next_record(&self) -> PathBuf {
        self.directory().join("next")
    }

    /// Longhaul's own directory of the project, in the data directory.
    fn directory(&self) -> PathBuf {
        self.records.parent().unwrap_or(&self.records).to_owned()
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    files::shown(bytes).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}
