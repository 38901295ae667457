//! `CheckOutTip`: the commit of the target, and the tree in which the gates of a claimed feature
//! run on it.

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{CheckOutTip, TipInput, TipTree};

use crate::git::GitHandlers;
use crate::git::objects::refs::Repository;

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
            let _guard = self.exclusive().await;
            self.tip(&input.target, Some(&input.list_file)).await?
        };
        Ok(TipTree { commit })
    }
}
