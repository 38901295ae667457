//! The shapes that can be imported, and the rule for each.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::error::ImportError;
use super::intake::Intake;
use super::source::{Source, Syntax};
use super::{ada, adk, beads, checklist, generic, github, junit, quickstart, ralph, task_master, tasks};

/// How a shape is told from the others, and how it is read.
pub(super) struct Rule {
    pub(super) syntax: Syntax,
    pub(super) fits: fn(&Source<'_>) -> bool,
    pub(super) read: fn(&Source<'_>, &mut Intake<'_>) -> Result<(), ImportError>,
}

/// A shape in which backlogs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// An array of descriptions with steps and `passes`.
    Quickstart,
    /// An array of names with `status`, `lastTested` and dependencies by name.
    Adk,
    /// The same under `items`, with a `meta` before it.
    AdkMeta,
    /// `tests` of one feature, with a summary.
    AdkTests,
    /// `features` with acceptance criteria and `depends_on`.
    Ada,
    /// `userStories`: a `prd.json`.
    Ralph,
    /// One issue to a line.
    Beads,
    /// `tasks`, below tags or not.
    TaskMaster,
    /// Markdown with `### Task 1: title` headings.
    TasksMd,
    /// Markdown with `- [ ] Name: description` lines.
    Checklist,
    /// The report of a test run: its failing tests.
    Junit,
    /// Issues as `gh issue list --json` writes them.
    Github,
    /// Any other list of features in JSON.
    List,
}

impl Shape {
    /// All shapes; the one that takes what no other does is the last.
    pub const ALL: [Self; 13] = [
        Self::Quickstart,
        Self::Adk,
        Self::AdkMeta,
        Self::AdkTests,
        Self::Ada,
        Self::Ralph,
        Self::Beads,
        Self::TaskMaster,
        Self::TasksMd,
        Self::Checklist,
        Self::Junit,
        Self::Github,
        Self::List,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quickstart => "quickstart",
            Self::Adk => "adk",
            Self::AdkMeta => "adk-meta",
            Self::AdkTests => "adk-tests",
            Self::Ada => "ada",
            Self::Ralph => "ralph",
            Self::Beads => "beads",
            Self::TaskMaster => "task-master",
            Self::TasksMd => "tasks-md",
            Self::Checklist => "checklist",
            Self::Junit => "junit",
            Self::Github => "github",
            Self::List => "list",
        }
    }

    /// The names, each with its comma.
    pub(super) fn names(shapes: impl IntoIterator<Item = Self>) -> String {
        shapes.into_iter().map(Self::name).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn rule(self) -> Rule {
        match self {
            Self::Quickstart => quickstart::RULE,
            Self::Adk => adk::ARRAY,
            Self::AdkMeta => adk::META,
            Self::AdkTests => adk::TESTS,
            Self::Ada => ada::RULE,
            Self::Ralph => ralph::RULE,
            Self::Beads => beads::RULE,
            Self::TaskMaster => task_master::RULE,
            Self::TasksMd => tasks::RULE,
            Self::Checklist => checklist::RULE,
            Self::Junit => junit::RULE,
            Self::Github => github::RULE,
            Self::List => generic::RULE,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || format!("there is no shape `{name}`; known are {}", Self::names(Self::ALL));
        Self::ALL.into_iter().find(|shape| shape.name() == name).ok_or_else(unknown)
    }
}
