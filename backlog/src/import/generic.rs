//! Lists of features in JSON: the reading that all of them share, and the rule for those that no other shape is for.

use serde_json::Value;

use super::entry::Entry;
use super::error::ImportError;
use super::intake::Intake;
use super::place::Place;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax, has_objects, placed};
use crate::list::EntriesAt;

pub(super) const RULE: Rule = Rule { syntax: Syntax::Json, fits, read };

fn fits(source: &Source<'_>) -> bool {
    source.array(None).is_some_and(|list| list.is_empty() || has_objects(list)) || !source.lists().is_empty()
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    match source.lists().first() {
        Some(key) => read_list(source, intake, Shape::List, EntriesAt::Key(key)),
        None => read_list(source, intake, Shape::List, EntriesAt::Root),
    }
}

/// Reads the entries at a place of a JSON document in the words of feature lists.
pub(super) fn read_list(
    source: &Source<'_>,
    intake: &mut Intake<'_>,
    shape: Shape,
    at: EntriesAt,
) -> Result<(), ImportError> {
    let (key, wanted) = match at {
        EntriesAt::Root => (None, "its root is no array of entries".to_owned()),
        EntriesAt::Key(key) => (Some(key), format!("it has no array under `{key}`")),
    };
    let other = || ImportError::OtherShape { shape, place: Place::document(), reason: wanted };
    let entries = source.array(key).ok_or_else(other)?;
    let place = key.map_or_else(Place::document, |key| Place::document().below(key));
    for (place, entry) in intake.objects(placed(&place, entries)) {
        intake.add(shape, Entry::of_list(place, entry), at);
    }
    let is_number = |entry: &Value| entry.get("priority").is_some_and(Value::is_number);
    if !matches!(shape, Shape::Ada | Shape::Ralph) && entries.iter().any(is_number) {
        intake.report.note("the greater number in `priority` is read as the sooner: nothing in this shape says so");
    }
    if let (Some(list), Some(key)) = (source.object(), key) {
        let others = source.lists().into_iter().filter(|other| *other != key);
        for other in others {
            let place = Place::document().below(other);
            intake.leave(place, format!("the list under `{other}`"), format!("the entries are under `{key}`"));
        }
        if let Some(command) = list.get("verify").and_then(Value::as_str) {
            intake.verify_with(command);
        }
        let without: Vec<&str> = source.lists().into_iter().chain([key, "verify", "summary"]).collect();
        intake.keep_around(list, &Place::document(), &without);
    }
    Ok(())
}
