//! Admission of sessions, which are paid: a feature requests each from its project, and gets it
//! when it can succeed.
//!
//! Four rules, in this order: one feature repairs a broken baseline ([`super::repair`]); conflicts
//! in the same files are resolved one at a time ([`super::conflicts`]); at most `[project]
//! parallel` features have sessions; and an agent with an outage gets none ([`super::breaker`]). A
//! feature held back by the first two rules frees its slot.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use longhaul_engine::{Context, ContextExt, Received, RunId, Stop};

use crate::backlog::{FeatureId, FeatureState};
use crate::feature::{BlockReason, SessionEnded, SessionPermit, SessionRequest, SessionResult};
use crate::resources::Resources;
use crate::session::SessionUsed;
use crate::settings::AgentSettings;

use super::admission_state::OpenRequest;
use super::breaker::{self, Breaker, FailedSession, SessionsPaused};
use super::repair;
use super::state::ProjectRun;
use super::wait_reason::WaitReason;

/// The decision on a request.
enum Decision {
    Answer(SessionPermit),
    /// It waits.
    Wait {
        why: WaitReason,
        /// Another feature may use its slot.
        aside: bool,
    },
}

fn wait(why: WaitReason, aside: bool) -> Decision {
    Decision::Wait { why, aside }
}

fn refuse(reason: BlockReason) -> Decision {
    Decision::Answer(SessionPermit::Refused { reason })
}

/// The id of a session of a run.
fn session_of(run: &RunId, number: u32) -> Option<RunId> {
    RunId::new(format!("{run}/{number}")).ok()
}

impl ProjectRun {
    /// Whether another feature may be started.
    pub(super) fn has_room(&self) -> bool {
        let admission = &self.admission;
        // A cancelled run uses its slot until it has ended.
        let parallel = self.parallel();
        let in_progress = self.current.len();
        let aside = admission.aside.len().min(in_progress);
        let is_full = in_progress - aside >= parallel || in_progress >= 2 * parallel;
        // Another feature shows whether the agent or the feature is at fault.
        let has_lone_suspect = self.current.keys().any(|feature| admission.suspects_only(feature));
        let is_held = admission.repair.is_at_work(&self.held_features())
            || (admission.paused.is_some() && in_progress > usize::from(has_lone_suspect))
            || self.over_budget().is_some();
        !is_full && !is_held
    }

    /// The spent resource of the project: no further session begins.
    pub(super) fn over_budget(&self) -> Option<BlockReason> {
        let resource = self.admission.ledger.lacks(&self.settings.budget)?;
        Some(BlockReason::Budget { resource, budget: self.settings.budget.resources() })
    }

    pub(super) fn parallel(&self) -> usize {
        self.settings.project.parallel.max(1) as usize
    }

    /// The next feature to start: if possible, none that is known to change the files of one in
    /// progress.
    pub(super) fn next_apart(&self) -> Option<&FeatureId> {
        let conflicts = &self.admission.conflicts;
        let is_at_work =
            |id: &&FeatureId| self.backlog.state(id) == Some(&FeatureState::InProgress);
        let at_work: Vec<&FeatureId> = conflicts.known().filter(is_at_work).collect();
        let is_apart = |id: &&FeatureId| !at_work.iter().any(|other| conflicts.overlap(id, other));
        let selected = self.selected();
        let is_selected = |id: &FeatureId| selected.as_ref().is_none_or(|all| all.contains(id));
        let workable = || {
            let open = self.backlog.workable().filter(|id| !self.current.contains_key(id));
            open.filter(|id| is_selected(id))
        };
        workable().find(is_apart).or_else(|| workable().next())
    }

    /// The features to start: those of the last `sync`, and all that they depend on; `None`: all.
    fn selected(&self) -> Option<BTreeSet<FeatureId>> {
        let mut open: Vec<&FeatureId> = self.only.iter().collect();
        let mut selected = BTreeSet::new();
        while let Some(id) = open.pop() {
            if selected.insert(id.clone())
                && let Some(feature) = self.backlog.feature(id)
            {
                open.extend(&feature.depends_on);
            }
        }
        (!selected.is_empty()).then_some(selected)
    }

    /// Handles a message about a session; returns whether it was one.
    pub(super) async fn take_admission(
        &mut self,
        context: &mut dyn Context,
        received: &Received,
    ) -> Result<bool, Stop> {
        let Received::Signal { name, payload, from } = received else { return Ok(false) };
        if ![SessionRequest::SIGNAL, SessionEnded::SIGNAL].contains(&name.as_str()) {
            return Ok(false);
        }
        // Only the current run of a feature may request a session.
        let Some(feature) = from.as_ref().and_then(|run| self.feature_of(run)) else {
            return Ok(true);
        };
        if name == SessionRequest::SIGNAL {
            if let Ok(request) = payload.read::<SessionRequest>() {
                self.take_request(feature, request);
            }
        } else if let Ok(ended) = payload.read::<SessionEnded>() {
            self.take_ended(context, &feature, ended).await?;
        }
        Ok(true)
    }

