//! The runs that a name covers: all of a project, of a feature, or below a run.

use longhaul_engine::{RunId, StoreError, Summary};

use super::names::ResolvedName;
use super::{Name, View};
use crate::request::RequestError;

impl View<'_> {
    /// The id, or beginning of ids, of the runs that a name covers; without a name, all.
    pub(super) async fn scope(&self, name: Option<&Name>) -> Result<String, RequestError> {
        let Some(name) = name else { return Ok(String::new()) };
        Ok(match self.find(name).await? {
            ResolvedName::Run(run) => run.to_string(),
            ResolvedName::Feature { project, feature } => format!("{project}/{feature}"),
        })
    }

    /// The runs within a scope.
    pub(super) async fn within(&self, scope: &str) -> Result<Vec<(RunId, Summary)>, StoreError> {
        let mut runs = self.store.runs(scope).await?;
        runs.retain(|(run, _)| scope.is_empty() || run.is_within(scope));
        Ok(runs)
    }
}
