//! Errors in a list of features: problem, place, and remedy.

use std::collections::HashMap;
use std::fmt;

/// The number of problems up to which each is shown in full.
const UNGROUPED: usize = 20;
/// How many problems of a group are shown.
const SHOWN: usize = 10;

/// Why a list of features was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The text is not JSON.
    #[error(
        "the feature list is not JSON: {reason} (line {line}, column {column}); \
         correct it there, or take the last good version back from git"
    )]
    NotJson {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1; 0 before the first byte of the line.
        column: usize,
        /// The message of the parser.
        reason: String,
    },

    /// The document contains no entries.
    #[error("the feature list has no entries: found {found}; {advice}")]
    NoEntries {
        /// The content of the document, shortened.
        found: String,
        /// The remedy.
        advice: &'static str,
    },

    /// Invalid entries, with every problem that was found.
    #[error("the feature list has {}:{}", count(.0.len()), lines(.0))]
    Problems(Vec<Problem>),
}

/// One problem of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `entry 3` of a list or `line 12` of a checklist, counted from 1.
    pub place: String,
    /// The entry's id, as written.
    pub id: Option<String>,
    /// The field, as spelt in the file.
    pub field: String,
    /// The invalid value.
    pub found: String,
    /// The remedy.
    pub advice: String,
    /// An option of an import that repairs it.
    pub repair: Option<Repair>,
}

/// An option of an import that repairs a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Dropping dependencies on entries that do not exist.
    DropDangling,
    /// Renaming entries with an invalid or a taken id.
    RenameIds,
}

impl Repair {
    /// The option on the command line.
    pub fn option(self) -> &'static str {
        match self {
            Self::DropDangling => "--drop-dangling",
            Self::RenameIds => "--rename-ids",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, id, field, found, advice, .. } = self;
        formatter.write_str(place)?;
        if let Some(id) = id {
            write!(formatter, " (`{id}`)")?;
        }
        write!(formatter, ", `{field}`: {found}; {advice}")
    }
}

fn count(problems: usize) -> String {
    let plural = if problems == 1 { "" } else { "s" };
    format!("{problems} problem{plural}")
}

/// One line for each problem; many problems are grouped by their remedy, and each group shows the
/// first ones.
fn lines(problems: &[Problem]) -> String {
    if problems.len() <= UNGROUPED {
        return problems
            .iter()
            .flat_map(|problem| ["\n- ".to_owned(), problem.to_string()])
            .collect();
    }
    let mut groups: Vec<Vec<&Problem>> = Vec::new();
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    for problem in problems {
        let group = *known.entry((&problem.field, &problem.advice)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Vec::new());
        }
        groups[group].push(problem);
    }
    groups.iter().map(|group| group_lines(group)).collect()
}

fn group_lines(group: &[&Problem]) -> String {
    let [first, others @ ..] = group else { return String::new() };
    if others.is_empty() {
        return format!("\n- {first}");
    }
    let mut text = format!("\n- `{}` ({} times): {}", first.field, group.len(), first.advice);
    for problem in group.iter().take(SHOWN) {
        let id = problem.id.as_ref().map(|id| format!(" (`{id}`)")).unwrap_or_default();
        text += &format!("\n  {}{id}: {}", problem.place, problem.found);
    }
    if group.len() > SHOWN {
        text += &format!("\n  and {} more", group.len() - SHOWN);
    }
    text
}
