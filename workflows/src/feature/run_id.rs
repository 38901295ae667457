//! The ids of the runs of features: `PROJECT/FEATURE/NUMBER`, and below them those of sessions.

use longhaul_engine::RunId;

use crate::backlog::FeatureId;

/// The parts of the id of a feature's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureRunId {
    /// The id of the project.
    pub project: String,
    /// The feature.
    pub feature: FeatureId,
    /// The number of the run, from one.
    pub number: u32,
}

impl FeatureRunId {
    /// The feature's run that a run is, or is below; `None` for other runs.
    pub fn of(run: &RunId) -> Option<Self> {
        let mut parts = run.as_str().split('/');
        let project = parts.next()?;
        let feature = parts.next()?;
        let number = parts.next()?;
        let feature = FeatureId::new(feature).ok()?;
        let id = Self { project: project.to_owned(), feature, number: number.parse().ok()? };
        // `01` is no number of a run.
        run.is_within(&id.to_string()).then_some(id)
    }

    /// Whether it is a run of this project.
    pub fn is_of(&self, project: &str) -> bool {
        self.project == project
    }

    /// The id of the run.
    pub fn run(&self) -> Option<RunId> {
        RunId::new(self.to_string()).ok()
    }
}

impl std::fmt::Display for FeatureRunId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { project, feature, number } = self;
        write!(formatter, "{project}/{feature}/{number}")
    }
}

/// The run of the feature that a run is below; any other run itself.
pub fn feature_run(run: &RunId) -> RunId {
    FeatureRunId::of(run).and_then(|id| id.run()).unwrap_or_else(|| run.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature_run(id: &str) -> Option<String> {
        FeatureRunId::of(&RunId::new(id).unwrap()).map(|id| id.to_string())
    }

    #[test]
    fn a_session_is_below_the_run_of_its_feature() {
        for id in ["shop/login/1", "shop/login/1/2", "shop/login/1/2/3"] {
            assert_eq!(feature_run(id).as_deref(), Some("shop/login/1"));
        }
        for id in ["shop", "shop/login", "shop/login/01", "shop/login/x", "batch/1"] {
            assert_eq!(feature_run(id), None, "{id}");
        }
    }
}
