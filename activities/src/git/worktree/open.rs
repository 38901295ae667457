//! `OpenWorktree`: the feature's branch, checked out and clean.

use std::path::Path;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{OpenInput, Worktree};

use super::private::{Head, NewHead};
use super::tree::{Condition, Tree};
use crate::git::names::{NEXT, branch, branch_ref, feature_ref, rescue_ref};
use crate::git::objects::read::Change;
use crate::git::objects::refs::{NewCommit, Repository};
use crate::git::objects::snapshot::Snapshot;
use crate::git::tip::TipState;

/// The refs that keep the content found in a tree.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct KeptRefs<'a> {
    /// The branch of the feature.
    pub(in crate::git) branch: &'a str,
    /// The ref for uncommitted files, and for work off the branch.
    pub(in crate::git) rescue: &'a str,
    /// The ref for commits that the branch drops.
    pub(in crate::git) commits: &'a str,
}

impl KeptRefs<'_> {
    /// The message of a commit that keeps uncommitted files.
    fn message(&self) -> String {
        format!("Longhaul: found in the work tree of {}\n", self.branch)
    }
}

impl Repository {
    pub(in crate::git) async fn open_worktree(
        &self,
        input: &OpenInput,
        attempt: &Attempt,
    ) -> Result<Worktree, Failure> {
        let tree = self.tree(input.feature.as_str());
        let branch = branch(&input.feature);
        self.refuse_if_checked_out(&branch).await?;
        let rescue = rescue_ref(&attempt.run, attempt.slot);
        let commits = feature_ref(&attempt.run);
        let tip = self.start_commit(&input.target).await?;
        self.ensure_branch(&branch, &tip).await?;
        let is_sound = tree.condition()? == Condition::Sound;
        let is_clean = self
            .keep_found(&tree, KeptRefs { branch: &branch, rescue: &rescue, commits: &commits })
            .await?;
        if input.called_done && is_sound {
            self.adopt_found(&branch, &rescue).await?;
        }
        let start = self.ensure_branch(&branch, &tip).await?;
        let is_behind = start != tip && self.is_ancestor(&start, &tip).await?;
        let head = if is_behind { tip.clone() } else { start };
        if is_behind {
            self.advance_branch(&branch, &head).await?;
        }
        if is_clean && !is_behind {
            tree.begin_use()?;
            self.write_private(&tree, NewHead::on(&branch, &input.target), &head).await?;
        } else {
            self.ready(&tree, NewHead::on(&branch, &input.target), &head).await?;
        }
        self.remember_base(&tree, &head, &tip).await?;
        let rescued = self.commit_of(&rescue).await?.map(|_| rescue);
        let has_work = head != tip && !self.is_ancestor(&head, &tip).await?;
        let landed = if input.may_have_landed {
            self.landed_before(&input.target, &input.feature, &attempt.run).await?
        } else {
            None
        };
        Ok(Worktree { branch, head, rescued, has_work, landed })
    }

    /// Adds the uncommitted files of a session that had ended to the branch.
    async fn adopt_found(&self, branch: &str, rescue: &str) -> Result<(), Failure> {
        let Some(found) = self.commit_of(rescue).await? else { return Ok(()) };
        let Some(tip) = self.branch_commit(branch).await? else { return Ok(()) };
        if self.is_ancestor(&tip, &found).await? {
            return self.advance_branch(branch, &found).await;
        }
        if self.merge_base(&tip, &found).await?.is_none() {
            return Ok(());
        }
        // With a date of its own, each attempt would make another commit.
        let at = Some(self.time_of(&found).await?);
        let message = "Longhaul: found in the work tree\n";
        match self.merged_onto(&tip, &found, message, at).await? {
            Some(commit) => self.advance_branch(branch, &commit).await,
            None => Ok(()),
        }
    }

