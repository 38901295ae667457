//! Parses a text as JSON, lines of JSON, XML or Markdown.

use roxmltree::Document;
use serde_json::{Map, Value};

use super::error::ImportError;
use super::place::Place;
use super::shape::Shape;
use crate::list::{self, ENTRY_KEYS, bare_reason};
use crate::tasks_md;

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Json,
    JsonLines,
    Xml,
    Markdown,
}

/// A file, parsed.
pub(super) enum Source<'t> {
    Json(Value),
    /// Each with its line, counted from 1.
    Lines(Vec<(usize, Value)>),
    Xml(Document<'t>),
    Markdown(&'t str),
}

/// Decodes a file: UTF-8, or UTF-16 with a byte order mark, which some shells write.
pub fn decode(bytes: &[u8]) -> Result<String, ImportError> {
    let text = list::decode(bytes).map_err(|(at, line)| ImportError::NotText { at, line })?;
    Ok(text.into_owned())
}

impl<'t> Source<'t> {
    /// Parses a text according to its beginning, or in the requested syntax.
    pub(super) fn of(text: &'t str, syntax: Option<Syntax>) -> Result<Self, ImportError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match syntax {
            Some(Syntax::Json) => json(text).map(Self::Json),
            Some(Syntax::JsonLines) => json_or_lines(text),
            Some(Syntax::Xml) => xml(text),
            Some(Syntax::Markdown) => Ok(Self::Markdown(text)),
            None => Self::guessed(text),
        }
    }

    /// Markdown may begin with a link or a comment: invalid JSON or XML with tasks is a checklist.
    fn guessed(text: &'t str) -> Result<Self, ImportError> {
        let parsed = match text.trim_start().bytes().next() {
            Some(b'{' | b'[') => json_or_lines(text),
            Some(b'<') => xml(text),
            Some(b'"') => json(text).map(Self::Json),
            _ => return Ok(Self::Markdown(text)),
        };
        let has_tasks =
            || tasks_md::has_task_headings(text) || tasks_md::boxes(text).next().is_some();
        parsed.or_else(|error| if has_tasks() { Ok(Self::Markdown(text)) } else { Err(error) })
    }

    /// The array at the root of the document, or under a key of it.
    pub(super) fn array(&self, key: Option<&str>) -> Option<&[Value]> {
        let Self::Json(document) = self else { return None };
        key.map_or(Some(document), |key| document.get(key))
            .and_then(Value::as_array)
            .map(Vec::as_slice)
    }

    /// The document, if it is an object.
    pub(super) fn object(&self) -> Option<&Map<String, Value>> {
        if let Self::Json(Value::Object(object)) = self { Some(object) } else { None }
    }

    /// The keys of the document that may contain entries.
    pub(super) fn lists(&self) -> Vec<&'static str> {
        let holds = |key: &&str| {
            self.array(Some(key)).is_some_and(|list| list.is_empty() || has_objects(list))
        };
        ENTRY_KEYS.into_iter().filter(holds).collect()
    }

    /// The entries with their places: the lines, the elements of the array at the root, or the
    /// single object.
    pub(super) fn entries(&self) -> Vec<(Place, &Value)> {
        match self {
            Self::Json(Value::Array(entries)) => placed(&Place::document(), entries),
            Self::Json(entry) => vec![(Place::document(), entry)],
            Self::Lines(lines) => {
                lines.iter().map(|(line, entry)| (Place::line(*line), entry)).collect()
            }
            Self::Xml(_) | Self::Markdown(_) => Vec::new(),
        }
    }
}

impl Source<'_> {
    /// Entries of a shape without a list key, if one of them has the keys of that shape.
    pub(super) fn entries_with(
        &self,
        shape: Shape,
        keys: &[&str],
    ) -> Result<Vec<(Place, &Value)>, ImportError> {
        let entries = self.entries();
        let is_known = |entry: &Value| keys.iter().all(|key| entry.get(key).is_some());
        match entries.first() {
            Some((place, _)) if !entries.iter().any(|(_, entry)| is_known(entry)) => {
                let reason = format!("an entry of it has {}", keys.join(" and "));
                Err(ImportError::OtherShape { shape, place: place.clone(), reason })
            }
            _ => Ok(entries),
        }
    }
}

/// The elements of an array with their places.
pub(super) fn placed<'v>(array: &Place, entries: &'v [Value]) -> Vec<(Place, &'v Value)> {
    entries.iter().enumerate().map(|(index, entry)| (array.below(index), entry)).collect()
}

/// Whether a list holds objects.
pub(super) fn has_objects(list: &[Value]) -> bool {
    list.iter().any(Value::is_object)
}

fn json(text: &str) -> Result<Value, ImportError> {
    crate::json::parse(text).map_err(|error| not_json(&error, 0))
}

fn not_json(error: &serde_json::Error, lines_before: usize) -> ImportError {
    ImportError::NotJson {
        line: lines_before + error.line(),
        column: error.column(),
        reason: bare_reason(error),
    }
}

/// One document, or several objects with one per line. The first line decides which error is
/// reported.
fn json_or_lines<'t>(text: &str) -> Result<Source<'t>, ImportError> {
    let whole = match json(text) {
        Ok(document) => return Ok(Source::Json(document)),
        Err(error) => error,
    };
    let mut found = Vec::new();
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (index, line) in filled {
        match crate::json::parse(line) {
            Ok(value) if value.is_object() || !found.is_empty() => found.push((index + 1, value)),
            Err(error) if !found.is_empty() => {
                // A document that is invalid after its first line is not JSON lines.
                return Err(not_json(&error, index));
            }
            _ => return Err(whole),
        }
    }
    Ok(Source::Lines(found))
}

fn xml(text: &str) -> Result<Source<'_>, ImportError> {
    Document::parse(text).map(Source::Xml).map_err(|error| {
        let place = error.pos();
        let text = error.to_string();
        let reason = text.rsplit_once(" at ").map_or(text.as_str(), |(reason, _)| reason);
        ImportError::NotXml { line: place.row, column: place.col, reason: reason.to_owned() }
    })
}

/// Whether a list has objects, and each of its first ones has all of these keys.
pub(super) fn all_have(entries: &[Value], keys: &[&str]) -> bool {
    let mut objects = entries.iter().filter_map(Value::as_object).take(LOOKED_AT).peekable();
    objects.peek().is_some() && objects.all(|entry| keys.iter().all(|key| entry.contains_key(*key)))
}

/// Whether one of the first objects of a list has one of these keys.
pub(super) fn any_has(entries: &[Value], keys: &[&str]) -> bool {
    let mut objects = entries.iter().filter_map(Value::as_object).take(LOOKED_AT);
    objects.any(|entry| keys.iter().any(|key| entry.contains_key(*key)))
}

/// How many entries are looked at: enough for a list in which the first ones are odd.
const LOOKED_AT: usize = 50;
