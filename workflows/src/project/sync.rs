//! Reading the list and the settings, and following the user's checkout.

use std::time::Duration;

use longhaul_engine::{Context, ContextExt, Failure, FailureKind, Stop};

use crate::contracts::{Follow, FollowInput, LoadBacklog};

use super::order::AfterSync;
use super::state::ProjectRun;

/// The delay after the first temporary failure of a sync; it doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest of these delays.
const LAST_RETRY: Duration = Duration::from_mins(5);

impl ProjectRun {
    /// Reads the current list and settings. If they are invalid, the error is published and the old
    /// ones stay.
    pub(super) async fn sync(
        &mut self,
        context: &mut dyn Context,
        id: String,
        then: AfterSync,
    ) -> Result<(), Stop> {
        self.read_list(context).await?;
        if then == AfterSync::GoOn {
            self.halted = None;
            self.retry_unready();
            self.admission.hurry();
        }
        self.synced = id;
        self.note_edited_waiting();
        if self.may_follow() {
            self.follow(context).await?;
        }
        Ok(())
    }

    /// The time of the next attempt to read the list after a temporary failure. An invalid list is
    /// not retried; an edit of it causes a sync.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        let doublings = self.failed_syncs.checked_sub(1)?;
        Some(FIRST_RETRY.saturating_mul(2_u32.saturating_pow(doublings)).min(LAST_RETRY))
    }

    /// Reads the list again after a temporary failure.
    pub(super) async fn sync_again(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        if self.failed_syncs > 0 { self.read_list(context).await } else { Ok(()) }
    }

    /// Reads the list and the settings.
    pub(super) async fn read_list(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        let mut loaded = context.call::<LoadBacklog>(self.load_input()).await;
        if loaded.as_ref().is_ok_and(|loaded| !loaded.lost.is_empty()) {
            // The history was rewritten: finds the features that are no longer in it.
            self.landed = None;
            loaded = context.call::<LoadBacklog>(self.load_input()).await;
        }
        let loaded = match loaded {
            Ok(loaded) => self.take_backlog(loaded).map_err(Failure::terminal),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(stop) => return Err(stop),
        };
        self.followed = false;
        self.failed_syncs = match &loaded {
            Err(failure) if failure.kind != FailureKind::Terminal => self.failed_syncs + 1,
            _ => 0,
        };
        self.problem = loaded.err().map(|failure| failure.message);
        if self.problem.is_none() { self.publish_backlog(context).await } else { Ok(()) }
    }

    /// Moves work that waits on `longhaul/next` to the target branch, if the user's checkout
    /// permits it now.
    pub(super) async fn follow(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        let input = FollowInput {
            project: self.project.clone(),
            target: self.target.clone(),
            list_file: self.list_file.clone(),
        };
        self.followed = true;
        match context.call::<Follow>(input).await {
            Ok(landed) => {
                self.take_waits(landed.waits_on_next);
                if landed.can_merge {
                    self.check_merge();
                }
            }
            Err(Stop::Failed(failure)) => self.waits_on_next = Some(failure.message),
            Err(stop) => return Err(stop),
        }
        Ok(())
    }
}
