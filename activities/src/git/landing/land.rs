//! `Land` and `Follow`: fast-forward the target branch, and its checkout, to commits whose gates
//! passed.

use longhaul_engine::{Failure, FailureKind, Probe};
use longhaul_workflows::contracts::{FollowInput, Land, LandInput, Landed};

use crate::git::checkout::stale;
use crate::git::checkout::{MoveResult, Step};
use crate::git::names::{NEXT, OWN_DIR, PROGRESS_FILE, branch_ref};
use crate::git::objects::refs::Repository;
use crate::git::tip::TipState;

impl Repository {
    pub(in crate::git) async fn land(&self, input: &LandInput) -> Result<Landed, Failure> {
        let _guard = self.exclusive().await;
        self.end_interrupted_moves().await?;
        let outside: Vec<_> = self.restore_next(&input.target).await?.into_iter().collect();
        if self.has_landed(&input.target, &input.commit).await? {
            let landed = self.settle(&input.target, &input.list_file).await?;
            return Ok(Landed { outside, ..landed });
        }
        let tip = self.tip(&input.target, Some(&input.list_file)).await?;
        if tip != input.tip {
            return Err(stale(format!(
                "{} was made on {}, but `{}` or `{NEXT}` has moved to {tip} since; merge it again",
                input.commit, input.tip, input.target
            )));
        }
        if !self.is_ancestor(&tip, &input.commit).await? {
            return Err(stale(format!(
                "{} is not based on {tip}, the tip of `{}`",
                input.commit, input.target
            )));
        }
        if let Some(version) = &input.version
            && self.listed.is_edited(&self.root, &input.feature, version).await
        {
            let message =
                format!("the list or the settings have another version of {} now", input.feature);
            return Err(Failure::terminal(message).with_code(Land::EDITED));
        }
        self.remember_landing(&input.commit)?;
        let landed = self.move_target(&input.target, &input.commit, &input.list_file).await?;
        Ok(Landed { outside, ..landed })
    }

    pub(in crate::git) async fn follow(&self, input: &FollowInput) -> Result<Landed, Failure> {
        let _guard = self.exclusive().await;
        self.end_interrupted_moves().await?;
        let outside = self.restore_next(&input.target).await?.into_iter().collect();
        let landed = self.settle(&input.target, &input.list_file).await?;
        Ok(Landed { outside, ..landed })
    }

    /// Probes whether the commit has landed.
    pub(in crate::git) async fn probe_landing(
        &self,
        input: &LandInput,
    ) -> Result<Probe<Landed>, Failure> {
        let _guard = self.exclusive().await;
        self.end_interrupted_moves().await?;
        if !self.has_landed(&input.target, &input.commit).await? {
            return Ok(Probe::NotHappened);
        }
        let target_commit = self.target_commit(&input.target).await?;
        let waits_on_next = match self.tip_state(&input.target).await? {
            TipState::Target(_) => None,
            TipState::Next(_) | TipState::Both { .. } => {
                Some(format!("`{NEXT}` is ahead of `{}` in {}", input.target, self.root.display()))
            }
        };
        Ok(Probe::Happened(Landed::at(target_commit, waits_on_next)))
    }

    async fn has_landed(&self, target: &str, commit: &str) -> Result<bool, Failure> {
        for tip in
            [self.commit_of(&branch_ref(target)).await?, self.next().await?].into_iter().flatten()
        {
            if self.is_ancestor(commit, &tip).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves the target to the tip, if commits wait on `longhaul/next`.
    async fn settle(&self, target: &str, list_file: &str) -> Result<Landed, Failure> {
        let target_commit = self.target_commit(target).await?;
        let tip = match self.tip_state(target).await? {
            TipState::Target(tip) | TipState::Next(tip) => tip,
            TipState::Both { .. } => {
                // No gate has passed on a merge of both.
                let (can_merge, reason) = match self.tip(target, Some(list_file)).await {
                    Ok(_) => (
                        true,
                        format!(
                            "`{target}` has moved on meanwhile; the merge with `{NEXT}` lands once \
                             the gates pass on it: run again, or `git merge {NEXT}` on `{target}`"
                        ),
                    ),
                    Err(Failure { kind: FailureKind::Terminal, message, .. }) => (false, message),
                    Err(failure) => return Err(failure),
                };
                return Ok(Landed { can_merge, ..Landed::at(target_commit, Some(reason)) });
            }
        };
        if target_commit == tip {
            self.drop_next(target).await?;
            return Ok(Landed::at(tip, None));
        }
        self.move_target(target, &tip, list_file).await
    }

    /// Moves the target to a commit, or `longhaul/next` if the user's checkout blocks that.
    async fn move_target(
        &self,
        target: &str,
        to: &str,
        list_file: &str,
    ) -> Result<Landed, Failure> {
        let from = self.target_commit(target).await?;
        let step = Step {
            branch: target,
            from: &from,
            to,
            own_files: &[list_file, PROGRESS_FILE, OWN_DIR],
            back: false,
        };
        match self.advance(step).await? {
            MoveResult::Moved => {
                self.drop_next(target).await?;
                let target_commit = self.target_commit(target).await?;
                Ok(Landed::at(target_commit, None))
            }
            MoveResult::Blocked(reason) => {
                let next = self.commit_of(&branch_ref(NEXT)).await?;
                if next.as_deref() != Some(to) {
                    self.move_next(next.as_deref(), to).await?;
                }
                let waits = format!("{reason}, then run again, or `git merge {NEXT}`");
                Ok(Landed::at(from, Some(waits)))
            }
        }
    }

    /// Moves `longhaul/next`, creating it if needed.
    pub(in crate::git) async fn move_next(
        &self,
        from: Option<&str>,
        to: &str,
    ) -> Result<(), Failure> {
        let Some(from) = from else {
            self.record_next(&[to])?;
            return self.move_ref(&branch_ref(NEXT), None, to).await;
        };
        if !self.is_ancestor(from, to).await? {
            return Err(stale(format!("`{NEXT}` is at {from}, which is not an ancestor of {to}")));
        }
        self.record_next(&[from, to])?;
        match self.advance(Step { branch: NEXT, from, to, own_files: &[], back: false }).await? {
            MoveResult::Moved => Ok(()),
            MoveResult::Blocked(reason) => {
                Err(Failure::retryable(format!("`{NEXT}` cannot move: {reason}")))
            }
        }
    }

    /// Deletes `longhaul/next` once the target contains it, unless the user has it checked out.
    async fn drop_next(&self, target: &str) -> Result<(), Failure> {
        let Some(next) = self.commit_of(&branch_ref(NEXT)).await? else { return Ok(()) };
        let included = self.is_ancestor(&next, &self.target_commit(target).await?).await?;
        if included && self.checkouts_of(NEXT).await?.is_empty() {
            self.delete_ref(&branch_ref(NEXT), &next).await?;
            self.record_next(&[])?;
        }
        Ok(())
    }
}
