//! What can be wrong with a backlog, said with what, where and what to do.

use std::fmt;

use super::feature::FeatureId;

/// Why a list or a graph of features was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BacklogError {
    /// The text is not JSON.
    #[error(
        "the feature list is not JSON: {reason} (line {line}, column {column}); \
         correct it there, or take the last good version back from git"
    )]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1; 0 before the first byte of the line.
        column: usize,
        /// What the parser says.
        reason: String,
    },

    /// There are no entries to be found in it.
    #[error("the feature list has no entries: found {found}; {advice}")]
    NoEntries {
        /// What is there instead.
        found: String,
        /// What to write.
        advice: &'static str,
    },

    /// Entries of the list are wrong; every problem that was found.
    #[error("the feature list has {}:{}", count(.0.len(), "problem"), lines(.0))]
    Problems(Vec<Problem>),

    /// No entry has this id.
    #[error("there is no feature `{id}`; `longhaul feature list` shows the ids")]
    UnknownFeature {
        /// The id that was asked for.
        id: FeatureId,
    },

    /// Two features cannot be told apart. Places are counted from 1.
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

    /// A feature depends on one that is not there. The place is counted from 1.
    #[error(
        "feature {place} (`{feature}`) depends on `{dependency}`, which is not in the backlog; \
         add it, or take it out of `depends_on`"
    )]
    UnknownDependency {
        /// The feature that depends.
        feature: FeatureId,
        /// Its place in the file.
        place: usize,
        /// What it depends on.
        dependency: FeatureId,
    },

    /// Features wait for each other; the path begins and ends with the same feature.
    #[error("the dependencies go in a circle: {}; take one of them out of `depends_on`", path(.0))]
    Cycle(Vec<FeatureId>),
}

/// One thing that is wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: `entry 3` of a list or `line 12` of a checklist, counted from 1.
    pub place: String,
    /// The entry's id, as written; none when it has none.
    pub id: Option<String>,
    /// The field, as it is spelt there.
    pub field: String,
    /// What was found.
    pub found: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, id, field, found, advice } = self;
        formatter.write_str(place)?;
        if let Some(id) = id {
            write!(formatter, " (`{id}`)")?;
        }
        write!(formatter, ", `{field}`: {found}; {advice}")
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().flat_map(|problem| ["\n- ".to_owned(), problem.to_string()]).collect()
}

/// The ids with arrows; of a very long circle only the beginning and the end.
fn path(ids: &[FeatureId]) -> String {
    let joined = |part: &[FeatureId]| part.iter().map(FeatureId::as_str).collect::<Vec<_>>().join(" -> ");
    if ids.len() <= 24 {
        return joined(ids);
    }
    let (head, tail) = (&ids[..12], &ids[ids.len() - 8..]);
    format!("{} -> ({} more) -> {}", joined(head), ids.len() - 20, joined(tail))
}
