//! Why a feature makes no progress, or its outcome.

use std::collections::{BTreeSet, HashMap, VecDeque};

use longhaul_engine::{RunId, Status, StoreError};
use longhaul_workflows::backlog::{Feature, FeatureId};
use longhaul_workflows::narrative::short;
use longhaul_workflows::projection::{ProjectView, State};

use super::super::{Header, View};
use super::reason::sentence;
use super::{Kind, Reason, WhyDocument, project};
use crate::advice;
use crate::head::RunHead;
use crate::status::UNTAKEN_RESULT;

impl View<'_> {
    pub(crate) async fn why_feature(
        &self,
        project: &RunId,
        feature: &FeatureId,
        list: Option<Vec<Feature>>,
    ) -> Result<WhyDocument, StoreError> {
        let head = RunHead::of(self.store, project).await?;
        let view = self.project_view(project).await?;
        let view = match list {
            Some(list) => view.with_list(list),
            None => view,
        };
        let state = view.state(feature);
        let run = view.feature(feature).and_then(|feature| feature.run.clone());
        let mut status = state;
        let mut reasons = match (state, &run) {
            (State::Running, Some(run)) => {
                let of_run = self.why_run(run).await?;
                if of_run.header.status == State::Passed {
                    status = State::Waiting;
                    let reason =
                        Reason::of(Kind::Next, format!("It waits: {}", sentence(UNTAKEN_RESULT)));
                    let rest = self.why_pending(project, feature, &view, head.as_ref());
                    let rest = rest.into_iter().filter(|reason| reason.kind != Kind::Next);
                    std::iter::once(reason).chain(rest).collect()
                } else {
                    status = of_run.header.status;
                    of_run.reasons
                }
            }
            (State::Running, None) => Vec::new(),
            (State::Blocked | State::Cancelled, _) => self.why_blocked(feature, &view).await?,
            (State::Passed, _) => why_done(project, feature, &view),
            _ => self.why_pending(project, feature, &view, head.as_ref()),
        };
        let pending = head.map(|head| head.pending()).unwrap_or_default();
        let of_feature = pending
            .iter()
            .filter(|entry| entry.action.feature.as_deref() == Some(feature.as_str()));
        reasons.extend(of_feature.map(Reason::pending));
        let project = Some(project.to_string());
        let id = Some(feature.to_string());
        let header = Header { project, feature: id, run, status };
        Ok(WhyDocument { about: feature.to_string(), header, reasons })
    }

    /// Includes the reasons of its last run, unless a person blocked the feature.
    async fn why_blocked(
        &self,
        feature: &FeatureId,
        view: &ProjectView,
    ) -> Result<Vec<Reason>, StoreError> {
        let known = view.feature(feature);
        if let Some(run) = known.and_then(|known| known.run.as_ref()) {
            let reasons = self.why_run(run).await?.reasons;
            // The run ended as it did, but a person may have blocked the feature since.
            let is_by_other = view.state(feature) == State::Blocked
                && known.is_some_and(|known| !known.is_blocked_by_run());
            if !is_by_other
                && reasons.iter().any(|reason| {
                    matches!(reason.kind, Kind::Blocked | Kind::Failed | Kind::Cancelled)
                })
            {
                return Ok(reasons);
            }
        }
        let why = known.and_then(|known| known.reason.as_deref()).unwrap_or("no reason was given");
        let root = root(view);
        let again = format!("{} tries it", advice::feature("unblock", feature.as_str(), root));
        Ok(vec![
            Reason::of(Kind::Blocked, format!("It is blocked: {}", sentence(why)))
                .with_remedy(again),
        ])
    }

    /// The reason with which a run ended.
    fn why_pending(
        &self,
        project: &RunId,
        feature: &FeatureId,
        view: &ProjectView,
        head: Option<&RunHead>,
    ) -> Vec<Reason> {
        let mut reasons = dependencies(project, feature, view);
        if let Some(Status::Paused(request)) = head.map(|head| &head.summary.status) {
            reasons.push(Reason::paused("The project was", project, request));
        }
        let of_project = match head {
            Some(head) => project::obstacles_now(view, project, head),
            None => project::obstacles(view, project),
        };
        let of_project = of_project.into_iter();
        reasons
            .extend(of_project.filter(|reason| matches!(reason.kind, Kind::Halted | Kind::List)));
        if let Some(stop) = self.owner.stuck.get(project) {
            reasons.push(Reason::of(Kind::Stuck, format!("Its project cannot go on: {stop}")));
        }
        if reasons.is_empty() {
            reasons.push(why_workable(feature, view));
        }
        // Where a person must act, another `longhaul run` does not help.
        let needs_person = |reason: &Reason| reason.remedy.is_some() || reason.kind == Kind::List;
        if !self.owner.runs(project) && !reasons.iter().any(needs_person) {
            reasons.push(Reason::not_running(root(view)));
        }
        reasons
    }
}

