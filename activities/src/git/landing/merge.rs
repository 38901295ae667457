//! `MergeCandidate`: the commit that would land, and the tree in which its gates run.

use std::sync::{Arc, PoisonError};

use chrono::DateTime;
use longhaul_engine::{Attempt, Failure, RunId};
use longhaul_workflows::contracts::{MergeInput, MergeStyle, Merged, PassMark};
use tokio::sync::OwnedMutexGuard;

use crate::git::files;
use crate::git::list;
use crate::git::message::message;
use crate::git::names::integration;
use crate::git::objects::read::{Change, Entry};
use crate::git::objects::refs::{NewCommit, Repository};
use crate::git::protected::Protected;
use crate::git::worktree::private::NewHead;
use crate::git::worktree::tree::Tree;

/// A merged tree, the files that it changes, and those whose change was dropped.
struct MergedTree {
    tree: String,
    files: Vec<String>,
    put_back: Vec<String>,
}

impl Repository {
    pub(in crate::git) async fn merge_candidate(
        &self,
        input: &MergeInput,
        attempt: &Attempt,
    ) -> Result<Merged, Failure> {
        let at = DateTime::parse_from_rfc3339(&input.at).map_err(|error| {
            Failure::terminal(format!("`{}` is not an RFC 3339 time: {error}", input.at))
        })?;
        let (tip, outside) = {
            let _guard = self.exclusive().await;
            let outside = self.restore_next(&input.target).await?.into_iter().collect();
            (self.tip(&input.target, Some(&input.list_file)).await?, outside)
        };
        let left = self.left_by(&self.tree(input.feature.as_str()), &input.commit, &tip).await?;
        let merged = self.merge_on_base(&tip, &input.commit, left.as_deref()).await?;
        if !merged.conflicts.is_empty() {
            let files = merged.conflicts.iter().map(|path| files::shown(path)).collect();
            return Ok(Merged::Conflict { tip, files, output: merged.output });
        }
        // The activity that runs in the tree checks out the commit.
        let MergedTree { tree: merged, mut files, put_back } =
            self.keep_protected(&tip, merged.tree, input).await?;
        let same_as_work = merged == self.tree_of(&input.commit).await?;
        let candidate = |commit, files| Merged::Candidate {
            commit,
            tip: tip.clone(),
            files,
            same_as_work,
            put_back,
            outside,
        };
        if self.has_landed_already(&tip, &merged, input, &attempt.run).await? {
            return Ok(candidate(tip.clone(), Vec::new()));
        }
        let tree = self.marked(merged.clone(), input).await?;
        if tree != merged && !files.contains(&input.list_file) {
            files.push(input.list_file.clone());
            files.sort();
        }
        let parents: &[&str] = match input.style {
            MergeStyle::Squash => &[&tip],
            MergeStyle::Merge => &[&tip, &input.commit],
        };
        let message = message(&input.subject, &input.body, &input.feature, &attempt.run);
        let new = NewCommit { tree: &tree, parents, message: &message, at: Some(at.timestamp()) };
        let commit = self.commit(&new).await?;
        Ok(candidate(commit, files))
    }

    /// A merged tree with the protected files of the tip. Sealing has reverted an agent's changes
    /// to them, but a merge can move files too.
    async fn keep_protected(
        &self,
        tip: &str,
        tree: String,
        input: &MergeInput,
    ) -> Result<MergedTree, Failure> {
        let protected = Protected::of(&input.protected, "")?;
        let changes = self.changes(tip, &tree).await?;
        let is_protected = |change: &Change| {
            change.path != input.list_file.as_bytes() && protected.covers_change(change)
        };
        let (protected_changes, kept): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(is_protected);
        let names =
            |changes: &[Change]| changes.iter().map(|change| files::shown(&change.path)).collect();
        let files = names(&kept);
        let put_back = names(&protected_changes);
        let entries: Vec<(&[u8], &Entry)> =
            protected_changes.iter().map(|change| (&*change.path, &change.before)).collect();
        let tree =
            if entries.is_empty() { tree } else { self.with_entries(&tree, &entries).await? };
        Ok(MergedTree { tree, files, put_back })
    }

    /// Whether the work has landed: by this run, if a log repair lost the record, or by another run
    /// with the same result.
    async fn has_landed_already(
        &self,
        tip: &str,
        merged: &str,
        input: &MergeInput,
        run: &RunId,
    ) -> Result<bool, Failure> {
        // Work that continues on a landed commit contains that commit.
        if self
            .landing(&[tip.to_owned()], Some(&input.commit), &input.feature, run)
            .await?
            .is_some()
        {
            return Ok(true);
        }
        if self.tree_of(tip).await? != merged {
            return Ok(false);
        }
        let listed = self.file_in(tip, &input.list_file).await?;
        Ok(listed.is_some_and(|(_, text)| list::passes(&text, &input.feature)))
    }

    /// The tree with features marked as passing in the list, if the tree contains the list.
    async fn marked(&self, tree: String, input: &MergeInput) -> Result<String, Failure> {
        let others = match &input.mark {
            PassMark::Later => return Ok(tree),
            PassMark::Own => &[][..],
            PassMark::With(others) => others,
        };
        let Some((mode, text)) = self.file_in(&tree, &input.list_file).await? else {
            return Ok(tree);
        };
        match list::with_passed(&text, &input.feature, others, &input.at) {
            Some(marked) => self.with_file(&tree, &input.list_file, &mode, marked.as_bytes()).await,
            None => Ok(tree),
        }
    }

    /// An integration work tree, reset to a commit. No agent works there.
    ///
    /// The guard gives exclusive use: after a repair of the log, two runs may share a tree number.
    pub(in crate::git) async fn integration_at(
        &self,
        commit: &str,
        tree: u32,
    ) -> Result<(Tree, OwnedMutexGuard<()>), Failure> {
        let lock = {
            let mut locks = self.integration.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(tree).or_default())
        };
        let guard = lock.lock_owned().await;
        let tree = self.tree(&integration(tree));
        self.ready(&tree, NewHead::Commit, commit).await?;
        Ok((tree, guard))
    }
}
