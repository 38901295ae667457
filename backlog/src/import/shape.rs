//! The importable shapes, with a rule for each.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::error::ImportError;
use super::intake::Intake;
use super::source::{Source, Syntax};
use super::{beads, github, junit, lists, markdown, task_master};

/// How to detect and read a shape.
pub(super) struct Rule {
    pub(super) syntax: Syntax,
    pub(super) matches: fn(&Source<'_>) -> bool,
    pub(super) read: fn(&Source<'_>, &mut Intake<'_>) -> Result<(), ImportError>,
}

/// Declares the shapes, each with its command line name and its rule.
macro_rules! shapes {
    ($($(#[$doc:meta])* $shape:ident $name:literal $rule:expr,)*) => {
        /// A backlog format of another tool.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Shape {
            $($(#[$doc])* $shape,)*
        }

        impl Shape {
            /// All shapes; the last one is the fallback.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$shape),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$shape => $name,)*
                }
            }

            pub(super) fn rule(self) -> Rule {
                match self {
                    $(Self::$shape => $rule,)*
                }
            }
        }
    };
}

shapes! {
    /// An array of descriptions with steps and `passes`.
    Quickstart "quickstart" lists::QUICKSTART,
    /// An array of names with `status`, `lastTested` and dependencies by name.
    Adk "adk" lists::ADK,
    /// The same under `items`, with a `meta` before it.
    AdkMeta "adk-meta" lists::ADK_META,
    /// `tests` of one feature, with a summary.
    AdkTests "adk-tests" lists::ADK_TESTS,
    /// `features` with acceptance criteria and `depends_on`.
    Ada "ada" lists::ADA,
    /// `userStories`: a `prd.json`.
    Ralph "ralph" lists::RALPH,
    /// One issue per line.
    Beads "beads" beads::RULE,
    /// `tasks`, below tags or not.
    TaskMaster "task-master" task_master::RULE,
    /// Markdown with `### Task 1: title` headings.
    TasksMd "tasks-md" markdown::TASKS,
    /// Markdown of spec-kit: `- [ ] T001 [P] [US1] text` in phases.
    SpecKit "spec-kit" markdown::SPEC_KIT,
    /// Markdown of Kiro: `- [ ] 1. text` with `1.1` below.
    Kiro "kiro" markdown::KIRO,
    /// Markdown with `- [ ] Name: description` lines.
    Checklist "checklist" markdown::CHECKLIST,
    /// The report of a test run: its failing tests.
    Junit "junit" junit::RULE,
    /// Issues as `gh issue list --json` writes them.
    Github "github" github::RULE,
    /// Any other list of features in JSON.
    List "list" lists::LIST,
}

impl Shape {
    /// The names, separated by commas.
    pub(super) fn names(shapes: impl IntoIterator<Item = Self>) -> String {
        shapes.into_iter().map(Self::name).collect::<Vec<_>>().join(", ")
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
        let unknown =
            || format!("there is no shape `{name}`; known are {}", Self::names(Self::ALL));
        Self::ALL.into_iter().find(|shape| shape.name() == name).ok_or_else(unknown)
    }
}
