//! The open sessions of a feature run: runs of their own, for which it waits.

use longhaul_engine::{FailureKind, Position, RunId, Status, StoreError};
use longhaul_workflows::narrative;
use longhaul_workflows::projection::{CurrentWait, RunView, State};

use super::line::{FeatureLine, Lines};
use crate::head::RunHead;
use crate::questions;
use crate::run_kind::RunKind;

impl Lines<'_> {
    /// Merges the state of the open sessions of a run into the line of its feature; true if one of
    /// them is active.
    pub(super) async fn take_sessions(
        &self,
        line: &mut FeatureLine,
        run: &RunId,
    ) -> Result<bool, StoreError> {
        let mut is_active = false;
        for (session, summary) in self.store.runs(&format!("{run}/")).await? {
            if RunKind::of(&summary) != RunKind::Session || summary.status.is_terminal() {
                continue;
            }
            let Some(head) = RunHead::of(self.store, &session).await? else { continue };
            let stuck = self.owner.stuck.get(&session);
            is_active |= stuck.is_none() && head.is_active(self.owner.runs(&session));
            line.machine = line.machine.take().or_else(|| head.machine());
            if let Status::Waiting { until: Some(_), .. } = head.summary.status {
                line.status = State::Waiting;
                if let Some(limit) = self.rate_limit(&session, summary.origin).await? {
                    line.reason.get_or_insert(limit);
                }
            }
            line.take_place(&session, self.owner);
            let held = match (&head.summary.status, stuck) {
                (_, Some(stop)) => Some(stop.to_string()),
                (Status::Parked(effect), None) => {
                    line.status = State::Parked;
                    Some(effect.to_string())
                }
                (Status::Paused(request), None) => {
                    line.status = State::Paused;
                    Some(format!("its session is paused{}", narrative::by(request)))
                }
                _ => None,
            };
            if let Some(held) = held {
                line.reason.get_or_insert(held);
                line.needs_person = true;
            }
        }
        if let Some(question) = questions::open_questions(self.store, run).await?.first() {
            line.status = State::Waiting;
            line.reason = Some(question.reason());
            line.needs_person = true;
        }
        Ok(is_active)
    }

    /// The rate limit whose end a session waits for.
    async fn rate_limit(
        &self,
        session: &RunId,
        origin: Position,
    ) -> Result<Option<String>, StoreError> {
        let view = RunView::of(&self.store.read(session, origin).await?);
        Ok(match view.waits {
            Some(CurrentWait::Retry { failure, at, .. })
                if matches!(failure.kind, FailureKind::RateLimited { .. }) =>
            {
                Some(format!("until {}: {}", narrative::clock(at), failure.message))
            }
            _ => None,
        })
    }
}
