//! Why a feature is not worked on, or what became of it.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::{RunId, StoreError};
use longhaul_workflows::backlog::{Feature, FeatureId, FeatureStatus};
use longhaul_workflows::project::{BacklogView, FeatureView};

use super::super::graph::State;
use super::super::{View, published, report};
use super::outcome::{given_up, sentence};
use super::{Kind, Reason, WhyDocument};
use crate::overlay::Features;

/// What a project says of its features.
struct ListedFeatures {
    listed: Vec<Feature>,
    views: BTreeMap<String, FeatureView>,
}

impl View<'_> {
    pub(crate) async fn why_feature(
        &self,
        project: &RunId,
        feature: &FeatureId,
        list: Option<Vec<Feature>>,
    ) -> Result<WhyDocument, StoreError> {
        let Features { published: values, views, .. } = Features::of(self.store, project).await?;
        let known = || published::<BacklogView>(&values, BacklogView::KEY).map(|backlog| backlog.features);
        let listed = list.or_else(known).unwrap_or_default();
        let standing = ListedFeatures { listed, views };
        let state = standing.state(feature.as_str());
        let run = standing.views.get(feature.as_str()).and_then(|view| view.run.clone());
        let reasons = match state {
            State::InProgress => match &run {
                Some(run) => self.why_run(run).await?.reasons,
                None => Vec::new(),
            },
            State::Blocked => self.why_blocked(feature, &standing).await?,
            State::Passes => self.why_done(project, feature, &standing).await?,
            State::Waiting | State::Pending => self.why_pending(project, feature, &standing).await?,
        };
        Ok(WhyDocument {
            about: feature.to_string(),
            project: Some(project.to_string()),
            feature: Some(feature.to_string()),
            run,
            state: state.words().into(),
            reasons,
        })
    }

    /// Its last run says why in detail, unless a person blocked it.
    async fn why_blocked(&self, feature: &FeatureId, standing: &ListedFeatures) -> Result<Vec<Reason>, StoreError> {
        let view = standing.views.get(feature.as_str());
        if let Some(run) = view.and_then(|view| view.run.as_ref()) {
            let reasons = self.why_run(run).await?.reasons;
            if reasons.iter().any(|reason| matches!(reason.kind, Kind::Blocked | Kind::Failed | Kind::Cancelled)) {
                return Ok(reasons);
            }
        }
        let why = view.and_then(|view| view.reason.as_deref()).unwrap_or("nobody said why");
        let again = format!("`longhaul feature unblock {feature}` tries it");
        Ok(vec![Reason::of(Kind::Blocked, format!("It is blocked: {}", sentence(why))).with_remedy(again)])
    }

    async fn why_done(
        &self,
        project: &RunId,
        feature: &FeatureId,
        standing: &ListedFeatures,
    ) -> Result<Vec<Reason>, StoreError> {
        let commit = standing.views.get(feature.as_str()).and_then(|view| view.commit.as_deref()).unwrap_or_default();
        let done = Reason::of(Kind::Done, format!("It is done: its gates passed on {}.", report::short(commit)));
        let project = self.project_reasons(project).await?;
        let waits = project.into_iter().filter(|reason| reason.kind == Kind::Checkout);
        let noticed = standing.views.get(feature.as_str()).map(|view| Reason::noticed(&view.findings));
        Ok(std::iter::once(done).chain(waits).chain(noticed.unwrap_or_default()).collect())
    }

    async fn why_pending(
        &self,
        project: &RunId,
        feature: &FeatureId,
        standing: &ListedFeatures,
    ) -> Result<Vec<Reason>, StoreError> {
        let mut reasons = standing.dependencies(feature.as_str());
        if let Some(request) = self.project_paused(project).await? {
            reasons.push(Reason::paused("The project was", project.as_str(), &request));
        }
        let of_project = self.project_reasons(project).await?;
        reasons.extend(of_project.into_iter().filter(|reason| matches!(reason.kind, Kind::Halted | Kind::List)));
        if let Some(stop) = self.stuck.get(project) {
            reasons.push(Reason::of(Kind::Stuck, format!("Its project cannot go on: {stop}")));
        }
        if reasons.is_empty() {
            reasons.push(self.why_workable(project, feature, standing).await?);
        }
        // Where a person is needed, running it again does nothing.
        let needs_person = |reason: &Reason| reason.remedy.is_some() || reason.kind == Kind::List;
        if !self.is_running && !reasons.iter().any(needs_person) {
            reasons.push(Reason::not_running());
        }
        Ok(reasons)
    }

    /// Why a feature that can be worked on is not.
    async fn why_workable(
        &self,
        project: &RunId,
        feature: &FeatureId,
        standing: &ListedFeatures,
    ) -> Result<Reason, StoreError> {
        let in_progress = standing.views.iter().filter(|(_, view)| view.status == FeatureStatus::InProgress);
        let in_progress: Vec<String> = in_progress.map(|(id, _)| id.clone()).collect();
        let limit = self.lane(project).await?.parallel.unwrap_or(u32::MAX);
        if in_progress.len() < limit as usize {
            return Ok(Reason::of(
                Kind::Next,
                format!("Nothing holds {feature} up: it is begun when the project runs."),
            ));
        }
        let text = format!("The project works on {limit} at once, and has so many: {}.", in_progress.join(", "));
        let remedy = "a higher `parallel` under `[project]` in longhaul.toml, or a higher priority in the list";
        Ok(Reason::of(Kind::ParallelLimit, text).with_features(in_progress).with_remedy(remedy))
    }
}

