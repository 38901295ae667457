//! `Seal`: protected files put back, and the rest committed.

use std::path::Path;

use longhaul_engine::{Attempt, Failure};
use longhaul_workflows::contracts::{SealInput, Sealed, Tampering};

use super::files;
use super::head::{Belongs, kept_message, tell, told_before};
use super::message::message;
use super::names::{branch, feature_ref, head_ref, rescue_ref};
use super::protected::{Protected, is_own, put_back, restore_entries};
use super::refs::{NewCommit, Repository};
use super::snapshot::Snapshot;
use super::worktree::{Stand, Tree};

impl Repository {
    pub(super) async fn seal(&self, input: &SealInput, attempt: &Attempt) -> Result<Sealed, Failure> {
        let protected = Protected::of(input)?;
        let path = self.own_path(Path::new(&input.worktree), &input.project.id)?;
        let branch = branch(&input.feature);
        let rescue = rescue_ref(&attempt.run, attempt.slot);
        let message = message(&input.subject, "", &input.feature, &attempt.run);
        let mut told = self.kept_message(&rescue).await?.map(|text| told_before(&text)).unwrap_or_default();

        let kept = feature_ref(&attempt.run);
        let tree = self.tree_to_seal(&path, &branch, [&kept, &input.target], &rescue).await?;
        let belongs = Belongs { branch: &branch, target: &input.target, rescue: &rescue, message: &message };
        self.return_to_branch(&tree, belongs, &mut told).await?;
        let head = tree.head().await?.ok_or_else(|| Failure::retryable(format!("`{branch}` has no commit")))?;
        let base = match self.base_of(&head, &input.target).await? {
            Some(base) => base,
            None => self.lead(&input.target).await?.commit().to_owned(),
        };
        let notes = self.notes_in(&tree.path, &base).await?;

        let snapshot = Snapshot::take(self, &tree.path, &tree.index(), &head).await?;
        self.restore_protected(&tree, &snapshot, &protected, [&base, &head], &rescue, &mut told).await?;
        let state = snapshot.tree().await?;
        let commit = self.commit_state(&tree, &branch, &head, &state, &message).await?;
        // Written last: until here the work tree's own index still says what was merged and staged.
        let index = files::read(&snapshot.file())?.unwrap_or_default();
        files::write_durably(&tree.index(), &index)?;
        tree.forget_unfinished()?;

        let files = self.changes(&base, &commit).await?.iter().map(|change| files::shown(&change.path)).collect();
        let rescued = self.commit_of(&rescue).await?.map(|_| rescue);
        Ok(Sealed { commit, files, tampered: told, rescued, notes })
    }

    /// The work tree; made again from its branch if it was destroyed, or from what was kept when it was closed.
    async fn tree_to_seal(
        &self,
        path: &Path,
        branch: &str,
        [kept, target]: [&str; 2],
        rescue: &str,
    ) -> Result<Tree, Failure> {
        if let Some(tree) = self.find_tree(path).await? {
            return Ok(tree);
        }
        let _held = self.exclusive().await;
        let commit = if let Some(commit) = self.branch_commit(branch).await? {
            commit
        } else {
            let start = match self.commit_of(kept).await? {
                Some(kept) => kept,
                None => self.lead(target).await?.commit().to_owned(),
            };
            self.move_ref(&head_ref(branch), None, &start).await?;
            start
        };
        self.keep_remains(path, &commit, rescue).await?;
        let tree = self.add_tree(path, Stand::Branch(branch)).await?;
        tree.reset_to(&commit).await?;
        Ok(tree)
    }

    /// Puts protected files back as the base has them, after keeping what was there, and takes Longhaul's own files out of
    /// what is committed.
    async fn restore_protected(
        &self,
        tree: &Tree,
        snapshot: &Snapshot,
        protected: &Protected,
        [base, head]: [&str; 2],
        rescue: &str,
        told: &mut Vec<Tampering>,
    ) -> Result<(), Failure> {
        let changes = self.changes(base, &snapshot.tree().await?).await?;
        let (own, changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| is_own(&change.path));
        let tampered: Vec<_> = changes.into_iter().filter(|change| protected.covers_change(change)).collect();
        let hidden = protected.hidden(self, snapshot, base).await?;
        if !tampered.is_empty() || !hidden.is_empty() {
            // Of a file that an earlier attempt told of, what is left now is half of its putting back.
            let known: Vec<String> = told.iter().map(|tampering| tampering.file.clone()).collect();
            for change in tampered.iter().filter(|change| !known.contains(&files::shown(&change.path))) {
                for tampering in protected.describe(self, change).await? {
                    tell(told, tampering);
                }
            }
            for path in &hidden {
                tell(
                    told,
                    Tampering { file: files::shown(path), what: "added, and hidden by ignore rules".to_owned() },
                );
            }
            self.keep(rescue, &snapshot.tree_with(&hidden).await?, Some(head), &kept_message(told)).await?;
            put_back(&tree.path, snapshot, &tampered, &hidden).await?;
        }
        restore_entries(snapshot, &own).await
    }

    /// Commits a state on the branch, if it is a new one or ends a merge.
    async fn commit_state(
        &self,
        tree: &Tree,
        branch: &str,
        head: &str,
        state: &str,
        message: &str,
    ) -> Result<String, Failure> {
        let mut parents = vec![head.to_owned()];
        let merging = files::read(&tree.admin.join("MERGE_HEAD"))?.unwrap_or_default();
        for merged in files::shown(&merging).lines().map(str::trim) {
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
        let commit = self.commit(&NewCommit { tree: state, parents: &parents, message, at: None }).await?;
        self.move_ref(&head_ref(branch), Some(head), &commit).await?;
        Ok(commit)
    }
}