    fn take_request(&mut self, feature: FeatureId, request: SessionRequest) {
        // Work that waits for a person reserves no files.
        let is_approved = self.settings.merge.approval
            || self.backlog.feature(&feature).is_some_and(|feature| feature.approval);
        let claim = (request.resolves && !is_approved).then(|| {
            self.admission.conflicts.learn(&feature, &request.files);
            self.admission.conflicts.claim(&feature, &request.files, self.ready())
        });
        let moves = self.admission.moves;
        self.admission.waiting.retain(|waiting| waiting.feature != feature);
        self.admission.waiting.push_back(OpenRequest { feature, request, claim, moves });
    }

    async fn take_ended(
        &mut self,
        context: &mut dyn Context,
        feature: &FeatureId,
        ended: SessionEnded,
    ) -> Result<(), Stop> {
        self.admission.ledger.settle(feature, ended.used);
        self.count_use(feature, ended.used);
        match &ended.result {
            SessionResult::Worked { done } => {
                self.admission.breaker(&ended.agent).pass(feature);
                if *done && !self.records.get(feature).is_some_and(|record| record.called_done) {
                    self.record(feature).called_done = true;
                }
            }
            SessionResult::Unused => self.admission.breaker(&ended.agent).leave(feature),
            SessionResult::Failed { ending, last_words, started, changed } => {
                let now = context.now().await?;
                let failed = FailedSession {
                    agent: &ended.agent.join(" "),
                    ending,
                    last_words,
                    started: *started,
                    changed: *changed,
                };
                self.admission.breaker(&ended.agent).fail(feature, &failed, now);
            }
        }
        Ok(())
    }

    /// Answers requests where possible.
    pub(super) async fn admit(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        self.forget_who_left();
        let held = self.held_features();
        for feature in &held {
            self.admission.breakers.values_mut().for_each(|breaker| breaker.leave(feature));
        }
        let needs_clock = !self.admission.waiting.is_empty()
            && self.admission.breakers.values().any(Breaker::is_open);
        let now = if needs_clock { Some(context.now().await?) } else { None };
        self.admission.paused = None;
        self.probe_in = None;
        let mut reasons = BTreeMap::new();
        let mut aside = BTreeSet::new();
        let mut requests: Vec<_> = std::mem::take(&mut self.admission.waiting).into();
        requests.sort_by_key(|waiting| self.admission.suspects_only(&waiting.feature));
        for waiting in requests {
            match self.decide(&waiting, &held, now) {
                Decision::Answer(permit) => {
                    if let Some(run) = self.run_of(&waiting.feature) {
                        context.signal(run, SessionPermit::SIGNAL, &permit).await?;
                    }
                }
                Decision::Wait { why, aside: steps_aside } => {
                    if steps_aside {
                        self.admission.places.remove(&waiting.feature);
                        aside.insert(waiting.feature.clone());
                    }
                    reasons.insert(waiting.feature.clone(), why);
                    self.admission.waiting.push_back(waiting);
                }
            }
        }
        for (feature, other) in self.held_back() {
            self.admission.places.remove(&feature);
            reasons.insert(feature.clone(), WaitReason::Resolving { other, to_merge: true });
            aside.insert(feature);
        }
        self.admission.aside = aside;
        self.admission.breakers.retain(|_, breaker| !breaker.is_idle());
        if let (Some(due), Some(now)) = (self.admission.due(), now) {
            self.probe_in = Some((due - now).to_std().unwrap_or_default());
        }
        self.take_reasons(reasons);
        Ok(())
    }

    /// Features no longer in progress lose their slot and their request.
    fn forget_who_left(&mut self) {
        let has_left =
            |feature: &&FeatureId| self.backlog.state(feature) != Some(&FeatureState::InProgress);
        let left: BTreeSet<FeatureId> =
            self.admission.features().filter(has_left).cloned().collect();
        for feature in left {
            self.admission.leave(&feature);
            let state = self.backlog.state(&feature).cloned();
            self.admission.repair.end(&feature, state.as_ref());
        }
    }

    /// Finished work that waits for a feature which resolves a conflict.
    fn held_back(&self) -> Vec<(FeatureId, FeatureId)> {
        let held = self.held_features();
        let held_back = |ready: &crate::feature::MergeRequest| {
            let other =
                self.admission.conflicts.holds_back(ready, self.admission.claims(), &held)?;
            Some((ready.feature.clone(), other.clone()))
        };
        self.queue.waiting().filter_map(held_back).collect()
    }

    /// Whether finished work may merge now.
    pub(super) fn may_merge(&self, ready: &crate::feature::MergeRequest) -> bool {
        let held = self.held_features();
        self.admission.conflicts.holds_back(ready, self.admission.claims(), &held).is_none()
    }

    fn take_reasons(&mut self, reasons: BTreeMap<FeatureId, WaitReason>) {
        let before = std::mem::take(&mut self.admission.reasons);
        let features: BTreeSet<&FeatureId> = before.keys().chain(reasons.keys()).collect();
        let changed =
            features.into_iter().filter(|feature| before.get(*feature) != reasons.get(*feature));
        self.changed.extend(changed.cloned());
        self.admission.reasons = reasons;
    }

