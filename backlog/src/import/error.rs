//! Import errors with place and remedy.

use std::collections::BTreeSet;

use super::place::Place;
use super::shape::Shape;
use crate::error::{ListError, Repair};
use longhaul_workflows::backlog::{BacklogError, FeatureId};

/// Why nothing was imported. The caller adds the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The bytes are not text.
    #[error("not UTF-8 text (byte {at}, line {line}); save it as UTF-8")]
    NotText {
        /// Offset of the first invalid byte, counted from 0.
        at: usize,
        /// Its line, counted from 1.
        line: usize,
    },

    /// The text is not JSON.
    #[error(
        "line {line}, column {column}: not JSON: {reason}; correct it there, or export it again"
    )]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1; 0 before the first byte of the line.
        column: usize,
        /// The message of the parser.
        reason: String,
    },

    /// The text is not XML.
    #[error(
        "line {line}, column {column}: not XML: {reason}; run the tests again, or correct it there"
    )]
    NotXml {
        /// Counted from 1.
        line: u32,
        /// Counted from 1.
        column: u32,
        /// The message of the parser.
        reason: String,
    },

    /// Only white space.
    #[error("the file is empty: there is nothing to import")]
    Empty,

    /// No shape matches.
    #[error(
        "no backlog that is known: found {found}; if it is one of {}, name it with --as",
        Shape::names(Shape::ALL)
    )]
    Unknown {
        /// The content, shortened.
        found: String,
    },

    /// Several shapes match.
    #[error("this can be read as {}: name one with --as", Shape::names(.0.iter().copied()))]
    Ambiguous(Vec<Shape>),

    /// The requested shape does not match.
    #[error("{place}: this is not {shape}: {reason}")]
    OtherShape {
        /// The requested shape.
        shape: Shape,
        /// The place of the mismatch.
        place: Place,
        /// The reason, and the remedy.
        reason: String,
    },

    /// The file contains several lists.
    #[error("{reason}; the tags with tasks are {}: name one with --tag, or all", .tags.join(", "))]
    Tags {
        /// The problem with the tag.
        reason: String,
        /// The existing tags.
        tags: Vec<String>,
    },

    /// Invalid entries.
    #[error("{entries}{}", remedies(.0), entries = .0)]
    Entries(#[from] ListError),

    /// The features and the project's list do not form a valid graph.
    #[error(transparent)]
    Graph(#[from] BacklogError),

    /// Features wait for each other.
    #[error("{error}{}", list_places(.places))]
    Cycle {
        /// The cycles.
        error: BacklogError,
        /// The places of features in them; features of the project's list have none.
        places: Vec<(FeatureId, Option<Place>)>,
    },
}

/// The options that repair the problems of a list.
fn remedies(error: &ListError) -> String {
    let ListError::Problems(problems) = error else { return String::new() };
    let options: BTreeSet<Repair> = problems.iter().filter_map(|problem| problem.repair).collect();
    let repairable = problems.iter().filter(|problem| problem.repair.is_some()).count();
    if options.is_empty() {
        return String::new();
    }
    let options: Vec<&str> = options.into_iter().map(Repair::option).collect();
    let options = options.join(" ");
    if repairable == problems.len() {
        format!("\nto import it anyway: {options}")
    } else {
        format!("\n{options} repairs {repairable} of them")
    }
}

/// The number of places up to which all are shown.
const PLACES: usize = 10;

/// One line for each place.
fn list_places(places: &[(FeatureId, Option<Place>)]) -> String {
    let line = |(id, place): &(FeatureId, Option<Place>)| match place {
        Some(place) => format!("\n`{id}` is at {place}"),
        None => format!("\n`{id}` is in the project's list"),
    };
    let mut text: String = places.iter().take(PLACES).map(line).collect();
    if places.len() > PLACES {
        text += &format!("\nand {} more places", places.len() - PLACES);
    }
    text
}