    /// A commit on the tip with what another commit adds to it; `None` if that is nothing, or if
    /// it conflicts.
    pub(in crate::git) async fn merged_onto(
        &self,
        tip: &str,
        other: &str,
        message: &str,
        at: Option<i64>,
    ) -> Result<Option<String>, Failure> {
        let merged = self.merge_commits(tip, other).await?;
        if !merged.conflicts.is_empty() || merged.tree == self.tree_of(tip).await? {
            return Ok(None);
        }
        let commit = NewCommit { tree: &merged.tree, parents: &[tip], message, at };
        self.commit(&commit).await.map(Some)
    }

    /// Refuses a branch that is checked out: moving it would make the files there look changed.
    async fn refuse_if_checked_out(&self, branch: &str) -> Result<(), Failure> {
        match self.checkouts_of(branch).await?.first() {
            Some(checkout) => Err(Failure::terminal(format!(
                "`{branch}` is already checked out in {}; check out another branch there, then \
                 resume the feature",
                checkout.display()
            ))),
            None => Ok(()),
        }
    }

    /// The commit to start from. A conflict between the target and `longhaul/next` does not block
    /// work on a feature; the merge reports it.
    pub(in crate::git) async fn start_commit(&self, target: &str) -> Result<String, Failure> {
        let _guard = self.exclusive().await;
        match self.tip(target, None).await {
            Ok(tip) => Ok(tip),
            Err(failure) => match self.tip_state(target).await? {
                TipState::Both { next, .. } => {
                    tracing::warn!(%failure, "starting from {NEXT}");
                    Ok(next)
                }
                _ => Err(failure),
            },
        }
    }

    async fn ensure_branch(&self, branch: &str, tip: &str) -> Result<String, Failure> {
        let _guard = self.exclusive().await;
        if let Some(commit) = self.branch_commit(branch).await? {
            return Ok(commit);
        }
        self.move_ref(&branch_ref(branch), None, tip).await?;
        Ok(tip.to_owned())
    }

    async fn advance_branch(&self, branch: &str, to: &str) -> Result<(), Failure> {
        let _guard = self.exclusive().await;
        let from = self.branch_commit(branch).await?;
        self.move_ref(&branch_ref(branch), from.as_deref(), to).await
    }

    /// The commit of a feature's branch.
    pub(in crate::git) async fn branch_commit(
        &self,
        branch: &str,
    ) -> Result<Option<String>, Failure> {
        self.commit_of(&branch_ref(branch)).await
    }

    /// Adopts the commits of a tree's own branch, and keeps everything else in the tree that is not
    /// on the branch. Returns whether the tree is sound and clean on the branch.
    pub(in crate::git) async fn keep_found(
        &self,
        tree: &Tree,
        kept: KeptRefs<'_>,
    ) -> Result<bool, Failure> {
        let condition = tree.condition()?;
        let is_link = tree.path.is_symlink();
        if condition == Condition::Missing && (is_link || !has_files(&tree.path)) {
            return Ok(false);
        }
        tree.let_read();
        let (head, tip) = self.take_private(tree, kept).await?;
        let is_on_branch = head.on.as_deref() == Some(&*branch_ref(kept.branch));
        let Some(base) = head.commit.clone().or_else(|| tip.clone()) else { return Ok(false) };
        if !tree.is_half_reset() && !self.descends_from_content(tree, &base).await? {
            return self.keep_content(tree, kept, &base).await;
        }
        let is_current = tip.as_ref() == Some(&base) && tree.at()?.as_ref() == Some(&base);
        let is_settled = is_on_branch && !tree.is_half_reset() && !tree.has_unfinished();
        if condition == Condition::Sound && is_current && is_settled && tree.is_as_indexed().await?
        {
            return Ok(true);
        }
        // The index of a suspect tree cannot be trusted, and a tree that was never checked out has
        // none: files missing then were not deleted.
        let index = if condition == Condition::Sound { tree.index() } else { tree.no_index() };
        let snapshot = Snapshot::take(self, &tree.path, &index, &base).await?;
        let is_indexed = snapshot.had_index;
        let state = snapshot.tree().await?;
        let changes = self.changes(&base, &state).await?;
        let is_loss = |change: &Change| !is_indexed && !change.after.is_there();
        let has_changes = !tree.is_half_reset() && !changes.iter().all(is_loss);
        let has_strayed = match &tip {
            Some(tip) => !self.is_ancestor(&base, tip).await?,
            None => true,
        };
        if has_changes || has_strayed {
            self.keep(kept.rescue, &state, Some(&base), &kept.message()).await?;
        }
        Ok(is_settled && is_indexed && changes.is_empty() && is_current)
    }

