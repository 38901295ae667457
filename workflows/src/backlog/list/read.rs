//! From the entries of a list to features: which keys are read, and how each may be spelt.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::draft::resolve;
use super::reader::Reader;
use super::report::{Report, shown};
use super::shape::{EntriesAt, entries};
use super::words::OWNED_KEYS;
use crate::backlog::error::Problem;
use crate::backlog::feature::{Check, Feature};

pub(super) const NAME_KEYS: [&str; 2] = ["name", "title"];
pub(super) const DESCRIPTION_KEYS: [&str; 2] = ["description", "user_visible_behavior"];
pub(super) const CRITERIA_KEYS: [&str; 5] =
    ["acceptance_criteria", "acceptance", "acceptanceCriteria", "steps", "verification_steps"];
pub(super) const DEPENDS_KEYS: [&str; 3] = ["depends_on", "dependencies", "dependsOn"];
pub(super) const CHECK_KEYS: [&str; 4] = ["checks", "check", "verify", "verification_command"];
pub(super) const APPROVAL_KEYS: [&str; 2] = ["approval", "requires_approval"];
pub(super) const OTHER_KEYS: [&str; 4] = ["id", "category", "priority", "deprecated"];

/// Reads all entries. Problems are reported; with a problem the features are not complete.
pub(super) fn features(document: &Value, at: EntriesAt, report: &mut Report) -> Vec<Feature> {
    let entries = entries(document, at);
    let mut drafts = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let place = format!("entry {}", index + 1);
        if let Value::Object(entry) = entry {
            drafts.push(Reader::new(entry, index, place, report).draft(at));
        } else {
            let advice = "write an object with at least a `name` or a `description`".to_owned();
            let found = format!("found {}", shown(entry));
            report.problem(Problem { place, id: None, field: "entry".to_owned(), found, advice });
        }
    }
    note_unread_keys(entries, report);
    let mut features = resolve(drafts, report);
    if let Some(command) = document.get("verify").and_then(Value::as_str) {
        share_check(command, &mut features, report);
    }
    features
}

/// A command that the list gives for all entries is the check of those that have none of their own.
fn share_check(command: &str, features: &mut [Feature], report: &mut Report) {
    for feature in features.iter_mut().filter(|feature| feature.checks.is_empty()) {
        feature.checks.push(Check { name: "verify".to_owned(), run: command.to_owned(), timeout_seconds: None });
        report.guess("no check: the `verify` command of the list is taken", format!("`{}`", feature.id));
    }
}

fn note_unread_keys(entries: &[Value], report: &mut Report) {
    let read: [&[&str]; 7] =
        [&NAME_KEYS, &DESCRIPTION_KEYS, &CRITERIA_KEYS, &DEPENDS_KEYS, &CHECK_KEYS, &APPROVAL_KEYS, &OTHER_KEYS];
    let known: BTreeSet<&str> = read.concat().into_iter().chain(OWNED_KEYS).collect();
    let keys = entries.iter().filter_map(Value::as_object).flat_map(Map::keys).map(String::as_str);
    let unread: BTreeSet<&str> = keys.filter(|key| !known.contains(key)).collect();
    if !unread.is_empty() {
        let names = unread.into_iter().collect::<Vec<_>>().join(", ");
        report.note(format!("keys that are not read, and are kept as they are: {names}"));
    }
}
