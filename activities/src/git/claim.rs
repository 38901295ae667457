//! `CheckOutTip`: the target as it is, checked out where the gates of a claimed feature run.

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{CheckOutTip, TipInput, TipTree};

use super::GitHandlers;
use super::open::shown;
use super::refs::Repository;

#[async_trait]
impl Handler<CheckOutTip> for GitHandlers {
    async fn perform(&self, input: TipInput, _attempt: &Attempt) -> Result<TipTree, Failure> {
        let tip = self.repository(&input.project).await?.check_out_tip(&input).await?;
        self.synced(&input.project, tip).await
    }
}

impl Repository {
    async fn check_out_tip(&self, input: &TipInput) -> Result<TipTree, Failure> {
        let commit = {
            let _held = self.exclusive().await;
            self.tip(&input.target, Some(&input.list_file)).await?
        };
        let worktree = shown(&self.integration_at(&commit, input.tree).await?.path);
        Ok(TipTree { commit, worktree })
    }
}
