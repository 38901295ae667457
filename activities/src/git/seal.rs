//! `Seal`: reverts protected files and commits the rest.

pub(super) mod notes;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{OutsideChange, SealInput, Sealed, Tampering};

use super::files;
use super::message::message;
use super::names::{branch, branch_ref, feature_ref, rescue_ref};
use super::objects::read::Change;
use super::objects::refs::{NewCommit, Repository};
use super::objects::snapshot::Snapshot;
use super::protected::{Protected, is_own, put_back, restore_entries};
use super::worktree::head::{ExpectedBranch, add_report, earlier_reports, kept_message};
use super::worktree::open::KeptRefs;
use super::worktree::private::NewHead;
use super::worktree::tree::{Condition, Tree};

/// The commits with which the content of a tree is compared.
struct ComparedCommits {
    /// The last commit of the target in the history of the work.
    base: String,
    /// The base before the target was moved back, or the agent left it.
    left: Option<String>,
    /// The last commit of the work.
    head: String,
}

impl Repository {
    pub(super) async fn seal(
        &self,
        input: &SealInput,
        attempt: &Attempt,
    ) -> Result<Sealed, Failure> {
        let protected = Protected::of(&input.protected, &input.list_file)?;
        let tree = self.feature_tree(&input.feature);
        let branch = branch(&input.feature);
        let rescue = rescue_ref(&attempt.run, attempt.slot);
        let commits = feature_ref(&attempt.run);
        let kept = KeptRefs { branch: &branch, rescue: &rescue, commits: &commits };
        let message = message(&input.subject(), "", &input.feature, &attempt.run);
        let mut reports = self
            .kept_message(&rescue)
            .await?
            .map(|text| earlier_reports(&text))
            .unwrap_or_default();

        self.ready_to_seal(&tree, kept, &input.target).await?;
        let expected = ExpectedBranch { kept, target: &input.target, message: &message };
        let head = self.return_to_branch(&tree, expected, &mut reports).await?;
        let base = match self.base_of(&head, &input.target).await? {
            Some(base) => base,
            None => self.tip_state(&input.target).await?.commit().to_owned(),
        };
        let left = self.left_base(&tree, &base).await?;
        let notes = self.notes_in(&tree.path, left.as_deref().unwrap_or(&base)).await?;

        let snapshot = Snapshot::take(self, &tree.path, &tree.index(), &head).await?;
        let compared = ComparedCommits { base, left, head };
        self.restore_protected(&tree, &snapshot, &protected, &compared, &rescue, &mut reports)
            .await?;
        let ComparedCommits { base, head, .. } = compared;
        let state = snapshot.tree().await?;
        let commit = self.commit_state(&tree, &branch, &head, &state, &message).await?;
        files::copy_with_time(&snapshot.file(), &tree.index())?;
        tree.set_at(&commit)?;
        self.write_private(&tree, NewHead::on(&branch, &input.target), &commit).await?;

        let files = self.changed_files(&base, &commit).await?;
        let rescued = self.commit_of(&rescue).await?.map(|_| rescue);
        let outside = self.foreign_moves(&tree, &input.target, attempt).await?;
        Ok(Sealed {
            commit,
            files,
            tampered: reports,
            left_out: snapshot.left_out(),
            rescued,
            notes: notes.text,
            unread_notes: notes.unread,
            outside,
        })
    }

    /// Branches that were moved outside of Longhaul during the session.
    async fn foreign_moves(
        &self,
        tree: &Tree,
        target: &str,
        attempt: &Attempt,
    ) -> Result<Vec<OutsideChange>, Failure> {
        let _guard = self.exclusive().await;
        let next = self.restore_next(target).await?;
        Ok(next.into_iter().chain(self.moved_outside(tree, target, attempt).await?).collect())
    }

