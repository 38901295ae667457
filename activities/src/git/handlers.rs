//! The handlers of the git contracts.

use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler, Probe};
use longhaul_workflows::contracts::{
    CloseInput, CloseWorktree, Follow, FollowInput, Land, LandInput, Landed, MergeCandidate,
    MergeInput, Merged, OpenInput, OpenWorktree, RefreshInput, RefreshWorktree, Refreshed,
    RollBack, RollBackInput, RolledBack, Seal, SealInput, Sealed, Worktree,
};

use super::GitHandlers;

/// The time for git to end after its attempt was cancelled. Nearly every command takes less.
const GRACE: Duration = Duration::from_secs(3);

/// Runs the work of an attempt, which is dropped some time after a cancellation: git may be stuck.
async fn or_cancelled<T>(
    attempt: &Attempt,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::pin!(work);
    tokio::select! {
        biased;
        result = &mut work => return result,
        () = attempt.cancelled() => {}
    }
    tokio::time::timeout(GRACE, work).await.unwrap_or_else(|_| Err(Failure::cancelled()))
}

/// Runs a change of the user's checkout to completion, even if the caller is dropped: the user
/// would see half a change.
async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let outcome = tokio::spawn(work).await;
    outcome.unwrap_or_else(|error| {
        Err(Failure::retryable(format!("moving the branch did not end: {error}")))
    })
}

#[async_trait]
impl Handler<OpenWorktree> for GitHandlers {
    async fn perform(&self, input: OpenInput, attempt: &Attempt) -> Result<Worktree, Failure> {
        let work = async {
            let worktree = self.reopen_worktree(&input, attempt).await?;
            self.synced(&input.project, worktree).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<RefreshWorktree> for GitHandlers {
    async fn perform(&self, input: RefreshInput, attempt: &Attempt) -> Result<Refreshed, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            let refreshed = repository.refresh_worktree(&input, attempt).await?;
            let RefreshInput { feature, version, .. } = &input;
            let is_edited = repository.listed.is_edited(&repository.root, feature, version).await;
            Ok(Refreshed { is_edited, ..refreshed })
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<Seal> for GitHandlers {
    async fn perform(&self, input: SealInput, attempt: &Attempt) -> Result<Sealed, Failure> {
        let work = async {
            let sealed = self.repository(&input.project).await?.seal(&input, attempt).await?;
            self.synced(&input.project, sealed).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<MergeCandidate> for GitHandlers {
    async fn perform(&self, input: MergeInput, attempt: &Attempt) -> Result<Merged, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            let merged = repository.merge_candidate(&input, attempt).await?;
            self.synced(&input.project, merged).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<Land> for GitHandlers {
    async fn perform(&self, input: LandInput, attempt: &Attempt) -> Result<Landed, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            run_to_completion(async move { repository.land(&input).await }).await
        };
        or_cancelled(attempt, work).await
    }

    async fn probe(&self, input: LandInput, _attempt: &Attempt) -> Probe<Landed> {
        let probed = match self.repository(&input.project).await {
            Ok(repository) => {
                run_to_completion(async move { repository.probe_landing(&input).await }).await
            }
            Err(failure) => Err(failure),
        };
        probed.unwrap_or_else(crate::machine::unknown_outcome)
    }
}

#[async_trait]
impl Handler<Follow> for GitHandlers {
    async fn perform(&self, input: FollowInput, attempt: &Attempt) -> Result<Landed, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            run_to_completion(async move { repository.follow(&input).await }).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<CloseWorktree> for GitHandlers {
    async fn perform(&self, input: CloseInput, attempt: &Attempt) -> Result<(), Failure> {
        let work = async {
            self.repository(&input.project).await?.close_worktree(&input, attempt).await?;
            self.synced(&input.project, ()).await
        };
        or_cancelled(attempt, work).await
    }
}

#[async_trait]
impl Handler<RollBack> for GitHandlers {
    async fn perform(
        &self,
        input: RollBackInput,
        attempt: &Attempt,
    ) -> Result<RolledBack, Failure> {
        let work = async {
            let repository = self.repository(&input.project).await?;
            run_to_completion(async move { repository.roll_back(&input).await }).await
        };
        or_cancelled(attempt, work).await
    }
}
