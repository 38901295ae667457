//! Task Master: `tasks` at the root or below tags. Subtasks become acceptance criteria.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::entry::Entry;
use super::error::ImportError;
use super::intake::{Intake, Rule};
use super::place::Place;
use super::shape::Shape;
use super::source::{Source, Syntax, all_have, any_has, placed};
use crate::list::{EntriesAt, slug};

/// The name of all tags on the command line.
const ALL_TAGS: &str = "all";
/// Maximum length of the part of an id that comes from its tag, in bytes.
const PREFIX_MAX: usize = 40;
/// Why a task, or a dependency on it, is not imported.
const CANCELLED: &str = "it was cancelled there";

pub(super) const RULE: Rule = Rule { syntax: Syntax::Json, matches, read };

fn matches(source: &Source<'_>) -> bool {
    let is_plain = source.array(Some("tasks")).is_some_and(|tasks| {
        any_has(tasks, &["details", "testStrategy", "subtasks"])
            && all_have(tasks, &["id", "title"])
    });
    is_plain
        || source.lists().is_empty()
            && source.object().is_some_and(|list| tags(list).next().is_some())
}

/// The tags, each with its tasks.
fn tags(list: &Map<String, Value>) -> impl Iterator<Item = (&String, &Vec<Value>)> {
    list.iter().filter_map(|(tag, value)| Some((tag, value.get("tasks")?.as_array()?)))
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let shape = Shape::TaskMaster;
    let wrong_shape = |reason: &str| ImportError::OtherShape {
        shape,
        place: Place::document(),
        reason: reason.to_owned(),
    };
    let list = source.object().ok_or_else(|| wrong_shape("its root is no object"))?;
    if let Some(tasks) = list.get("tasks").and_then(Value::as_array) {
        add(&Place::document(), list, tasks, "", intake);
        return Ok(());
    }
    let chosen = chosen(list, intake.options.tag, wrong_shape)?;
    leave_other_tags(list, &chosen, intake);
    for (tag, tasks) in chosen {
        let parent_object = list.get(tag).and_then(Value::as_object).unwrap_or(list);
        add(&Place::document().below(tag), parent_object, tasks, &prefix(tag), intake);
    }
    Ok(())
}

fn add(
    place: &Place,
    parent_object: &Map<String, Value>,
    tasks: &[Value],
    prefix: &str,
    intake: &mut Intake<'_>,
) {
    let tasks = intake.objects(placed(&place.below("tasks"), tasks));
    let cancelled_ids: BTreeSet<String> = tasks
        .iter()
        .filter(|(_, task)| is_cancelled(task))
        .filter_map(|(_, task)| id(task))
        .collect();
    for (place, task) in tasks {
        if is_cancelled(task) {
            let what = format!("the task {}", id(task).unwrap_or_default());
            intake.not_mapped.add(place, what, CANCELLED);
            continue;
        }
        let task = translated(Entry::new(place, task), prefix, &cancelled_ids);
        intake.add_ranked(Shape::TaskMaster, task, EntriesAt::Root);
    }
    intake.keep_around(parent_object, place, &["tasks"]);
}

fn is_cancelled(task: &Map<String, Value>) -> bool {
    let status = task.get("status").and_then(Value::as_str).unwrap_or_default();
    ["cancelled", "canceled"].iter().any(|word| status.trim().eq_ignore_ascii_case(word))
}

fn id(task: &Map<String, Value>) -> Option<String> {
    task.get("id").map(id_text)
}

/// An id as text: a file has numbers and texts.
fn id_text(id: &Value) -> String {
    id.to_string().trim_matches('"').to_owned()
}

/// The beginning of the ids of a tag: each tag counts its tasks from 1. `master` is the default
/// tag.
fn prefix(tag: &str) -> String {
    let tag = slug(tag, PREFIX_MAX);
    if tag.is_empty() || tag == "master" { String::new() } else { format!("{tag}-") }
}

/// A tag and its tasks.
type Tag<'l> = (&'l String, &'l Vec<Value>);

/// The requested tag or all of them, or the only one with tasks.
fn chosen<'l>(
    list: &'l Map<String, Value>,
    wanted: Option<&str>,
    wrong_shape: impl Fn(&str) -> ImportError,
) -> Result<Vec<Tag<'l>>, ImportError> {
    let named = |reason: String| ImportError::Tags {
        reason,
        tags: tags(list).map(|(tag, _)| tag.clone()).collect(),
    };
    let filled: Vec<Tag<'l>> = tags(list).filter(|(_, tasks)| !tasks.is_empty()).collect();
    if let Some(wanted) = wanted {
        let found = tags(list).find(|(tag, _)| *tag == wanted);
        return match found {
            Some(tag) => Ok(vec![tag]),
            None if wanted == ALL_TAGS => Ok(filled),
            None => Err(named(format!("there is no tag `{wanted}`"))),
        };
    }
    match filled.len() {
        1 => Ok(filled),
        0 => tags(list)
            .next()
            .map(|tag| vec![tag])
            .ok_or_else(|| wrong_shape("it has no array under `tasks`, and no tag has one")),
        _ => Err(named("several tags have tasks".to_owned())),
    }
}

