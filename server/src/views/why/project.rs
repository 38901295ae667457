//! Why a project as a whole does not go on.

use std::collections::BTreeMap;

use longhaul_engine::{MessageBody, RequestedBy, RunId, Status, StoreError};
use longhaul_workflows::backlog::FeatureStatus;
use longhaul_workflows::finding::Findings;
use longhaul_workflows::project::{FeatureView, Phase, ProjectView, Skipped, signal};

use super::super::lane::Lane;
use super::super::{View, published};
use super::{Kind, Reason};
use crate::overlay::Features;

impl View<'_> {
    pub(super) async fn lane(&self, project: &RunId) -> Result<Lane, StoreError> {
        let Some(summary) = self.store.summary(project).await? else { return Ok(Lane::default()) };
        Ok(Lane::of(&self.store.read(project, summary.origin).await?))
    }

    /// What is wrong with a project as a whole.
    pub(super) async fn project_reasons(&self, project: &RunId) -> Result<Vec<Reason>, StoreError> {
        let Features { published: values, views, .. } = Features::of(self.store, project).await?;
        let Some(view) = published::<ProjectView>(&values, ProjectView::KEY) else { return Ok(Vec::new()) };
        let halted = self.halted(project, view.halted.clone()).await?;
        let mut reasons: Vec<Reason> = halted.iter().map(Reason::halted).collect();
        if let Some(problem) = &view.problem {
            let text = format!("The list or the settings are wrong; those before are in force: {problem}");
            reasons.push(Reason::of(Kind::List, text));
        }
        if let Some(Skipped { signal, from, reason }) = published::<Skipped>(&values, Skipped::KEY) {
            let from = from.map(|run| format!(" from {run}")).unwrap_or_default();
            reasons
                .push(Reason::of(Kind::Skipped, format!("It did not follow the signal `{signal}`{from}: {reason}.")));
        }
        if let Some(reason) = &view.waits_on_next {
            let text = format!("Finished work waits on longhaul/next: {reason}");
            reasons.push(Reason::of(Kind::Checkout, text));
        }
        let findings = published::<Findings>(&values, Findings::KEY).unwrap_or_default();
        reasons.extend(view.paused.iter().map(Reason::outage));
        if halted.is_none() {
            reasons.push(stands(&view, &views));
        }
        reasons.extend(Reason::noticed(&findings));
        Ok(reasons)
    }

    /// Who cancelled a project, words that it has not heard yet included.
    async fn halted(&self, project: &RunId, known: Option<RequestedBy>) -> Result<Option<RequestedBy>, StoreError> {
        let mut halted = known;
        for message in self.store.mailbox(project).await? {
            match message.body {
                MessageBody::Signal { name, payload, .. } if name == signal::HALT => halted = payload.read().ok(),
                MessageBody::Signal { name, .. } if name == signal::SYNC => halted = None,
                _ => {}
            }
        }
        Ok(halted)
    }

    /// Who paused a project, orders that it has not taken yet included.
    pub(super) async fn project_paused(&self, project: &RunId) -> Result<Option<RequestedBy>, StoreError> {
        let summary = self.store.summary(project).await?;
        let mut paused = match summary.map(|summary| summary.status) {
            Some(Status::Paused(request)) => Some(request),
            _ => None,
        };
        for message in self.store.mailbox(project).await? {
            match message.body {
                MessageBody::Pause(request) => paused = Some(request),
                MessageBody::Resume(_) => paused = None,
                _ => {}
            }
        }
        Ok(paused)
    }
}

/// How far a project is.
fn stands(view: &ProjectView, features: &BTreeMap<String, FeatureView>) -> Reason {
    let count = format!("{} of {} features pass", view.passed, view.features);
    let with = |status| features.iter().filter(move |(_, view)| view.status == status && !view.passes);
    let names = |status| with(status).map(|(id, _)| id.clone()).collect::<Vec<String>>();
    let (blocked, at_work) = (names(FeatureStatus::Blocked), names(FeatureStatus::InProgress));
    if view.phase == Phase::Working {
        let text = match &at_work[..] {
            [] => format!("{count}."),
            at_work => format!("{count}; in progress: {}.", at_work.join(", ")),
        };
        return Reason::of(Kind::Working, text).with_features(at_work);
    }
    if blocked.is_empty() {
        return Reason::of(Kind::Done, format!("It is done: {count}."));
    }
    let text = format!("It needs a person: {count}, and the rest waits for {}.", blocked.join(", "));
    Reason::of(Kind::Blocked, text).with_remedy("`longhaul why FEATURE` says more").with_features(blocked)
}
