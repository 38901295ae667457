//! `MergeCandidate`: the commit that would land, checked out where its gates can be run.

use chrono::DateTime;
use longhaul_engine::{Attempt, Failure, RunId};
use longhaul_workflows::contracts::{MergeInput, MergeStyle, Merged};

use super::files;
use super::list;
use super::message::message;
use super::names::integration;
use super::open::shown;
use super::private::Stand;
use super::refs::{NewCommit, Repository};
use super::tree::{Condition, Tree};

impl Repository {
    pub(super) async fn merge_candidate(&self, input: &MergeInput, attempt: &Attempt) -> Result<Merged, Failure> {
        let at = DateTime::parse_from_rfc3339(&input.at)
            .map_err(|error| Failure::terminal(format!("`{}` is no time of RFC 3339: {error}", input.at)))?;
        let tip = {
            let _held = self.exclusive().await;
            self.tip(&input.target, Some(&input.list_file)).await?
        };
        let merged = self.merge_commits(&tip, &input.commit).await?;
        if !merged.conflicts.is_empty() {
            let files = merged.conflicts.iter().map(|path| files::shown(path)).collect();
            return Ok(Merged::Conflict { tip, files, output: merged.output });
        }
        if self.is_there_already(&tip, &merged.tree, input, &attempt.run).await? {
            let worktree = shown(&self.integration_at(&tip, input.tree).await?.path);
            return Ok(Merged::Candidate { commit: tip.clone(), tip, worktree, files: Vec::new() });
        }
        let tree = self.marked(merged.tree, input).await?;
        let parents: &[&str] = match input.style {
            MergeStyle::Squash => &[&tip],
            MergeStyle::Merge => &[&tip, &input.commit],
        };
        let message = message(&input.subject, &input.body, &input.feature, &attempt.run);
        let new = NewCommit { tree: &tree, parents, message: &message, at: Some(at.timestamp()) };
        let commit = self.commit(&new).await?;
        let integration = self.integration_at(&commit, input.tree).await?;
        let files = self.changes(&tip, &commit).await?.iter().map(|change| files::shown(&change.path)).collect();
        Ok(Merged::Candidate { commit, tip, worktree: shown(&integration.path), files })
    }

    /// Whether the work landed before: by this run, whose log has lost that since, or done again without another result.
    async fn is_there_already(
        &self,
        tip: &str,
        merged: &str,
        input: &MergeInput,
        run: &RunId,
    ) -> Result<bool, Failure> {
        // Work that was continued on what landed contains that commit.
        if self.landing(&[tip.to_owned()], Some(&input.commit), &input.feature, run).await?.is_some() {
            return Ok(true);
        }
        if self.tree_of(tip).await? != merged {
            return Ok(false);
        }
        let listed = self.file_in(tip, &input.list_file).await?;
        Ok(listed.is_some_and(|(_, text)| list::passes(&text, &input.feature)))
    }

    /// The tree with the feature marked as passing in the list, if the list is in it.
    async fn marked(&self, tree: String, input: &MergeInput) -> Result<String, Failure> {
        let Some((mode, text)) = self.file_in(&tree, &input.list_file).await? else { return Ok(tree) };
        match list::with_passed(&text, &input.feature, &input.at) {
            Some(marked) => self.with_file(&tree, &input.list_file, &mode, marked.as_bytes()).await,
            None => Ok(tree),
        }
    }

    /// An integration work tree at a commit. No agent works there, and what a candidate left that did not land, installed
    /// packages for one, must not make the next one pass.
    pub(super) async fn integration_at(&self, commit: &str, tree: u32) -> Result<Tree, Failure> {
        let tree = self.tree(&integration(tree));
        if tree.condition()? == Condition::Sound
            && let Some(before) = tree.at()?
            && !self.is_ancestor(&before, commit).await?
        {
            tree.empty().await?;
        }
        self.ready(&tree, Stand::Commit, commit).await?;
        Ok(tree)
    }
}
