//! Detects the shape of a file by its content, never by its name.

use serde_json::Value;

use super::error::ImportError;
use super::shape::Shape;
use super::source::Source;

/// The only matching shape.
pub(super) fn shape_of(source: &Source<'_>) -> Result<Shape, ImportError> {
    let special = &Shape::ALL[..Shape::ALL.len() - 1];
    let any = Shape::List;
    let fitting: Vec<Shape> =
        special.iter().copied().filter(|shape| (shape.rule().matches)(source)).collect();
    match fitting.as_slice() {
        [shape] => Ok(*shape),
        [] if (any.rule().matches)(source) => Ok(any),
        [] if matches!(source, Source::Markdown(text) if text.trim().is_empty()) => {
            Err(ImportError::Empty)
        }
        [] => Err(ImportError::Unknown { found: found(source) }),
        _ => Err(ImportError::Ambiguous(fitting)),
    }
}

/// A short description of the content.
fn found(source: &Source<'_>) -> String {
    match source {
        Source::Json(Value::Object(object)) => {
            let keys: Vec<&str> = object.keys().map(String::as_str).take(8).collect();
            format!("a JSON object with the keys [{}]", keys.join(", "))
        }
        Source::Json(Value::Array(list)) if all_have(list, &["name", "color"]) => {
            "labels, which are no work".to_owned()
        }
        Source::Json(Value::Array(_)) => "a JSON array without entries that are objects".to_owned(),
        Source::Json(_) => "a single JSON value".to_owned(),
        Source::Lines(_) => {
            "lines of JSON that are no issues: `id`, `title` and `issue_type` are looked for"
                .to_owned()
        }
        Source::Xml(document) => {
            format!("XML with <{}> at its root", document.root_element().tag_name().name())
        }
        Source::Markdown(_) => {
            "a text without `- [ ]` boxes and `### Task 1: title` headings".to_owned()
        }
    }
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
