//! Errors in a list of features: problem, place, and remedy.

use std::fmt;

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

fn count(problems: usize) -> String {
    let plural = if problems == 1 { "" } else { "s" };
    format!("{problems} problem{plural}")
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().flat_map(|problem| ["\n- ".to_owned(), problem.to_string()]).collect()
}
