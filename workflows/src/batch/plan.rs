//! The plan of a batch: projects, order and limits.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::backlog::{Backlog, BacklogError, Feature, FeatureId};
use crate::contracts::ProjectRef;

use super::Overrides;

/// A batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The most agents at once in projects with a label: `team=web`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u32>,
    /// The most projects at once; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// The projects, in the order of the file.
    pub projects: Vec<Entry>,
}

/// One project of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the batch.
    pub name: FeatureId,
    /// The project.
    pub project: ProjectRef,
    /// The projects that must pass before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<FeatureId>,
    /// Higher: its agents get slots earlier.
    #[serde(default)]
    pub priority: i64,
    /// Labels for people and filters; copied to its runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Settings that override its `longhaul.toml`.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
}

/// Why a plan is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// A dependency cycle of projects: the names, the first one again at the end.
    Cycle(Vec<FeatureId>),
    /// A project comes after an unknown one.
    Unknown(FeatureId, FeatureId),
    /// Two projects have the same name.
    Twice(FeatureId),
    /// A part that was submitted before has changed.
    Changed(Vec<String>),
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle(path) => {
                let path: Vec<_> = path.iter().map(FeatureId::as_str).collect();
                write!(formatter, "the projects form a dependency cycle: {}", path.join(" -> "))
            }
            Self::Unknown(name, after) => {
                write!(formatter, "project `{name}` comes after `{after}`, which is not there")
            }
            Self::Twice(name) => {
                write!(
                    formatter,
                    "two projects are called `{name}` (case is ignored): \
                     give one a `name`"
                )
            }
            Self::Changed(what) => write!(
                formatter,
                "a batch with this id exists and was changed: {}; use a new id",
                what.join(", ")
            ),
        }
    }
}

impl Plan {
    /// The order of the projects.
    ///
    /// # Errors
    /// If there is a cycle.
    pub fn order(&self) -> Result<Backlog, PlanError> {
        let node = |entry: &Entry| Feature {
            depends_on: entry.after.clone(),
            priority: entry.priority,
            ..Feature::new(entry.name.clone(), entry.name.as_str())
        };
        Backlog::new(self.projects.iter().map(node).collect()).map_err(|error| match error {
            BacklogError::Cycles(cycles) => PlanError::Cycle(
                cycles.into_iter().next().map(|cycle| cycle.path).unwrap_or_default(),
            ),
            BacklogError::UnknownDependency { feature, dependency, .. } => {
                PlanError::Unknown(feature, dependency)
            }
            BacklogError::Duplicate { second, .. } => PlanError::Twice(second),
            other @ BacklogError::UnknownFeature { .. } => {
                PlanError::Changed(vec![other.to_string()])
            }
        })
    }

    /// This plan with the additions of another one.
    ///
    /// # Errors
    /// If the other one changes or omits something, or the result has a cycle.
    pub fn with_additions(&self, other: &Self) -> Result<Self, PlanError> {
        let mut changed = Vec::new();
        let is_first = *self == Self::default();
        for entry in &self.projects {
            match other.projects.iter().find(|new| new.name == entry.name) {
                None => changed.push(format!("project `{}` is missing", entry.name)),
                Some(new) if new != entry => {
                    changed.push(format!("project `{}` has changed", entry.name));
                }
                Some(_) => {}
            }
        }
        for (label, limit) in &self.limits {
            if other.limits.get(label) != Some(limit) {
                changed.push(format!("the limit of `{label}` is another"));
            }
        }
        if self.at_once != other.at_once && !is_first {
            changed.push("`at_once` is another".into());
        }
        if !changed.is_empty() {
            return Err(PlanError::Changed(changed));
        }
        other.order()?;
        Ok(other.clone())
    }
}