    /// Makes the tree ready. A suspect tree is never sealed: its content is kept, and it is
    /// recreated from the branch, or from the ref that closing the feature left.
    async fn ready_to_seal(
        &self,
        tree: &Tree,
        kept: KeptRefs<'_>,
        target: &str,
    ) -> Result<(), Failure> {
        if tree.condition()? == Condition::Sound {
            return Ok(());
        }
        if self.branch_commit(kept.branch).await?.is_none() {
            let _guard = self.exclusive().await;
            let start = match self.commit_of(kept.commits).await? {
                Some(commit) => commit,
                None => self.tip_state(target).await?.commit().to_owned(),
            };
            self.move_ref(&branch_ref(kept.branch), None, &start).await?;
        }
        self.keep_found(tree, kept).await?;
        let commit = self.branch_commit(kept.branch).await?.unwrap_or_default();
        self.ready(tree, NewHead::on(kept.branch, target), &commit).await
    }

    /// Reverts protected files to the base after keeping their state, and excludes Longhaul's own
    /// files from the commit.
    async fn restore_protected(
        &self,
        tree: &Tree,
        snapshot: &Snapshot,
        protected: &Protected,
        compared: &ComparedCommits,
        rescue: &str,
        reports: &mut Vec<Tampering>,
    ) -> Result<(), Failure> {
        let ComparedCommits { base, left, head } = compared;
        let changes = self.changes(base, &snapshot.tree().await?).await?;
        let (own, changes): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| is_own(&change.path));
        let mut tampered: Vec<_> =
            changes.into_iter().filter(|change| protected.covers_change(change)).collect();
        if let (Some(left), false) = (left, tampered.is_empty()) {
            let since = self.changes(left, &snapshot.tree().await?).await?;
            tampered.retain(|change| since.iter().any(|since| since.path == change.path));
        }
        let hidden = protected.hidden(self, snapshot, base).await?;
        if !tampered.is_empty() || !hidden.is_empty() {
            // For a file that an earlier attempt reported, the remaining difference is a half-done
            // revert.
            let known: Vec<String> =
                reports.iter().map(|tampering| tampering.file.clone()).collect();
            for change in
                tampered.iter().filter(|change| !known.contains(&files::shown(&change.path)))
            {
                for tampering in protected.describe(self, change).await? {
                    add_report(reports, tampering);
                }
            }
            for path in &hidden {
                add_report(
                    reports,
                    Tampering {
                        file: files::shown(path),
                        what: "added, and hidden by ignore rules".to_owned(),
                    },
                );
            }
            let half_reverted = self.half_reverted(snapshot, rescue, &known).await?;
            restore_entries(snapshot, &half_reverted).await?;
            let state = snapshot.tree_with(&hidden).await?;
            self.keep(rescue, &state, Some(head), &kept_message(reports)).await?;
            let found: Vec<_> =
                half_reverted.iter().map(|change| (&change.path[..], &change.after)).collect();
            snapshot.set(&found).await?;
            put_back(&tree.path, snapshot, &tampered, &hidden).await?;
        }
        restore_entries(snapshot, &own).await
    }

    /// Differences to the state that a killed attempt kept, in files that it reported. It was
    /// reverting these, so the kept side is that of the agent.
    async fn half_reverted(
        &self,
        snapshot: &Snapshot,
        rescue: &str,
        known: &[String],
    ) -> Result<Vec<Change>, Failure> {
        let Some(kept) = self.commit_of(rescue).await? else { return Ok(Vec::new()) };
        let mut changes = self.changes(&kept, &snapshot.tree().await?).await?;
        changes.retain(|change| known.contains(&files::shown(&change.path)));
        Ok(changes)
    }

    /// Commits a state on the branch, if it has changed or ends a merge.
    async fn commit_state(
        &self,
        tree: &Tree,
        branch: &str,
        head: &str,
        state: &str,
        message: &str,
    ) -> Result<String, Failure> {
        let mut parents = vec![head.to_owned()];
        for merged in &tree.merging()? {
            if let Some(merged) = self.commit_of(merged).await?
                && !self.is_ancestor(&merged, head).await?
            {
                parents.push(merged);
            }
        }
        if parents.len() == 1 && self.tree_of(head).await? == state {
            return Ok(head.to_owned());
        }
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let commit =
            self.commit(&NewCommit { tree: state, parents: &parents, message, at: None }).await?;
        tree.set_sealed(&commit)?;
        self.move_ref(&branch_ref(branch), Some(head), &commit).await?;
        Ok(commit)
    }
}
