//! Keeps states of work trees that would be lost, under refs of their own.

use longhaul_engine::Failure;

use super::refs::{NewCommit, Repository};

impl Repository {
    /// Keeps a tree under a ref, on top of its base commit. An existing value of the ref, from a
    /// killed attempt, stays reachable as a further parent, so nothing is lost by keeping twice.
    pub(in crate::git) async fn keep(
        &self,
        reference: &str,
        tree: &str,
        parent: Option<&str>,
        message: &str,
    ) -> Result<(), Failure> {
        let earlier = self.commit_of(reference).await?;
        if let Some(earlier) = &earlier
            && self.kept_message(reference).await?.as_deref() == Some(message.trim())
            && self.tree_of(earlier).await? == tree
            && (parent.is_none()
                || self.commit_of(&format!("{earlier}^1")).await?.as_deref() == parent)
        {
            return Ok(());
        }
        let parents: Vec<&str> = parent.into_iter().chain(earlier.as_deref()).collect();
        let commit = self.commit(&NewCommit { tree, parents: &parents, message, at: None }).await?;
        self.move_ref(reference, earlier.as_deref(), &commit).await
    }

    /// The message of the last state kept under a ref, if there is one.
    pub(in crate::git) async fn kept_message(
        &self,
        reference: &str,
    ) -> Result<Option<String>, Failure> {
        if self.commit_of(reference).await?.is_none() {
            return Ok(None);
        }
        let text = self
            .git()
            .args(["log", "-1", "--no-show-signature", "--format=%B", reference, "--"])
            .text()
            .await?;
        Ok(Some(text))
    }
}