impl ListedFeatures {
    fn state(&self, id: &str) -> State {
        match self.views.get(id) {
            Some(view) if view.passes => State::Passes,
            Some(view) if view.status == FeatureStatus::InProgress => State::InProgress,
            Some(view) if view.status == FeatureStatus::Blocked => State::Blocked,
            _ if self.missing(id).next().is_some() => State::Waiting,
            _ => State::Pending,
        }
    }

    /// The dependencies that do not pass.
    fn missing<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a str> {
        let feature = self.listed.iter().find(|feature| feature.id.as_str() == id);
        let needs = feature.into_iter().flat_map(|feature| &feature.depends_on);
        needs.map(FeatureId::as_str).filter(|id| !self.views.get(*id).is_some_and(|view| view.passes))
    }

    /// What holds a feature up at the ends of all chains of dependencies that do not pass; each end once, by the shortest.
    fn dependencies(&self, id: &str) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut seen = BTreeSet::from([id.to_owned()]);
        let mut open = std::collections::VecDeque::from([vec![id.to_owned()]]);
        while let Some(chain) = open.pop_front() {
            let last = chain.last().map_or(id, String::as_str);
            let missing: Vec<&str> = self.missing(last).collect();
            let state = self.state(last);
            if chain.len() > 1 && (missing.is_empty() || state != State::Waiting) {
                reasons.push(self.dependency(&chain, last, state));
                continue;
            }
            for next in missing {
                if seen.insert(next.to_owned()) {
                    open.push_back(chain.iter().cloned().chain([next.to_owned()]).collect());
                }
            }
        }
        reasons
    }

    fn dependency(&self, chain: &[String], last: &str, state: State) -> Reason {
        let through = match &chain[1..chain.len() - 1] {
            [] => String::new(),
            between => format!(" (through {})", between.join(", ")),
        };
        let why = self.views.get(last).and_then(|view| view.reason.as_deref());
        let stands = match (state, why) {
            (State::Blocked, Some(why)) => format!("is blocked: {}", sentence(given_up(why))),
            (State::Blocked, None) => "is blocked.".into(),
            (State::InProgress, _) => "is in progress.".into(),
            _ => "is not begun yet.".into(),
        };
        let reason = Reason::of(Kind::Dependency, format!("It needs {last}{through}, which {stands}"));
        let reason = reason.with_features(chain.to_vec());
        if state == State::Blocked {
            return reason.with_remedy(format!(
                "`longhaul why {last}` says more; `longhaul feature unblock {last}` tries it again"
            ));
        }
        reason
    }
}