    fn decide(
        &mut self,
        waiting: &OpenRequest,
        held: &BTreeSet<FeatureId>,
        now: Option<DateTime<Utc>>,
    ) -> Decision {
        let feature = &waiting.feature;
        let request = &waiting.request;
        if held.contains(feature) {
            return wait(WaitReason::Held, false);
        }
        if let Some(reason) = self.over_budget() {
            return refuse(reason);
        }
        if let Some(broken) = &request.broken {
            if waiting.moves < self.admission.moves {
                return Decision::Answer(SessionPermit::Rebase);
            }
            match self.admission.repair.turn(feature, broken, held) {
                repair::RepairDecision::Repairs => {}
                repair::RepairDecision::Waits(why) => return wait(why, true),
                repair::RepairDecision::Rebase => return Decision::Answer(SessionPermit::Rebase),
                repair::RepairDecision::Refused(reason) => return refuse(reason),
            }
        }
        if let Some(claim) = &waiting.claim {
            let ready: BTreeSet<&FeatureId> = self.ready().collect();
            if let Some(other) =
                self.admission.conflicts.before(claim, self.admission.claims(), &ready, held)
            {
                let other = other.clone();
                return wait(WaitReason::Resolving { other, to_merge: false }, true);
            }
        }
        let places = &self.admission.places;
        if !places.contains(feature) && places.len() >= self.parallel() {
            let taken_by = places.iter().cloned().collect();
            return wait(WaitReason::Places { taken_by }, false);
        }
        let session = self.run_of(feature).and_then(|run| session_of(&run, request.number));
        let Some(session) = session else {
            return refuse(BlockReason::SessionId);
        };
        let wanted = request.left;
        let parallel = self.parallel();
        let ledger = &mut self.admission.ledger;
        let Some(available) = ledger.reserve(feature, wanted, &self.settings.budget, parallel)
        else {
            return wait(WaitReason::Reserved, false);
        };
        match self.ask_breaker(feature, request, now) {
            Err(paused) => {
                self.admission.ledger.leave(feature);
                let why = WaitReason::Agent { failure: paused.reason.clone() };
                let earlier =
                    self.admission.paused.as_ref().is_some_and(|known| known.until.is_some());
                if !earlier {
                    self.admission.paused = Some(paused);
                }
                wait(why, self.admission.suspects_only(feature))
            }
            Ok((forgiven, agent)) => {
                self.admission.places.insert(feature.clone());
                if let Some(broken) = &request.broken {
                    self.admission.repair.begin(feature, broken);
                }
                if let Some(claim) = &waiting.claim {
                    self.admission.conflicts.reserve(claim);
                }
                Decision::Answer(SessionPermit::Granted { session, forgiven, agent, available })
            }
        }
    }

    /// Consults the breaker of the agent. During an outage, the breaker of the other agent in the
    /// settings is consulted.
    fn ask_breaker(
        &mut self,
        feature: &FeatureId,
        request: &SessionRequest,
        now: Option<DateTime<Utc>>,
    ) -> Result<(u32, Option<Box<AgentSettings>>), SessionsPaused> {
        let settings = self.settings.agent.clone();
        let is_open = self.admission.breaker(&request.agent).is_open();
        let (agent, replaced) = if is_open && settings.identity() != request.agent {
            (settings.identity(), Some(Box::new(settings)))
        } else {
            (request.agent.clone(), None)
        };
        let admission = self.admission.breaker(&agent).admit(feature, now);
        match admission {
            breaker::Admission::Begins { forgiven } => {
                let before = if replaced.is_some() {
                    self.admission.breaker(&request.agent).settle(feature)
                } else {
                    0
                };
                Ok((forgiven + before, replaced))
            }
            breaker::Admission::Waits(paused) => Err(paused),
        }
    }

    /// The features that merge or wait to merge.
    fn ready(&self) -> impl Iterator<Item = &FeatureId> {
        self.queue.waiting().map(|ready| &ready.feature).chain(self.queue.holders())
    }

    /// The run of a feature is over, and the feature has its new state.
    pub(super) fn end_admission(&mut self, feature: &FeatureId) {
        let state = self.backlog.state(feature).cloned();
        self.admission.repair.end(feature, state.as_ref());
        if state == Some(FeatureState::Passed) {
            self.admission.pass(feature);
        }
    }
}

impl ProjectRun {
    /// Counts the use of a session of the built-in agent; returns whether the message reports
    /// that. Its feature run may be over.
    pub(super) fn take_use(&mut self, received: &Received) -> bool {
        let Received::Signal { name, payload, from: Some(session) } = received else {
            return false;
        };
        let Ok(SessionUsed { used }) = payload.read() else { return false };
        if name != SessionUsed::SIGNAL {
            return false;
        }
        self.admission.ledger.spend(used);
        if let Some(feature) = self.feature_with(session) {
            self.count_use(&feature, used);
        }
        true
    }

    pub(super) fn count_use(&mut self, feature: &FeatureId, used: Resources) {
        if let Some(current) = self.current.get_mut(feature) {
            current.used += used;
        }
    }
}