fn leave_other_tags(list: &Map<String, Value>, chosen: &[Tag<'_>], intake: &mut Intake<'_>) {
    let is_chosen = |tag: &String| chosen.iter().any(|(chosen, _)| *chosen == tag);
    for (tag, tasks) in tags(list).filter(|(tag, tasks)| !is_chosen(tag) && !tasks.is_empty()) {
        let what = format!("{} tasks under the tag `{tag}`", tasks.len());
        let taken: Vec<&str> = chosen.iter().map(|(tag, _)| tag.as_str()).collect();
        let reason = format!("the tag `{}` is read", taken.join("`, `"));
        intake.not_mapped.add(Place::document().below(tag), what, reason);
    }
}

fn translated<'e>(
    mut task: Entry<'e>,
    prefix: &str,
    cancelled_ids: &BTreeSet<String>,
) -> Entry<'e> {
    for (key, field) in
        [("id", "id"), ("title", "name"), ("description", "description"), ("status", "status")]
    {
        task.take(key, field);
    }
    task.take("priority", "priority");
    dependencies(&mut task, cancelled_ids);
    task.carry("details", "Details");
    let mut criteria: Vec<String> =
        task.text("testStrategy").map(|text| text.trim().to_owned()).into_iter().collect();
    if !criteria.is_empty() {
        task.carry_as("testStrategy", "acceptance_criteria");
    }
    if let Some(subtasks) =
        task.value("subtasks").and_then(Value::as_array).filter(|all| !all.is_empty())
    {
        criteria.extend(subtasks.iter().filter_map(criterion));
        task.carry_as("subtasks", "acceptance_criteria");
        let place = task.place.below("subtasks");
        for (index, subtask) in subtasks.iter().enumerate() {
            let links = subtask
                .get("dependencies")
                .and_then(Value::as_array)
                .is_some_and(|links| !links.is_empty());
            if links {
                let what = "the order of a subtask";
                let reason = "a subtask is a criterion of its task, and criteria have no order";
                task.not_mapped.add(place.below(index).below("dependencies"), what, reason);
            }
        }
    }
    task.own.insert("acceptance_criteria".to_owned(), json!(criteria));
    if !prefix.is_empty() {
        let prefixed = |id: &Value| json!(format!("{prefix}{}", id_text(id)));
        for key in ["id", "depends_on"] {
            match task.own.get_mut(key) {
                Some(Value::Array(ids)) => ids.iter_mut().for_each(|id| *id = prefixed(id)),
                Some(id) => *id = prefixed(id),
                None => {}
            }
        }
    }
    task
}

/// Ids of tasks; a subtask `1.2` refers to its task.
fn dependencies(task: &mut Entry<'_>, cancelled_ids: &BTreeSet<String>) {
    let Some(links) = task.value("dependencies").and_then(Value::as_array) else {
        return task.take("dependencies", "depends_on");
    };
    let own = task.value("id").map(id_text);
    let place = task.place.below("dependencies");
    let mut depends_on = Vec::with_capacity(links.len());
    for (index, link) in links.iter().enumerate() {
        let number = id_text(link);
        if cancelled_ids.contains(number.split('.').next().unwrap_or(&number)) {
            let what = format!("the dependency on the task {number}");
            task.not_mapped.add(place.below(index), what, CANCELLED);
            continue;
        }
        let Some((above, _)) = number.split_once('.') else {
            depends_on.push(link.clone());
            continue;
        };
        task.not_mapped.add(
            place.below(index),
            format!("the dependency on the subtask {link}"),
            "it became a dependency on its task",
        );
        if Some(above) != own.as_deref() && !depends_on.contains(&json!(above)) {
            depends_on.push(json!(above));
        }
    }
    task.put("dependencies", "depends_on", Value::Array(depends_on));
}

/// `title: description` of a subtask.
fn criterion(subtask: &Value) -> Option<String> {
    let text = |key: &str| {
        subtask.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    };
    match (text("title"), text("description")) {
        (Some(title), Some(description)) if title != description => {
            Some(format!("{title}: {description}"))
        }
        (title, description) => title.or(description).map(str::to_owned),
    }
}
