//! Converts the entries of a list to features: the read keys and their spellings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::criteria::{self, MIXED_KEYS};
use super::draft::Draft;
use super::priority_order::{PriorityOrder, stated};
use super::reader::Reader;
use super::report::{Report, shown};
use super::resolve::{Repairs, resolve};
use super::shape::{ENTRY_KEYS, EntriesAt, entries};
use super::words::{PASSES_KEYS, STATUS_KEYS, TESTED_KEYS};
use crate::error::Problem;
use longhaul_workflows::backlog::{Check, Feature};

pub(super) const NAME_KEYS: [&str; 2] = ["name", "title"];
pub(super) const DESCRIPTION_KEYS: [&str; 2] = ["description", "user_visible_behavior"];
pub(super) const CRITERIA_KEYS: [&str; 5] =
    ["acceptance_criteria", "acceptance", "acceptanceCriteria", "steps", "verification_steps"];
pub(super) const DEPENDS_KEYS: [&str; 3] = ["depends_on", "dependencies", "dependsOn"];
pub(super) const CHECK_KEYS: [&str; 6] =
    ["checks", "check", "verify", "verification_command", "test_command", "testCommand"];
pub(super) const APPROVAL_KEYS: [&str; 2] = ["approval", "requires_approval"];

/// The field of a key of an entry; `None` for an unread key.
pub(crate) fn field_of_key(key: &str) -> Option<&'static str> {
    let fields: [(&[&str], &'static str); 14] = [
        (&["id"], "id"),
        (&NAME_KEYS, "name"),
        (&DESCRIPTION_KEYS, "description"),
        (&["category"], "category"),
        (&["priority"], "priority"),
        (&CRITERIA_KEYS, "acceptance_criteria"),
        (&DEPENDS_KEYS, "depends_on"),
        (&CHECK_KEYS, "checks"),
        (&MIXED_KEYS, "acceptance_criteria or checks"),
        (&APPROVAL_KEYS, "approval"),
        (&STATUS_KEYS, "status"),
        (&["deprecated"], "status"),
        (&PASSES_KEYS, "passes"),
        (&TESTED_KEYS, "last_tested"),
    ];
    fields.iter().find(|(keys, _)| keys.contains(&key)).map(|(_, field)| *field)
}

/// Whether a key of an entry is the source of its field: only the first of several spellings of a
/// single-value field counts.
pub(crate) fn is_read(entry: &Map<String, Value>, key: &str) -> bool {
    let single: [&[&str]; 5] =
        [&NAME_KEYS, &DESCRIPTION_KEYS, &APPROVAL_KEYS, &STATUS_KEYS, &TESTED_KEYS];
    let is_there = |key: &&&str| entry.get(**key).is_some_and(|value| !value.is_null());
    let spellings = single.iter().find(|keys| keys.contains(&key));
    spellings.and_then(|keys| keys.iter().find(is_there)).is_none_or(|first| *first == key)
}

/// Whether a field holds all of a key: not of criteria that are objects with more than a text.
pub(crate) fn is_whole(key: &str, value: &Value) -> bool {
    let may_be_objects = CRITERIA_KEYS.contains(&key) || MIXED_KEYS.contains(&key);
    !may_be_objects || value.is_null() || criteria::is_plain(value)
}

/// Reads all entries. Problems are reported; the features are then incomplete.
pub(super) fn features(document: &Value, at: EntriesAt, report: &mut Report) -> Vec<Feature> {
    let entries = entries(document, at);
    let mut drafts = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let place = format!("entry {}", index + 1);
        if let Value::Object(entry) = entry {
            drafts.push(draft(entry, index, place, at, report));
        } else {
            report.problem(no_object(place, entry));
        }
    }
    note_unread_keys(entries, report);
    note_other_order(document, at, report);
    let mut features = resolve(drafts, &[], Repairs::default(), report).features;
    if let Some(command) = document.get("verify").and_then(Value::as_str) {
        share_check(command, &mut features, report);
    }
    features
}

/// Reads one entry; the index is counted from 0.
pub(crate) fn draft(
    entry: &Map<String, Value>,
    index: usize,
    place: String,
    at: EntriesAt,
    report: &mut Report,
) -> Draft {
    Reader::new(entry, index, place, report).draft(at)
}

/// An entry that is not an object.
pub(crate) fn no_object(place: String, entry: &Value) -> Problem {
    let advice = "write an object with at least a `name` or a `description`".to_owned();
    Problem {
        place,
        id: None,
        field: "entry".to_owned(),
        found: format!("found {}", shown(entry)),
        advice,
        repair: None,
    }
}

/// A command for all entries is the check of those without their own.
pub(crate) fn share_check(command: &str, features: &mut [Feature], report: &mut Report) {
    for feature in features.iter_mut().filter(|feature| feature.checks.is_empty()) {
        feature.checks.push(Check {
            name: "verify".to_owned(),
            run: command.to_owned(),
            ..Check::default()
        });
        report.guess(
            "no check: the `verify` command of the list is taken",
            format!("`{}`", feature.id),
        );
    }
}

/// The project's own list has one order. A text beside the entries that names the other one is
/// reported.
fn note_other_order(document: &Value, at: EntriesAt, report: &mut Report) {
    let Some(list) = document.as_object() else { return };
    let numbers: BTreeSet<i64> = entries(document, at)
        .iter()
        .filter_map(|entry| entry.get("priority").and_then(Value::as_i64))
        .collect();
    let (start, own) = if at.small_priority_first() {
        ("lowest", PriorityOrder::LowFirst)
    } else {
        ("highest", PriorityOrder::HighFirst)
    };
    let is_reversed = |(stated, _): &(PriorityOrder, String)| *stated != own;
    if numbers.len() > 1
        && numbers.first().is_some_and(|lowest| *lowest >= 0)
        && let Some((_, place)) = stated(list, &ENTRY_KEYS).filter(is_reversed)
    {
        report.note(format!(
            "the {start} number in `priority` starts first, although `{place}` says otherwise: \
             write the numbers with a minus sign to reverse it"
        ));
    }
}

fn note_unread_keys(entries: &[Value], report: &mut Report) {
    let keys = entries.iter().filter_map(Value::as_object).flat_map(Map::keys).map(String::as_str);
    let unread: BTreeSet<&str> = keys.filter(|key| field_of_key(key).is_none()).collect();
    if !unread.is_empty() {
        let names = unread.into_iter().collect::<Vec<_>>().join(", ");
        report.note(format!("keys that are not read, and are kept as they are: {names}"));
    }
}
