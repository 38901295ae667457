//! Exports the list of a project in the formats of other tools. Fields that the format lacks are
//! written under Longhaul's own key, so that an import restores the same features.

mod ada;
mod beads;
mod quickstart;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::import::CLAIMED_STATUS;
use super::list::FeatureList;
use longhaul_workflows::backlog::{Feature, FeatureStatus};

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// An array in priority order.
    Quickstart,
    /// `features` with acceptance criteria and `depends_on`.
    Ada,
    /// One issue per line (beads).
    Beads,
}

impl Target {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Quickstart, Self::Ada, Self::Beads];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quickstart => "quickstart",
            Self::Ada => "ada",
            Self::Beads => "beads",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown =
            || format!("there is no shape `{name}` to write; known are quickstart, ada, beads");
        Self::ALL.into_iter().find(|target| target.name() == name).ok_or_else(unknown)
    }
}

/// The list as text. The project's path is included if the format has a field for it.
pub fn write(list: &FeatureList, target: Target, project_path: &str) -> String {
    match target {
        Target::Quickstart => quickstart::write(list),
        Target::Ada => ada::write(list, project_path),
        Target::Beads => beads::write(list),
    }
}

/// The features with their unread keys.
fn entries(list: &FeatureList) -> Vec<(&Feature, Map<String, Value>)> {
    list.features().iter().zip(list.extras()).collect()
}

/// The same for a tool that trusts the status: a claim is exported as open, with the claim in a
/// separate key.
fn entries_without_claims(list: &FeatureList) -> Vec<(Feature, Map<String, Value>)> {
    let marked = entries(list).into_iter().map(|(feature, mut extra)| {
        let mut feature = feature.clone();
        if feature.status == FeatureStatus::Completed && !feature.passes {
            feature.status = FeatureStatus::Pending;
            extra.insert(CLAIMED_STATUS.to_owned(), FeatureStatus::Completed.as_str().into());
        }
        (feature, extra)
    });
    marked.collect()
}

/// Appends the missing keys.
fn append(entry: &mut Map<String, Value>, extra: Map<String, Value>) {
    for (key, value) in extra {
        entry.entry(key).or_insert(value);
    }
}
