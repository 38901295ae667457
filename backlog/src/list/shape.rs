//! The place of the entries in a document.

use serde_json::{Map, Value};

use super::report::shown;
use crate::error::ListError;

/// Keys that may contain the entries; the first with an array wins.
pub(crate) const ENTRY_KEYS: [&str; 7] =
    ["features", "items", "tests", "userStories", "user_stories", "tasks", "stories"];
/// The keys of user stories.
pub(crate) const STORY_KEYS: [&str; 3] = ["userStories", "user_stories", "stories"];

/// The place of the array of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntriesAt {
    /// The document is the array.
    Root,
    /// Under this key of the document.
    Key(&'static str),
}

impl EntriesAt {
    /// Whether smaller numbers in `priority` come first, as in lists of user stories.
    pub(super) fn small_priority_first(self) -> bool {
        matches!(self, Self::Key(key) if STORY_KEYS.contains(&key))
    }
}

/// Finds the entries by the content of the document, not by its file name.
pub(super) fn locate(document: &Value) -> Result<EntriesAt, ListError> {
    let advice = "write an array of features, or an object with the array under `features`";
    let found = match document {
        Value::Array(_) => return Ok(EntriesAt::Root),
        Value::Object(object) => {
            let holds_entries = |key: &&&str| object.get(**key).is_some_and(Value::is_array);
            if let Some(key) = ENTRY_KEYS.iter().find(holds_entries) {
                return Ok(EntriesAt::Key(key));
            }
            let keys: Vec<&str> = object.keys().map(String::as_str).take(8).collect();
            format!("an object with the keys [{}]", keys.join(", "))
        }
        other => shown(other),
    };
    Err(ListError::NoEntries { found, advice })
}

/// The entries of a document, as found by [`locate`].
pub(super) fn entries(document: &Value, at: EntriesAt) -> &[Value] {
    let array = match at {
        EntriesAt::Root => Some(document),
        EntriesAt::Key(key) => document.get(key),
    };
    array.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The same, mutable.
pub(super) fn entries_mut(document: &mut Value, at: EntriesAt) -> Option<&mut Vec<Value>> {
    match at {
        EntriesAt::Root => document.as_array_mut(),
        EntriesAt::Key(key) => document.get_mut(key).and_then(Value::as_array_mut),
    }
}

/// The first of some spellings of a key that an entry has.
pub(super) fn spelling<'k>(entry: &Map<String, Value>, spellings: &[&'k str]) -> Option<&'k str> {
    spellings.iter().copied().find(|key| entry.contains_key(*key))
}

/// The first of some spellings of a key that any entry has.
pub(super) fn spelling_of_file<'k>(entries: &[Value], spellings: &[&'k str]) -> Option<&'k str> {
    entries.iter().filter_map(Value::as_object).find_map(|entry| spelling(entry, spellings))
}
