//! `RollBack`: moves the target branch and its checkout backwards, by a person's request.

use std::collections::HashSet;
use std::path::Path;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::{ProjectRef, RollBackInput, RolledBack};

use crate::git::GitHandlers;
use crate::git::checkout::{MoveResult, Step};
use crate::git::names::{
    NEXT, OWN_DIR, PROGRESS_FILE, branch, branch_ref, feature_ref, rolled_back_ref,
};
use crate::git::objects::refs::Repository;

/// Attempts to move the branch while only Longhaul's own files block it.
const TRIES: u32 = 10;

/// Whether a project can be rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RollbackCheck {
    /// Yes, to this commit.
    Free(String),
    /// The user's changes block it.
    Blocked(String),
}

impl GitHandlers {
    /// Whether the target branch of a project can go back to a commit. Read-only.
    ///
    /// # Errors
    /// Terminal if there is no such commit on the branch.
    pub async fn check_rollback(
        &self,
        project: &ProjectRef,
        target: &str,
        to: &str,
        list: &str,
    ) -> Result<RollbackCheck, Failure> {
        let repository = self.repository(project).await?;
        let from = repository.target_commit(target).await?;
        let root = repository.root.display();
        let commit = repository.commit_of(to).await?;
        let commit =
            commit.ok_or_else(|| Failure::terminal(format!("`{to}` is no commit in {root}")))?;
        if !repository.is_ancestor(&commit, &from).await? {
            return Err(Failure::terminal(format!(
                "`{to}` is not on `{target}` in {root}: choose one of its commits"
            )));
        }
        let step = Step {
            branch: target,
            from: &from,
            to: &commit,
            own_files: &[list, PROGRESS_FILE, OWN_DIR],
            back: true,
        };
        Ok(repository
            .obstacle(step)
            .await?
            .map_or(RollbackCheck::Free(commit), RollbackCheck::Blocked))
    }

    /// The commits that a rollback of the target branch would undo.
    pub async fn undone_by(
        &self,
        project: &ProjectRef,
        target: &str,
        to: &str,
    ) -> Result<HashSet<String>, Failure> {
        let repository = self.repository(project).await?;
        let from = repository.target_commit(target).await?;
        repository.commits_undone(to, &from, None).await
    }
}

/// The target after a rollback.
struct MovedBack {
    /// Its old commit.
    from: String,
    /// All commits that are undone.
    undone: HashSet<String>,
}

impl Repository {
    pub(in crate::git) async fn roll_back(
        &self,
        input: &RollBackInput,
    ) -> Result<RolledBack, Failure> {
        let kept = rolled_back_ref(&input.at);
        let MovedBack { from, undone } = self.move_back(input, &kept).await?;
        self.close_stranded(input, &undone).await?;
        let features = input.landed.iter().filter(|(_, commit)| undone.contains(*commit));
        let undone = features.map(|(id, _)| id.clone()).collect();
        Ok(RolledBack { from, kept, undone })
    }

    /// Moves the target.
    async fn move_back(&self, input: &RollBackInput, kept: &str) -> Result<MovedBack, Failure> {
        let _guard = self.exclusive().await;
        self.end_interrupted_moves().await?;
        let next = format!("{kept}-next");
        let from = self.keep_tip(kept, &input.target).await?;
        let undone = self.commits_undone(&input.to, &from, Some(&next)).await?;
        self.complete(&input.to).await?;
        if from != input.to && self.target_commit(&input.target).await? == from {
            let own_files = &[input.list_file.as_str(), PROGRESS_FILE, OWN_DIR];
            let step =
                Step { branch: &input.target, from: &from, to: &input.to, own_files, back: true };
            if let Some(reason) = self.go_back(step).await? {
                self.delete_ref(kept, &from).await?;
                return Err(Failure::terminal(reason));
            }
        }
        self.drop_next_for(&next, &input.to).await?;
        Ok(MovedBack { from, undone })
    }

    /// Moves the branch; returns the reason if it did not move. Longhaul's own files can be written
    /// meanwhile.
    async fn go_back(&self, step: Step<'_>) -> Result<Option<String>, Failure> {
        let mut tries = 0;
        loop {
            let MoveResult::Blocked(reason) = self.advance(step).await? else { return Ok(None) };
            tries += 1;
            if tries == TRIES || self.obstacle(step).await?.is_some() {
                return Ok(Some(reason));
            }
            // The projector is about to replace the file that blocks the move.
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
    }

    /// The old tip: as kept by an earlier attempt, or the current one.
    async fn keep_tip(&self, kept: &str, target: &str) -> Result<String, Failure> {
        if let Some(from) = self.commit_of(kept).await? {
            return Ok(from);
        }
        let from = self.target_commit(target).await?;
        self.move_ref(kept, None, &from).await?;
        Ok(from)
    }

    async fn commits_undone(
        &self,
        to: &str,
        from: &str,
        kept_next: Option<&str>,
    ) -> Result<HashSet<String>, Failure> {
        let mut tips = vec![from.to_owned()];
        for name in [Some(&*branch_ref(NEXT)), kept_next].into_iter().flatten() {
            tips.extend(self.commit_of(name).await?);
        }
        let listed = self.git().arg("rev-list").args(&tips).arg(format!("^{to}")).text().await?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Drops `longhaul/next`: its commits build on the undone ones.
    async fn drop_next_for(&self, kept: &str, to: &str) -> Result<(), Failure> {
        let Some(next) = self.commit_of(&branch_ref(NEXT)).await? else {
            return self.record_next(&[]);
        };
        if self.is_ancestor(&next, to).await? {
            return Ok(());
        }
        let earlier = self.commit_of(kept).await?;
        self.move_ref(kept, earlier.as_deref(), &next).await?;
        self.delete_ref(&branch_ref(NEXT), &next).await?;
        self.record_next(&[])
    }

    /// Closes the work trees of features whose branches contain undone commits: a merge would bring
    /// those back.
    async fn close_stranded(
        &self,
        input: &RollBackInput,
        undone: &HashSet<String>,
    ) -> Result<(), Failure> {
        for (feature, run) in &input.open {
            let Some(tip) = self.branch_commit(&branch(feature)).await? else { continue };
            let listed =
                self.git().args(["rev-list", &tip, &format!("^{}", input.to)]).text().await?;
            if listed.lines().any(|commit| undone.contains(commit)) {
                let rescue = format!("{}-{feature}", rolled_back_ref(&input.at));
                self.close(feature, &rescue, &feature_ref(run)).await?;
            }
        }
        Ok(())
    }

    /// The reason why a checkout of the branch blocks the move.
    async fn obstacle(&self, step: Step<'_>) -> Result<Option<String>, Failure> {
        match self.checkouts_of(step.branch).await?.as_slice() {
            [] => Ok(None),
            [checkout] => self.blocker(checkout, step).await,
            several => Ok(Some(format!(
                "`{}` is checked out in {}; leave it checked out in your own checkout only",
                step.branch,
                several
                    .iter()
                    .map(|path: &std::path::PathBuf| Path::display(path).to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
        }
    }
}
