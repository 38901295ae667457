//! Resolves names of runs: an id, a unique part of one, or a feature.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::{RunId, StoreError, Summary};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::feature::FeatureRunId;
use longhaul_workflows::projection::ProjectView;
use serde::{Deserialize, Serialize};

use super::suggest::nearest;
use super::{Unknown, Unresolved, View};
use crate::request::RequestError;
use crate::run_kind::RunKind;

/// A run or a feature as the user names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// As it was written.
    pub text: String,
    /// The project in which feature ids are looked up.
    pub project: Option<RunId>,
    /// Whether only a whole id matches, because a directory has the same name.
    #[serde(default)]
    pub whole: bool,
}

/// The run or feature that a name resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResolvedName {
    Run(RunId),
    Feature { project: RunId, feature: FeatureId },
}

/// The project and the feature of a run id `project/feature/number`, or of an id below it.
pub(crate) fn project_and_feature(
    run: &RunId,
    summary: &Summary,
) -> (Option<String>, Option<String>) {
    if RunKind::of(summary) == RunKind::Project {
        return (Some(run.to_string()), None);
    }
    let id = FeatureRunId::of(run);
    id.map(|id| (id.project, id.feature.to_string())).unzip()
}

/// The highest number of the runs of each feature, by project.
pub(crate) struct LatestRuns(BTreeMap<String, BTreeMap<FeatureId, u32>>);

impl LatestRuns {
    /// Of these runs.
    pub(crate) fn of(runs: &[(RunId, Summary)]) -> Self {
        let mut latest = BTreeMap::<_, BTreeMap<_, u32>>::new();
        for FeatureRunId { project, feature, number } in
            runs.iter().filter_map(|(run, _)| FeatureRunId::of(run))
        {
            let last = latest.entry(project).or_default().entry(feature).or_default();
            *last = number.max(*last);
        }
        Self(latest)
    }

    /// The features of a project, each with the number of its last run.
    pub(crate) fn of_project(&self, project: &RunId) -> impl Iterator<Item = (&FeatureId, u32)> {
        let features = self.0.get(project.as_str()).into_iter().flatten();
        features.map(|(feature, last)| (feature, *last))
    }

    /// The run of the same feature that superseded a run, or the run that it is below.
    pub(crate) fn after(&self, run: &RunId) -> Option<RunId> {
        let FeatureRunId { project, feature, number } = FeatureRunId::of(run)?;
        let last = self.0.get(&project)?.get(&feature).filter(|last| **last > number);
        let number = *last?;
        FeatureRunId { project, feature, number }.run()
    }
}

impl View<'_> {
    /// The last run of the feature of a run, if that is another one.
    pub(super) async fn superseded_by(&self, run: &RunId) -> Result<Option<RunId>, StoreError> {
        let Some(FeatureRunId { project, feature, .. }) = FeatureRunId::of(run) else {
            return Ok(None);
        };
        let runs = self.store.runs(&format!("{project}/{feature}/")).await?;
        Ok(LatestRuns::of(&runs).after(run))
    }

    /// Resolves a name to a run; a feature means its last one.
    pub(super) async fn run_of(&self, name: &Name) -> Result<RunId, RequestError> {
        let (project, feature) = match self.find(name).await? {
            ResolvedName::Feature { project, feature } => (project, feature),
            ResolvedName::Run(run) => return Ok(run),
        };
        let of_feature = format!("{project}/{feature}");
        let runs = self.store.runs(&of_feature).await?;
        let is_run_of_it = |run: &RunId, summary: &Summary| {
            RunKind::of(summary) != RunKind::Session && run.is_within(&of_feature)
        };
        let runs = runs.iter().filter(|(run, summary)| is_run_of_it(run, summary));
        let run = unique_match(runs.map(|(run, _)| run), &of_feature);
        run.ok_or_else(|| unknown(&name.text, Unresolved::NoRun, vec![of_feature]))
    }

    /// Resolves a name to a run or a feature.
    pub(super) async fn find(&self, name: &Name) -> Result<ResolvedName, RequestError> {
        let text = name.text.trim_end_matches('/');
        if let Some(run) = self.exact(text).await? {
            return Ok(ResolvedName::Run(run));
        }
        let mut known = Vec::new();
        if let Some(project) = &name.project {
            if let Some(run) = self.exact(&format!("{project}/{text}")).await? {
                return Ok(ResolvedName::Run(run));
            }
            known = self.features_of(project).await?;
            if let Some(feature) = known.iter().find(|feature| feature.as_str() == text) {
                return Ok(ResolvedName::Feature {
                    project: project.clone(),
                    feature: feature.clone(),
                });
            }
        }
        if let Some((project, feature)) = text.rsplit_once('/')
            && let Some(project) = self.exact(project).await?
            && let Some(feature) =
                self.features_of(&project).await?.into_iter().find(|id| id.as_str() == feature)
        {
            return Ok(ResolvedName::Feature { project, feature });
        }
        if name.whole {
            return Err(unknown(text, Unresolved::Nothing, Vec::new()));
        }
        let below = self.store.runs(text).await?;
        if let Some(run) = unique_match(below.iter().map(|(run, _)| run), text) {
            return Ok(ResolvedName::Run(run));
        }
        let all = self.store.runs("").await?;
        let ends: Vec<&RunId> =
            all.iter().map(|(run, _)| run).filter(|run| ends_with(run, text)).collect();
        if let [run] = ends[..] {
            return Ok(ResolvedName::Run(run.clone()));
        }
        let several: Vec<&RunId> =
            if ends.is_empty() { below.iter().map(|(run, _)| run).collect() } else { ends };
        if !several.is_empty() {
            let meant = several.into_iter().take(5).map(ToString::to_string).collect();
            return Err(unknown(text, Unresolved::Several, meant));
        }
        let runs = all.iter().map(|(run, _)| run.as_str());
        let meant = nearest(text, known.iter().map(FeatureId::as_str).chain(runs));
        Err(unknown(text, Unresolved::Nothing, meant))
    }

    /// Resolves a project by its id or a prefix of it. Ids that are only ancestors of runs count
    /// too.
    pub(super) async fn project(&self, text: &str) -> Result<RunId, RequestError> {
        let text = text.trim_end_matches('/');
        let is_below = self.store.runs(&format!("{text}/")).await?.into_iter().next().is_some();
        if let Ok(run) = RunId::new(text)
            && (is_below || self.store.summary(&run).await?.is_some())
        {
            return Ok(run);
        }
        let all = self.store.runs("").await?.into_iter();
        let projects: Vec<RunId> = all
            .filter(|(_, summary)| RunKind::of(summary) == RunKind::Project)
            .map(|(run, _)| run)
            .collect();
        let mut begun =
            projects.iter().filter(|run| !text.is_empty() && run.as_str().starts_with(text));
        if let (Some(run), None) = (begun.next(), begun.next()) {
            return Ok(run.clone());
        }
        let meant = nearest(text, projects.iter().map(RunId::as_str));
        Err(unknown(text, Unresolved::NoProject, meant))
    }

    async fn exact(&self, text: &str) -> Result<Option<RunId>, StoreError> {
        let Ok(run) = RunId::new(text) else { return Ok(None) };
        Ok(self.store.summary(&run).await?.is_some().then_some(run))
    }

    /// The features of a project, including removed ones with runs.
    async fn features_of(&self, project: &RunId) -> Result<Vec<FeatureId>, StoreError> {
        let view = ProjectView::of(&self.store.published(project).await?);
        let known: Vec<FeatureId> = view.backlog.into_iter().map(|feature| feature.id).collect();
        let listed: BTreeSet<&FeatureId> = known.iter().collect();
        let more = view.features.into_keys().filter(|id| !listed.contains(id));
        let more: Vec<FeatureId> = more.collect();
        Ok(known.into_iter().chain(more).collect())
    }
}

