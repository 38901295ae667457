//! Returns a work tree to its feature's branch after an agent has left it.

use longhaul_engine::Failure;
use longhaul_workflows::contracts::Tampering;

use super::open::KeptRefs;
use super::private::NewHead;
use super::tree::Tree;
use crate::git::names::branch_ref;
use crate::git::objects::refs::{NewCommit, Repository};
use crate::git::objects::snapshot::Snapshot;

/// The expected branch of a work tree, and the ref that keeps its state before it returns there.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct ExpectedBranch<'a> {
    pub(in crate::git) kept: KeptRefs<'a>,
    pub(in crate::git) target: &'a str,
    /// The message of a commit with adopted work.
    pub(in crate::git) message: &'a str,
}

impl Repository {
    /// Returns the commit of the branch after adopting work done elsewhere, if it merges without
    /// conflict. If the branch cannot fast-forward, keeps the state before and reports the
    /// tampering.
    pub(in crate::git) async fn return_to_branch(
        &self,
        tree: &Tree,
        expected: ExpectedBranch<'_>,
        reports: &mut Vec<Tampering>,
    ) -> Result<String, Failure> {
        let reference = branch_ref(expected.kept.branch);
        let (head, tip) = self.take_private(tree, expected.kept).await?;
        match (tip, head.commit) {
            (Some(tip), Some(commit)) => {
                if self.is_ancestor(&tip, &commit).await? {
                    if tip != commit {
                        self.move_ref(&reference, Some(&tip), &commit).await?;
                    }
                    return Ok(commit);
                }
                self.restore_branch(tree, expected, [&tip, &commit], head.on.as_deref(), reports)
                    .await
            }
            (None, Some(commit)) => {
                self.move_ref(&reference, None, &commit).await?;
                Ok(commit)
            }
            (None, None) => {
                // The branch was deleted. Its files still exist and become a commit on the one that
                // they come from: on another one, they would take back what that has.
                if let Some(start) = self.origin_of(tree).await? {
                    self.move_ref(&reference, None, &start).await?;
                    return Ok(start);
                }
                let start = self.tip_state(expected.target).await?.commit().to_owned();
                self.move_ref(&reference, None, &start).await?;
                self.restore_lost(tree, expected, &start, reports).await?;
                Ok(start)
            }
            // Something moved the branch, and the repository has lost what the files come from.
            (Some(tip), None) if head.on.as_ref() == Some(&reference) => {
                self.restore_lost(tree, expected, &tip, reports).await?;
                Ok(tip)
            }
            // A new branch without a commit: its files stay and become a commit on the feature's
            // branch.
            (Some(tip), None) => Ok(tip),
        }
    }

    /// Resets a tree whose commits the repository has lost; its files are kept under the rescue
    /// ref.
    async fn restore_lost(
        &self,
        tree: &Tree,
        expected: ExpectedBranch<'_>,
        start: &str,
        reports: &mut Vec<Tampering>,
    ) -> Result<(), Failure> {
        let state = self.content_of(tree, start).await?;
        let what = format!(
            "the repository has lost the commit that the work on {} began on; its files are kept",
            expected.kept.branch
        );
        add_report(reports, Tampering { file: "HEAD".to_owned(), what });
        self.keep(expected.kept.rescue, &state, None, &kept_message(reports)).await?;
        self.ready(tree, NewHead::on(expected.kept.branch, expected.target), start).await
    }

    async fn restore_branch(
        &self,
        tree: &Tree,
        expected: ExpectedBranch<'_>,
        [tip, head]: [&str; 2],
        on: Option<&str>,
        reports: &mut Vec<Tampering>,
    ) -> Result<String, Failure> {
        let state = Snapshot::take(self, &tree.path, &tree.index(), head).await?.tree().await?;
        let place = on.map_or("a detached HEAD", |on| on.trim_start_matches("refs/heads/"));
        let branch = expected.kept.branch;
        let what = if place == branch {
            format!("{branch} was moved during the work; the state before is kept")
        } else {
            format!("the work tree was on {place} and not on {branch}; that state is kept")
        };
        add_report(reports, Tampering { file: "HEAD".to_owned(), what });
        self.keep(expected.kept.rescue, &state, Some(head), &kept_message(reports)).await?;
        let commit = match self.adopt_work(expected, tip, head, &state).await? {
            Some(commit) => commit,
            None => tip.to_owned(),
        };
        if commit != tip {
            self.move_ref(&branch_ref(expected.kept.branch), Some(tip), &commit).await?;
        }
        self.ready(tree, NewHead::on(expected.kept.branch, expected.target), &commit).await?;
        Ok(commit)
    }

    /// A commit on the branch with the work done elsewhere; `None` if there is none, or if it
    /// conflicts.
    async fn adopt_work(
        &self,
        expected: ExpectedBranch<'_>,
        tip: &str,
        head: &str,
        state: &str,
    ) -> Result<Option<String>, Failure> {
        let lead = self.tip_state(expected.target).await?;
        let is_known =
            self.is_ancestor(head, tip).await? || self.is_ancestor(head, lead.commit()).await?;
        if is_known && self.tree_of(head).await? == state {
            return Ok(None);
        }
        let commit =
            NewCommit { tree: state, parents: &[head], message: expected.message, at: None };
        let work = self.commit(&commit).await?;
        self.merged_onto(tip, &work, expected.message, None).await
    }
}

/// Adds a report, once.
pub(in crate::git) fn add_report(reports: &mut Vec<Tampering>, tampering: Tampering) {
    if !reports.contains(&tampering) {
        reports.push(tampering);
    }
}

/// The message of a kept state. It holds the reports for a retry after a crash, which no longer
/// sees the tampering.
pub(in crate::git) fn kept_message(reports: &[Tampering]) -> String {
    let reports = serde_json::to_string(reports).expect("texts can be written as JSON");
    format!("Longhaul: before protected files were put back\n\n{reports}\n")
}

/// The reports of an earlier attempt, as written by [`kept_message`].
pub(in crate::git) fn earlier_reports(message: &str) -> Vec<Tampering> {
    message.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
}
