//! Histories that were rewritten: an agent amended the first commit, or a person moved the target
//! back.

use longhaul_engine::Failure;

use super::tree::Tree;
use crate::git::objects::refs::{NewCommit, Repository};

impl Repository {
    /// A commit of an agent, if it has an ancestor in common with the branch as Longhaul left it;
    /// else its content as a commit on that branch. Without a common ancestor, a merge would take
    /// every file for a new one, and each edit for a conflict.
    pub(in crate::git) async fn with_history(
        &self,
        tree: &Tree,
        commit: &str,
    ) -> Result<String, Failure> {
        let Some(base) = tree.branch_at()? else { return Ok(commit.to_owned()) };
        if self.commit_of(&base).await?.is_none() || self.merge_base(&base, commit).await?.is_some()
        {
            return Ok(commit.to_owned());
        }
        // With a date of its own, each attempt would make another commit.
        let at = Some(self.time_of(&base).await?);
        let content = self.tree_of(commit).await?;
        let parents = [base.as_str()];
        let message = format!("Take the content of {commit}, whose history began anew\n");
        let taken = NewCommit { tree: &content, parents: &parents, message: &message, at };
        self.commit(&taken).await
    }

    /// Records the commit of the target that a tree is based on, when Longhaul brought it to
    /// `head`.
    pub(in crate::git) async fn remember_base(
        &self,
        tree: &Tree,
        head: &str,
        tip: &str,
    ) -> Result<(), Failure> {
        if head != tip
            && let Some(left) = self.left_landing(head, tip).await?
        {
            return tree.set_base(&left);
        }
        let Some(base) = self.merge_base(head, tip).await? else { return Ok(()) };
        // The target was moved back: the tree still has its earlier content.
        if let Some(earlier) = self.left_base(tree, &base).await?
            && self.is_ancestor(&earlier, head).await?
        {
            return Ok(());
        }
        tree.set_base(&base)
    }

    /// The last commit of the work that Longhaul landed, and that is no longer in the target.
    async fn left_landing(&self, head: &str, tip: &str) -> Result<Option<String>, Failure> {
        let landings = self.landings()?;
        let range = format!("{tip}..{head}");
        let listed = self.git().args(["rev-list", "--topo-order", &range]).text().await?;
        let found = listed.lines().find(|commit| landings.iter().any(|landed| landed == commit));
        Ok(found.map(str::to_owned))
    }

    /// The commit that work is based on, if the target had it and has it no more: a person moved
    /// the target back, or began its history anew.
    pub(in crate::git) async fn left_by(
        &self,
        tree: &Tree,
        work: &str,
        tip: &str,
    ) -> Result<Option<String>, Failure> {
        let left = match tree.base()? {
            Some(_) => self.left_base(tree, tip).await?,
            // The tree of a fork: its work was based on an earlier target.
            None if work != tip => self.left_landing(work, tip).await?,
            None => None,
        };
        let Some(base) = left else { return Ok(None) };
        // An agent that has merged the target has settled what the work brings back.
        let has_merged =
            self.is_ancestor(tip, work).await? && !self.is_ancestor(tip, &base).await?;
        let is_left = !has_merged && self.is_ancestor(&base, work).await?;
        Ok(is_left.then_some(base))
    }

    /// The commit that a tree was based on, if its base of today does not contain it. Its files are
    /// not the work of an agent, although they differ from the base.
    pub(in crate::git) async fn left_base(
        &self,
        tree: &Tree,
        base: &str,
    ) -> Result<Option<String>, Failure> {
        let Some(earlier) = tree.base()? else { return Ok(None) };
        let is_left =
            self.commit_of(&earlier).await?.is_some() && !self.is_ancestor(&earlier, base).await?;
        Ok(is_left.then_some(earlier))
    }
}
