//! Collects guesses and problems while a list is read.

use std::collections::HashMap;

use serde_json::Value;

use crate::error::{ListError, Problem};

/// How many places a note lists before it only counts.
const PLACES_NAMED: usize = 3;

/// Collects problems and guesses; equal guesses about several entries become one note.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Problem>,
    guesses: Vec<(String, Vec<String>)>,
    /// The index of each guess in `guesses`.
    known: HashMap<String, usize>,
}

impl Report {
    pub(crate) fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Notes a guess about the entry at a place.
    pub(crate) fn guess(&mut self, what: impl Into<String>, place: impl Into<String>) {
        let what = what.into();
        let next = self.guesses.len();
        let index = *self.known.entry(what.clone()).or_insert(next);
        if index == next {
            self.guesses.push((what, Vec::new()));
        }
        self.guesses[index].1.push(place.into());
    }

    /// Notes something about the list as a whole.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.guesses.push((what.into(), Vec::new()));
    }

    /// The notes, or all problems.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, ListError> {
        if !self.problems.is_empty() {
            // By entry: `entry 2` is shorter than `entry 10`, and equally long places compare as
            // strings.
            self.problems.sort_by(|one, other| {
                (one.place.len(), &one.place).cmp(&(other.place.len(), &other.place))
            });
            return Err(ListError::Problems(self.problems));
        }
        Ok(self.guesses.into_iter().map(|(what, places)| note(&what, &places)).collect())
    }
}

fn note(what: &str, places: &[String]) -> String {
    let named = places.iter().take(PLACES_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match places.len() {
        0 => what.to_owned(),
        few if few <= PLACES_NAMED => format!("{what} ({named})"),
        many => format!("{what} ({named} and {} more)", many - PLACES_NAMED),
    }
}

/// A value of the file, shortened.
pub(super) fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 60)
}

/// The first characters of a text.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
