//! Errors of feature graphs, with place and remedy.

use super::feature::FeatureId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

/// Why a feature graph was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BacklogError {
    /// No entry has this id.
    #[error("there is no feature `{id}`")]
    UnknownFeature {
        /// The requested id.
        id: FeatureId,
    },

    /// Two features with the same id. Places are counted from 1.
    #[error(
        "feature {first_place} (`{first}`) and feature {second_place} (`{second}`) have the same id \
         (capital letters do not count); rename one of them"
    )]
    Duplicate {
        /// The earlier one.
        first: FeatureId,
        /// Its place in the file.
        first_place: usize,
        /// The later one.
        second: FeatureId,
        /// Its place in the file.
        second_place: usize,
    },

    /// A dependency that does not exist. Places are counted from 1.
    #[error(
        "feature {place} (`{feature}`) depends on `{dependency}`, which is not in the backlog; \
         add it, or take it out of `depends_on`"
    )]
    UnknownDependency {
        /// The feature with the dependency.
        feature: FeatureId,
        /// Its place in the file.
        place: usize,
        /// The missing feature.
        dependency: FeatureId,
    },

    /// Dependency cycles, the shortest first; at least one.
    #[error("{}", cycles(.0))]
    Cycles(Vec<Cycle>),
}

/// How many cycles are named before the rest is counted.
const NAMED: usize = 100;

fn cycles(cycles: &[Cycle]) -> String {
    if let [cycle] = cycles {
        let path = path(&cycle.path);
        return format!(
            "the dependencies form a cycle: {path}; take one of them out of `depends_on`"
        );
    }
    let line = |cycle: &Cycle| {
        let needed = &cycle.without;
        let feature = &cycle.without_in;
        format!("\n- {} (`{feature}` without `{needed}`)", path(&cycle.path))
    };
    let mut text = format!(
        "the dependencies form {} cycles; take one link of each out of `depends_on`, \
         for example the one in parentheses:",
        cycles.len()
    );
    text.extend(cycles.iter().take(NAMED).map(line));
    if cycles.len() > NAMED {
        text += &format!("\nand {} more", cycles.len() - NAMED);
    }
    text
}

/// The ids with arrows; a very long cycle is abbreviated in the middle.
fn path(ids: &[FeatureId]) -> String {
    let joined =
        |part: &[FeatureId]| part.iter().map(FeatureId::as_str).collect::<Vec<_>>().join(" -> ");
    if ids.len() <= 24 {
        return joined(ids);
    }
    let head = &ids[..12];
    let tail = &ids[ids.len() - 8..];
    format!("{} -> ({} more) -> {}", joined(head), ids.len() - 20, joined(tail))
}

/// A dependency cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cycle {
    /// Each feature depends on the next one; the first one is also the last one.
    pub path: Vec<FeatureId>,
    /// The feature that could lose a dependency.
    pub without_in: FeatureId,
    /// That dependency. The list is acyclic without these dependencies of all cycles.
    pub without: FeatureId,
}
