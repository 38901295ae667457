//! A run and its descendants.

use std::collections::BTreeMap;

use longhaul_engine::{RunId, StoreError, Summary};
use longhaul_workflows::feature::FeatureProgress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::View;
use super::list::RunLine;
use super::names::LatestRuns;
use super::states::Projects;

/// A run and its descendants in the order of their start; each run follows its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeDocument {
    /// Whether a process runs this log now.
    pub is_running: bool,
    /// The run and its descendants, each after its parent.
    pub runs: Vec<Branch>,
}

/// A run in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Branch {
    /// Its depth in this tree.
    pub depth: usize,
    /// The run.
    #[serde(flatten)]
    pub run: RunLine,
    /// The current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// The runs by their parents.
type Families = BTreeMap<RunId, Vec<(RunId, Summary)>>;

impl View<'_> {
    pub(super) async fn tree(&self, root: &RunId) -> Result<TreeDocument, StoreError> {
        let summary =
            self.store.summary(root).await?.ok_or_else(|| StoreError::UnknownRun(root.clone()))?;
        let mut families = Families::new();
        let below = self.store.runs(&format!("{root}/")).await?;
        let latest = LatestRuns::of(&below);
        for (run, summary) in below {
            if let Some(parent) = summary.parent.clone() {
                families.entry(parent).or_default().push((run, summary));
            }
        }
        for family in families.values_mut() {
            family.sort_by(|(a, one), (b, other)| {
                one.started_at.cmp(&other.started_at).then_with(|| a.cmp(b))
            });
        }
        let mut projects = Projects::default();
        let mut runs = Vec::new();
        // An explicit stack, because a deep tree would overflow the call stack.
        let mut open = vec![(0, root.clone(), summary)];
        while let Some((depth, run, summary)) = open.pop() {
            let children = families.remove(&run).unwrap_or_default();
            open.extend(
                children.into_iter().rev().map(|(child, summary)| (depth + 1, child, summary)),
            );
            let step = self.step(&run, &summary).await?;
            let superseded_by = latest.after(&run);
            let run = self.line_by(run, summary, &mut projects).await?;
            let run = RunLine { superseded_by, ..run };
            runs.push(Branch { depth, run, step });
        }
        Ok(TreeDocument { is_running: self.owner.is_running, runs })
    }

    async fn step(&self, run: &RunId, summary: &Summary) -> Result<Option<String>, StoreError> {
        if summary.status.is_terminal() {
            return Ok(None);
        }
        let progress = FeatureProgress::published(&self.store.published(run).await?);
        Ok(progress.and_then(|progress| progress.step()))
    }
}
