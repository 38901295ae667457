//! Returns a work tree to its feature's branch after an agent has left it.

use longhaul_engine::Failure;
use longhaul_workflows::contracts::Tampering;

use super::names::head_ref;
use super::open::Kept;
use super::private::Stand;
use super::refs::{NewCommit, Repository};
use super::snapshot::Snapshot;
use super::tree::Tree;

/// The expected branch of a work tree, and the ref that keeps its state before it returns there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belongs<'a> {
    pub(super) kept: Kept<'a>,
    pub(super) target: &'a str,
    /// The message of a commit with adopted work.
    pub(super) message: &'a str,
}

impl Repository {
    /// Returns the commit of the branch after adopting work done elsewhere, if it merges without
    /// conflict. If the branch cannot fast-forward, keeps the state before and reports the
    /// tampering.
    pub(super) async fn return_to_branch(
        &self,
        tree: &Tree,
        belongs: Belongs<'_>,
        told: &mut Vec<Tampering>,
    ) -> Result<String, Failure> {
        let reference = head_ref(belongs.kept.branch);
        let (head, tip) = self.take_private(tree, belongs.kept).await?;
        match (tip, head.commit) {
            (Some(tip), Some(commit)) => {
                if self.is_ancestor(&tip, &commit).await? {
                    if tip != commit {
                        self.move_ref(&reference, Some(&tip), &commit).await?;
                    }
                    return Ok(commit);
                }
                self.bring_back(tree, belongs, [&tip, &commit], head.on.as_deref(), told).await
            }
            (None, Some(commit)) => {
                self.move_ref(&reference, None, &commit).await?;
                Ok(commit)
            }
            (None, None) => {
                // The branch was deleted. Its files still exist and become a commit on the branch's
                // original base.
                let start = self.lead(belongs.target).await?.commit().to_owned();
                self.move_ref(&reference, None, &start).await?;
                Ok(start)
            }
            // A new branch without a commit: its files stay and become a commit on the feature's
            // branch.
            (Some(tip), None) => Ok(tip),
        }
    }

    async fn bring_back(
        &self,
        tree: &Tree,
        belongs: Belongs<'_>,
        [tip, head]: [&str; 2],
        on: Option<&str>,
        told: &mut Vec<Tampering>,
    ) -> Result<String, Failure> {
        let state = Snapshot::take(self, &tree.path, &tree.index(), head).await?.tree().await?;
        let place = on.map_or("a detached HEAD", |on| on.trim_start_matches("refs/heads/"));
        let what = format!(
            "the work tree was on {place} and not on {}; that state is kept",
            belongs.kept.branch
        );
        tell(told, Tampering { file: "HEAD".to_owned(), what });
        self.keep(belongs.kept.rescue, &state, Some(head), &kept_message(told)).await?;
        let stand = match self.taken_over(belongs, tip, head, &state).await? {
            Some(commit) => commit,
            None => tip.to_owned(),
        };
        if stand != tip {
            self.move_ref(&head_ref(belongs.kept.branch), Some(tip), &stand).await?;
        }
        self.ready(tree, Stand::on(belongs.kept.branch, belongs.target), &stand).await?;
        Ok(stand)
    }

    /// A commit on the branch with the work done elsewhere; `None` if there is none, or if it
    /// conflicts.
    async fn taken_over(
        &self,
        belongs: Belongs<'_>,
        tip: &str,
        head: &str,
        state: &str,
    ) -> Result<Option<String>, Failure> {
        let lead = self.lead(belongs.target).await?;
        let is_known =
            self.is_ancestor(head, tip).await? || self.is_ancestor(head, lead.commit()).await?;
        if is_known && self.tree_of(head).await? == state {
            return Ok(None);
        }
        if self.merge_base(tip, head).await?.is_none() {
            return Ok(None);
        }
        let commit =
            NewCommit { tree: state, parents: &[head], message: belongs.message, at: None };
        let merged = self.merge_commits(tip, &self.commit(&commit).await?).await?;
        if !merged.conflicts.is_empty() || merged.tree == self.tree_of(tip).await? {
            return Ok(None);
        }
        let commit =
            NewCommit { tree: &merged.tree, parents: &[tip], message: belongs.message, at: None };
        self.commit(&commit).await.map(Some)
    }
}

/// Adds a report, once.
pub(super) fn tell(told: &mut Vec<Tampering>, tampering: Tampering) {
    if !told.contains(&tampering) {
        told.push(tampering);
    }
}

/// The message of a kept state. It holds the reports for a retry after a crash, which no longer
/// sees the tampering.
pub(super) fn kept_message(told: &[Tampering]) -> String {
    let told = serde_json::to_string(told).expect("texts can be written as JSON");
    format!("Longhaul: before protected files were put back\n\n{told}\n")
}

/// The reports of an earlier attempt, as written by [`kept_message`].
pub(super) fn told_before(message: &str) -> Vec<Tampering> {
    message.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
}
