//! Issues, one per line (or in an array): only links of the type `blocks` order the work; P0 is the
//! most urgent.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::detect::all_have;
use super::entry::{Entry, items_of_text};
use super::error::ImportError;
use super::intake::Intake;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::list::EntriesAt;

pub(super) const RULE: Rule = Rule { syntax: Syntax::JsonLines, matches, read };

/// The Longhaul priority of P0; P2 is the default of both.
const PRIORITY_OF_P0: i64 = 2;
/// The lowest priority of beads.
const LAST: i64 = 4;
/// The key in which an export keeps a priority without an equivalent in beads.
pub(crate) const KEPT_PRIORITY: &str = "longhaul_priority";
/// The link types that are dependencies.
pub(crate) const ORDERS: [&str; 2] = ["blocks", "conditional-blocks"];

fn matches(source: &Source<'_>) -> bool {
    match source {
        Source::Json(Value::Array(list)) => all_have(list, &["id", "title", "issue_type"]),
        Source::Json(entry) => {
            source.lists().is_empty()
                && all_have(std::slice::from_ref(entry), &["id", "title", "status"])
        }
        Source::Lines(lines) => {
            lines.iter().any(|(_, line)| all_have(std::slice::from_ref(line), &["id", "title"]))
        }
        Source::Xml(_) | Source::Markdown(_) => false,
    }
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let entries = intake.objects(source.entries_with(Shape::Beads, &["id", "title"])?);
    let is_deleted = |issue: &Map<String, Value>| issue.get("status") == Some(&json!("tombstone"));
    let deleted = entries.iter().filter(|(_, issue)| is_deleted(issue));
    let deleted: BTreeSet<&str> =
        deleted.filter_map(|(_, issue)| issue.get("id")?.as_str()).collect();
    for (place, issue) in entries {
        let kind = issue.get("_type").and_then(Value::as_str).unwrap_or("issue");
        if is_deleted(issue) {
            let what = issue
                .get("id")
                .map_or_else(|| "an issue".to_owned(), |id| format!("the issue {id}"));
            intake.leave(place, what, "it was deleted there");
        } else if kind != "issue" {
            intake.leave(
                place,
                format!("a record of the type `{kind}`"),
                "only issues become features",
            );
        } else {
            let issue = translated(Entry::new(place, issue), &deleted);
            intake.add(Shape::Beads, issue, EntriesAt::Root);
        }
    }
    Ok(())
}

fn translated<'e>(mut issue: Entry<'e>, deleted: &BTreeSet<&str>) -> Entry<'e> {
    let fields =
        [("id", "id"), ("title", "name"), ("description", "description"), ("status", "status")];
    // Additional keys of Longhaul's own export.
    let own = [("checks", "checks"), ("approval", "approval"), ("last_tested", "last_tested")];
    for (key, field) in fields.into_iter().chain([("issue_type", "category")]).chain(own) {
        issue.take(key, field);
    }
    issue.carry("design", "Design");
    priority(&mut issue);
    match issue.value("acceptance_criteria") {
        Some(Value::String(text)) => {
            let items = criteria_of_beads(text);
            if text_of_criteria(&items) == *text {
                issue.put("acceptance_criteria", "acceptance_criteria", json!(items));
            } else {
                issue.put_and_keep("acceptance_criteria", "acceptance_criteria", json!(items));
            }
        }
        _ => issue.take("acceptance_criteria", "acceptance_criteria"),
    }
    links(&mut issue, deleted);
    issue
}

/// The beads priority, and whether it is an exact equivalent.
pub(crate) fn beads_priority(priority: i64) -> (i64, bool) {
    let exact = PRIORITY_OF_P0.saturating_sub(priority);
    (exact.clamp(0, LAST), (0..=LAST).contains(&exact))
}

/// The acceptance criteria of a text.
pub(crate) fn criteria_of_beads(text: &str) -> Vec<String> {
    items_of_text(text)
}

/// Acceptance criteria in the format of an export: one per line, with indented continuation lines.
pub(crate) fn text_of_criteria(criteria: &[String]) -> String {
    criteria
        .iter()
        .map(|text| format!("- {}", text.replace('\n', "\n  ")))
        .collect::<Vec<_>>()
        .join("\n")
}

fn priority(issue: &mut Entry<'_>) {
    let Some(value) = issue.value("priority") else { return };
    let kept = issue.value(KEPT_PRIORITY).and_then(Value::as_i64);
    if kept.is_some() {
        issue.take(KEPT_PRIORITY, "priority");
    }
    let read = value.as_i64().map(|number| match kept {
        // A criterion that was edited in beads takes precedence.
        Some(kept) if beads_priority(kept).0 == number => json!(kept),
        _ => json!(PRIORITY_OF_P0.saturating_sub(number)),
    });
    issue.put("priority", "priority", read.unwrap_or_else(|| value.clone()));
}

/// Links of a dependency type become dependencies. Links with more fields are kept too.
fn links(issue: &mut Entry<'_>, deleted: &BTreeSet<&str>) {
    let Some(links) =
        issue.value("dependencies").and_then(Value::as_array).filter(|links| !links.is_empty())
    else {
        return issue.take("dependencies", "depends_on");
    };
    let place = issue.place.below("dependencies");
    let mut depends_on = Vec::new();
    for (index, link) in links.iter().enumerate() {
        let target = link.get("depends_on_id").unwrap_or(link);
        match why_not(link, target, deleted) {
            Some(reason) => {
                issue.leave(place.below(index), format!("the link to {target}"), reason);
            }
            None => depends_on.push(target.clone()),
        }
    }
    let is_plain = |link: &Value| {
        let keys = link.as_object().into_iter().flat_map(Map::keys);
        keys.filter(|key| !["issue_id", "depends_on_id", "type"].contains(&key.as_str())).count()
            == 0
    };
    if depends_on.len() == links.len() && links.iter().all(is_plain) {
        issue.put("dependencies", "depends_on", Value::Array(depends_on));
    } else {
        issue.put_and_keep("dependencies", "depends_on", Value::Array(depends_on));
    }
}

/// Why a link is no dependency; `None` if it is one.
fn why_not(link: &Value, target: &Value, deleted: &BTreeSet<&str>) -> Option<String> {
    let kind = link.get("type").and_then(Value::as_str).unwrap_or("blocks");
    let name = target.as_str().unwrap_or_default();
    if !ORDERS.contains(&kind) {
        Some(format!("a link of the type `{kind}` orders nothing"))
    } else if name.starts_with("external:") {
        Some("it is in another project".to_owned())
    } else {
        deleted.contains(name).then(|| "that issue was deleted there".to_owned())
    }
}