fn why_done(project: &RunId, feature: &FeatureId, view: &ProjectView) -> Vec<Reason> {
    let Some(known) = view.feature(feature) else { return Vec::new() };
    let commit = short(known.commit.as_deref().unwrap_or_default());
    let done = Reason::of(Kind::Done, format!("It is done: its gates passed on {commit}."));
    let waits = project::obstacles(view, project)
        .into_iter()
        .filter(|reason| reason.kind == Kind::Checkout);
    std::iter::once(done).chain(waits).chain(Reason::noticed(&known.findings)).collect()
}

/// The checkout of a project.
fn root(view: &ProjectView) -> &str {
    view.summary.as_ref().map_or("", |summary| summary.root.as_str())
}

/// Why a ready feature has not started.
fn why_workable(feature: &FeatureId, view: &ProjectView) -> Reason {
    let running: Vec<String> =
        view.in_state(State::Running).iter().map(ToString::to_string).collect();
    let limit = view.summary.as_ref().map_or(usize::MAX, |summary| summary.parallel);
    if running.len() < limit {
        return Reason::of(
            Kind::Next,
            format!("Nothing blocks {feature}: it starts when the project runs."),
        );
    }
    let text =
        format!("The project works on {limit} at once, and has so many: {}.", running.join(", "));
    let remedy =
        "a higher `parallel` under `[project]` in longhaul.toml, or a higher priority in the list";
    Reason::of(Kind::ParallelLimit, text).with_features(running).with_remedy(remedy)
}

/// The unpassed ends of all chains of dependencies; each end once, by the shortest chain.
fn dependencies(project: &RunId, feature: &FeatureId, view: &ProjectView) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let listed: HashMap<&FeatureId, &Feature> =
        view.backlog.iter().map(|feature| (&feature.id, feature)).collect();
    let mut seen = BTreeSet::from([feature]);
    let mut open = VecDeque::from([vec![feature]]);
    while let Some(chain) = open.pop_front() {
        let last = chain.last().copied().unwrap_or(feature);
        let Some(&known) = listed.get(last) else { continue };
        let state = view.state_of(known);
        if chain.len() > 1 && state != State::Waiting {
            reasons.push(dependency(project, &chain, state, view));
            continue;
        }
        for next in view.missing_of(known) {
            if seen.insert(next) {
                open.push_back(chain.iter().copied().chain([next]).collect());
            }
        }
    }
    reasons
}

/// The feature at the end of a chain of dependencies, and its state.
fn dependency(project: &RunId, chain: &[&FeatureId], state: State, view: &ProjectView) -> Reason {
    let last = chain[chain.len() - 1];
    let chain: Vec<String> = chain.iter().map(ToString::to_string).collect();
    let through = match &chain[1..chain.len() - 1] {
        [] => String::new(),
        between => format!(" (through {})", between.join(", ")),
    };
    let why = view.feature(last).and_then(|feature| feature.reason.as_deref());
    let stands = match (state, why) {
        (State::Blocked | State::Cancelled, Some(why)) => format!("is {state}: {}", sentence(why)),
        // Its run may be paused.
        (State::Running, _) => "is in progress.".to_owned(),
        _ => format!("is {state}."),
    };
    let reason = Reason::of(Kind::Dependency, format!("It needs {last}{through}, which {stands}"));
    let reason = reason.with_features(chain);
    if !matches!(state, State::Blocked | State::Cancelled) {
        return reason;
    }
    reason.with_remedy(format!(
        "{} says more; {} tries it again",
        advice::command(["why", &format!("{project}/{last}")]),
        advice::feature("unblock", last.as_str(), root(view)),
    ))
}