    /// Whether a commit contains the one that the files of a tree were checked out from. If not,
    /// the branch was deleted or moved, for example because an older copy of the repository came
    /// back.
    async fn descends_from_content(&self, tree: &Tree, commit: &str) -> Result<bool, Failure> {
        let Some(at) = tree.at()? else { return Ok(true) };
        if at == commit {
            return Ok(true);
        }
        Ok(self.commit_of(&at).await?.is_some() && self.is_ancestor(&at, commit).await?)
    }

    /// Keeps all files of a tree on top of the commit that they come from, or on none if the
    /// repository has lost it: on any other commit, they would take back what that one has.
    async fn keep_content(
        &self,
        tree: &Tree,
        kept: KeptRefs<'_>,
        fallback: &str,
    ) -> Result<bool, Failure> {
        let from = self.origin_of(tree).await?;
        let state = self.content_of(tree, from.as_deref().unwrap_or(fallback)).await?;
        self.keep(kept.rescue, &state, from.as_deref(), &kept.message()).await?;
        Ok(false)
    }

    /// The files of a tree as they are, whatever its index says; those that git ignores count if a
    /// commit lists them.
    pub(in crate::git) async fn content_of(
        &self,
        tree: &Tree,
        listed: &str,
    ) -> Result<String, Failure> {
        Snapshot::take(self, &tree.path, &tree.no_index(), listed).await?.tree().await
    }

    /// The commit that the files of a tree come from, as far as the repository still has it.
    pub(in crate::git) async fn origin_of(&self, tree: &Tree) -> Result<Option<String>, Failure> {
        for known in [tree.at()?, tree.base()?].into_iter().flatten() {
            if let Some(commit) = self.commit_of(&known).await? {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    /// Adopts the branch of a tree where a program moved it; returns HEAD and the branch.
    pub(in crate::git) async fn take_private(
        &self,
        tree: &Tree,
        kept: KeptRefs<'_>,
    ) -> Result<(Head, Option<String>), Failure> {
        let moved = self.private_branch(tree, kept.branch).await?;
        if let Some(commit) = &moved {
            self.take_branch(kept, commit).await?;
        }
        let tip = self.branch_commit(kept.branch).await?;
        let head = self.head_of(tree).await?;
        if head.on.as_deref() != Some(&*branch_ref(kept.branch)) {
            return Ok((head, tip));
        }
        let commit = match &tip {
            Some(tip) if moved.as_ref() != Some(tip) && !tree.has_set_branch(tip)? => {
                let found = match &head.commit {
                    Some(commit) => self.commit_of(commit).await?,
                    None => None,
                };
                found.or(self.origin_of(tree).await?)
            }
            // The branch in the private repository may lag the project's after a crash.
            _ => tip.clone(),
        };
        Ok((Head { commit, ..head }, tip))
    }

    /// Moves the branch of a feature to the commit in the agent's private repository.
    async fn take_branch(&self, kept: KeptRefs<'_>, commit: &str) -> Result<(), Failure> {
        let tip = self.branch_commit(kept.branch).await?;
        if tip.as_deref() == Some(commit) {
            return Ok(());
        }
        if let Some(tip) = &tip
            && !self.is_ancestor(tip, commit).await?
        {
            self.keep_commits(kept.commits, tip).await?;
        }
        self.move_ref(&branch_ref(kept.branch), tip.as_deref(), commit).await
    }
}

fn has_files(dir: &Path) -> bool {
    std::fs::read_dir(dir).is_ok_and(|entries| {
        entries.filter_map(Result::ok).any(|entry| entry.file_name() != ".git")
    })
}
