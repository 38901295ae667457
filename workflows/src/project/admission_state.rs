//! The state of the admission of sessions: slots, open requests, and why features wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::feature::SessionRequest;

use super::breaker::{Breaker, SessionsPaused};
use super::conflicts::{Claim, Conflicts};
use super::ledger::UsageLedger;
use super::repair::Repair;
use super::wait_reason::WaitReason;

/// The admission state: slots, open requests, and the reasons for waiting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AdmissionState {
    /// Open requests, oldest first.
    pub(super) waiting: VecDeque<OpenRequest>,
    /// The features with a slot: at most `[project] parallel`.
    pub(super) places: BTreeSet<FeatureId>,
    /// Why features wait.
    pub(super) reasons: BTreeMap<FeatureId, WaitReason>,
    /// The features that freed their slot.
    pub(super) aside: BTreeSet<FeatureId>,
    /// Counts the possible moves of the target.
    pub(super) moves: u64,
    pub(super) repair: Repair,
    pub(super) conflicts: Conflicts,
    /// The breakers, by agent command.
    pub(super) breakers: BTreeMap<String, Breaker>,
    pub(super) ledger: UsageLedger,
    /// Why no session begins.
    pub(super) paused: Option<SessionsPaused>,
}

/// An open request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenRequest {
    pub(super) feature: FeatureId,
    pub(super) request: SessionRequest,
    /// The claim of a session that resolves a conflict.
    pub(super) claim: Option<Claim>,
    /// The count of target moves when it came.
    pub(super) moves: u64,
}

impl AdmissionState {
    /// The run of a feature is over, or is replaced.
    pub(super) fn leave(&mut self, feature: &FeatureId) {
        self.waiting.retain(|waiting| waiting.feature != *feature);
        self.places.remove(feature);
        self.conflicts.leave(feature);
        self.ledger.leave(feature);
        self.breakers.values_mut().for_each(|breaker| breaker.leave(feature));
    }

    /// A feature was started: it takes a slot.
    pub(super) fn begin(&mut self, feature: &FeatureId) {
        self.restart(feature);
        self.places.insert(feature.clone());
    }

    /// A feature has a new run.
    pub(super) fn restart(&mut self, feature: &FeatureId) {
        self.breakers.values_mut().for_each(|breaker| breaker.forget(feature));
    }

    /// A feature has passed: the target has moved.
    pub(super) fn pass(&mut self, feature: &FeatureId) {
        self.conflicts.forget(feature);
        self.moves += 1;
    }

    /// A person resumes the project: agents are probed at once, and a broken baseline is retried.
    pub(super) fn hurry(&mut self) {
        self.moves += 1;
        self.breakers.values_mut().for_each(Breaker::hurry);
    }

    /// The time of the next probe of an agent.
    pub(super) fn due(&self) -> Option<DateTime<Utc>> {
        self.paused.as_ref()?.until
    }

    pub(super) fn breaker(&mut self, agent: &[String]) -> &mut Breaker {
        self.breakers.entry(agent.join(" ")).or_default()
    }

    /// Whether sessions are paused because of this feature only.
    pub(super) fn suspects_only(&self, feature: &FeatureId) -> bool {
        self.breakers.values().any(|breaker| breaker.suspects_only(feature))
    }

    /// The features with any state here.
    pub(super) fn features(&self) -> impl Iterator<Item = &FeatureId> {
        let waiting = self.waiting.iter().map(|waiting| &waiting.feature);
        let probes = self.breakers.values().filter_map(Breaker::probe);
        let others =
            self.places.iter().chain(self.reasons.keys()).chain(self.conflicts.resolving());
        waiting.chain(probes).chain(others).chain(self.repair.repairer())
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.waiting.iter().filter_map(|waiting| waiting.claim.as_ref())
    }
}