fn unknown(name: &str, why: Unresolved, meant: Vec<String>) -> RequestError {
    RequestError::UnknownName(Unknown { name: name.into(), why, meant })
}

/// The run that a part of an id selects: the only match, the ancestor of all matches, or the last
/// run of a feature.
fn unique_match<'a>(runs: impl Iterator<Item = &'a RunId>, text: &str) -> Option<RunId> {
    let mut runs: Vec<&RunId> = runs.collect();
    // A match of whole parts wins over a prefix of a part: `login` does not select `login-2` then.
    let whole: Vec<&RunId> = runs.iter().copied().filter(|run| run.is_within(text)).collect();
    if !whole.is_empty() {
        runs = whole;
    }
    let top = runs.iter().min_by_key(|run| run.as_str().len())?;
    if runs.iter().all(|run| run.is_within(top.as_str())) {
        return Some((*top).clone());
    }
    let number =
        |run: &RunId| run.as_str().strip_prefix(text)?.strip_prefix('/')?.parse::<u64>().ok();
    let numbered: Option<Vec<_>> = runs.iter().map(|run| Some((number(run)?, *run))).collect();
    numbered?.into_iter().max().map(|(_, run)| run.clone())
}

/// Whether an id ends with these whole parts, or with the prefix of one.
fn ends_with(run: &RunId, text: &str) -> bool {
    run.as_str().strip_suffix(text).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_only(runs: &[&str], text: &str, expected: Option<&str>) {
        let runs: Vec<RunId> = runs.iter().map(|run| RunId::new(*run).unwrap()).collect();
        let found = unique_match(runs.iter().filter(|run| run.as_str().starts_with(text)), text);
        assert_eq!(found.as_ref().map(RunId::as_str), expected, "{text}");
    }

    #[test]
    fn a_beginning_means_the_top_or_the_last() {
        let runs =
            ["shop-1", "shop-1/login/1", "shop-1/login/2", "shop-1/login/10", "shop-2", "till-3"];
        check_only(&runs, "shop-1", Some("shop-1"));
        check_only(&runs, "ti", Some("till-3"));
        check_only(&runs, "shop", None);
        check_only(&runs, "shop-1/login", Some("shop-1/login/10"));
        check_only(&runs, "nothing", None);
        check_only(&["shop-1/login/1", "shop-1/login-2/1"], "shop-1/login", Some("shop-1/login/1"));
    }

    #[test]
    fn an_ending_is_of_whole_parts() {
        let run = RunId::new("shop-1/login/2").unwrap();
        assert!(ends_with(&run, "login/2") && ends_with(&run, "2"));
        assert!(!ends_with(&run, "in/2") && !ends_with(&run, "shop-1/login/2"));
    }
}
