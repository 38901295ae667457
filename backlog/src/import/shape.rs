//! The importable shapes, and their names.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// Declares the shapes, each with its command line name.
macro_rules! shapes {
    ($($(#[$doc:meta])* $shape:ident $name:literal,)*) => {
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
        }
    };
}

shapes! {
    /// An array of descriptions with steps and `passes`.
    Quickstart "quickstart",
    /// An array of names with `status`, `lastTested` and dependencies by name.
    Adk "adk",
    /// The same under `items`, with a `meta` before it.
    AdkMeta "adk-meta",
    /// `tests` of one feature, with a summary.
    AdkTests "adk-tests",
    /// `features` with acceptance criteria and `depends_on`.
    Ada "ada",
    /// `userStories`: a `prd.json`.
    Ralph "ralph",
    /// One issue per line.
    Beads "beads",
    /// `tasks`, below tags or not.
    TaskMaster "task-master",
    /// Markdown with `### Task 1: title` headings.
    TasksMd "tasks-md",
    /// Markdown of spec-kit: `- [ ] T001 [P] [US1] text` in phases.
    SpecKit "spec-kit",
    /// Markdown of Kiro: `- [ ] 1. text` with `1.1` below.
    Kiro "kiro",
    /// Markdown with `- [ ] Name: description` lines.
    Checklist "checklist",
    /// The report of a test run: its failing tests.
    Junit "junit",
    /// Issues as `gh issue list --json` writes them.
    Github "github",
    /// Any other list of features in JSON.
    List "list",
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
