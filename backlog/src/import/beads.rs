//! Issues, one per line (or in an array): only links of a type that blocks order the work; P0 is
//! the most urgent. Epics are containers, and a closed issue may have been withdrawn.

mod epics;
mod links;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value, json};

use super::entry::{Entry, items_of_text};
use super::error::ImportError;
use super::intake::{Intake, Rule, made_up};
use super::shape::Shape;
use super::source::{Source, Syntax, all_have};
use crate::list::EntriesAt;
use epics::Epics;
pub(crate) use links::BLOCKING;
use links::{Kind, Link, links_of, why_not_done};

pub(super) const RULE: Rule = Rule { syntax: Syntax::JsonLines, matches, read };

/// Longhaul's priority for P0. P2 maps to 0, the default of both.
const PRIORITY_OF_P0: i64 = 2;
/// The lowest priority of beads.
const LAST: i64 = 4;
/// The key in which an export keeps a priority without an equivalent in beads.
pub(crate) const KEPT_PRIORITY: &str = "longhaul_priority";

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
    let gone: BTreeMap<&str, NotWork> = entries
        .iter()
        .filter_map(|(_, issue)| Some((issue.get("id")?.as_str()?, reason_not_work(issue)?)))
        .collect();
    let is_work = |issue: &&Map<String, Value>| reason_not_work(issue).is_none();
    let urgencies: BTreeSet<i64> = entries
        .iter()
        .filter(|(_, issue)| is_work(issue))
        .filter_map(|(_, issue)| issue.get("priority")?.as_i64())
        .collect();
    if urgencies.len() > 1 {
        let note = "the lowest number in `priority` starts first (as usual in this format)";
        intake.report.note(note.to_owned());
    }
    let epics = Epics::new(entries.iter().map(|(_, issue)| *issue).filter(is_work));
    for (place, issue) in entries {
        let kind = issue.get("_type").and_then(Value::as_str).unwrap_or("issue");
        let id = issue.get("id").and_then(Value::as_str).unwrap_or_default();
        let what = || {
            let id = issue.get("id").map(|id| format!("the issue {id}"));
            id.unwrap_or_else(|| "an issue".to_owned())
        };
        if let Some(reason) = reason_not_work(issue) {
            intake.not_mapped.add(place, what(), reason.to_string());
        } else if kind != "issue" {
            let what = format!("a record of the type `{kind}`");
            intake.not_mapped.add(place, what, "only issues become features");
        } else if epics.contains(id) {
            let reason = "its issues are imported, and a dependency on it becomes a dependency on \
                each of them";
            intake.not_mapped.add(place, format!("the epic \"{id}\""), reason);
        } else {
            let epic = epics.above(id).map(|(id, title)| made_up("epic", format!("{id} {title}")));
            let issue = translated(Entry::new(place, issue), &gone, &epics);
            intake.add_with(Shape::Beads, issue, EntriesAt::Root, epic);
        }
    }
    Ok(())
}

/// Why an issue is no work.
enum NotWork {
    Deleted,
    NotDone(String),
}

impl NotWork {
    /// The reason, given for a link to the issue.
    fn of_target(&self) -> String {
        match self {
            Self::Deleted => "that issue was deleted there".to_owned(),
            Self::NotDone(reason) => format!("that issue is not imported: {reason}"),
        }
    }
}

impl fmt::Display for NotWork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted => formatter.write_str("it was deleted there"),
            Self::NotDone(reason) => formatter.write_str(reason),
        }
    }
}

/// `None` if the issue is work.
fn reason_not_work(issue: &Map<String, Value>) -> Option<NotWork> {
    if issue.get("status") == Some(&json!("tombstone")) {
        return Some(NotWork::Deleted);
    }
    why_not_done(issue).map(NotWork::NotDone)
}

fn translated<'e>(
    mut issue: Entry<'e>,
    gone: &BTreeMap<&str, NotWork>,
    epics: &Epics<'e>,
) -> Entry<'e> {
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
    depends_on(&mut issue, gone, epics);
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
        // A priority that was edited in beads takes precedence over the kept one.
        Some(kept) if beads_priority(kept).0 == number => json!(kept),
        _ => json!(PRIORITY_OF_P0.saturating_sub(number)),
    });
    issue.put("priority", "priority", read.unwrap_or_else(|| value.clone()));
}

/// Links of a dependency type become dependencies. Links with more fields are kept too.
fn depends_on<'e>(issue: &mut Entry<'e>, gone: &BTreeMap<&str, NotWork>, epics: &Epics<'e>) {
    let id = issue.text("id").unwrap_or_default();
    let links: Vec<Link<'e>> = links_of(issue.source).collect();
    let mut depends_on: Vec<Value> = Vec::new();
    let mut is_exact = true;
    for link in &links {
        let place = issue.place.below(link.key).below(link.index);
        if let Some(reason) = reason_not_dependency(*link, gone) {
            is_exact = false;
            issue.not_mapped.add(place, format!("the link to {}", link.written()), reason);
            continue;
        }
        let Some(target) = link.target() else {
            depends_on.push(link.written().clone());
            continue;
        };
        let targets = epics.issues_of(id, target);
        if targets.is_empty() {
            let reason = "an issue does not wait for its own epic";
            issue.not_mapped.add(place, format!("the link to {}", link.written()), reason);
        }
        is_exact &= link.is_plain() && link.key == "dependencies" && targets == [target];
        depends_on.extend(targets.into_iter().map(|target| json!(target)));
    }
    let inherited = epics.inherited(id);
    is_exact &= inherited.is_empty();
    depends_on
        .extend(inherited.into_iter().filter(|id| !gone.contains_key(id)).map(|id| json!(id)));
    let mut seen = BTreeSet::new();
    depends_on.retain(|target| seen.insert(target.to_string()));
    let keys: BTreeSet<&'static str> = links.iter().map(|link| link.key).collect();
    if keys.is_empty() {
        issue.take("dependencies", "depends_on");
    }
    let depends_on = Value::Array(depends_on);
    for key in &keys {
        if is_exact {
            issue.put(key, "depends_on", depends_on.clone());
        } else {
            issue.put_and_keep(key, "depends_on", depends_on.clone());
        }
    }
    if keys.is_empty() && depends_on.as_array().is_some_and(|all| !all.is_empty()) {
        issue.own.insert("depends_on".to_owned(), depends_on);
    }
}

/// Why a link is no dependency; `None` if it is one.
fn reason_not_dependency(link: Link<'_>, gone: &BTreeMap<&str, NotWork>) -> Option<String> {
    let name = link.target().unwrap_or_default();
    if link.kind() != Kind::Dependency {
        Some(format!("a link of the type `{}` orders nothing", link.name()))
    } else if name.starts_with("external:") {
        Some("it is in another project".to_owned())
    } else {
        gone.get(name).map(NotWork::of_target)
    }
}
