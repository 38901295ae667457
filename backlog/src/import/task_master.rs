//! `tasks`, below tags or not: subtasks become acceptance criteria of their task.

use serde_json::{Map, Value, json};

use super::detect::{all_have, any_has};
use super::entry::Entry;
use super::error::ImportError;
use super::intake::Intake;
use super::place::Place;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax, placed};
use crate::list::EntriesAt;

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
    let other = |reason: &str| ImportError::OtherShape {
        shape,
        place: Place::document(),
        reason: reason.to_owned(),
    };
    let list = source.object().ok_or_else(|| other("its root is no object"))?;
    let (place, around, tasks) = if let Some(tasks) = list.get("tasks").and_then(Value::as_array) {
        (Place::document(), list, tasks)
    } else {
        let (tag, tasks) = tagged(list, intake.options.tag, other)?;
        leave_other_tags(list, tag, intake);
        let around = list.get(tag).and_then(Value::as_object).unwrap_or(list);
        (Place::document().below(tag), around, tasks)
    };
    for (place, task) in intake.objects(placed(&place.below("tasks"), tasks)) {
        intake.add_ranked(shape, translated(Entry::new(place, task)), EntriesAt::Root);
    }
    intake.keep_around(around, &place, &["tasks"]);
    Ok(())
}

/// The requested tag, or the only one with tasks.
fn tagged<'l>(
    list: &'l Map<String, Value>,
    wanted: Option<&str>,
    other: impl Fn(&str) -> ImportError,
) -> Result<(&'l String, &'l Vec<Value>), ImportError> {
    let named = |reason: String| ImportError::Tags {
        reason,
        tags: tags(list).map(|(tag, _)| tag.clone()).collect(),
    };
    if let Some(wanted) = wanted {
        let found = tags(list).find(|(tag, _)| *tag == wanted);
        return found.ok_or_else(|| named(format!("there is no tag `{wanted}`")));
    }
    let mut filled = tags(list).filter(|(_, tasks)| !tasks.is_empty());
    match (filled.next(), filled.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(named("several tags have tasks".to_owned())),
        (None, _) => tags(list)
            .next()
            .ok_or_else(|| other("it has no array under `tasks`, and no tag has one")),
    }
}

fn leave_other_tags(list: &Map<String, Value>, taken: &str, intake: &mut Intake<'_>) {
    for (tag, tasks) in tags(list).filter(|(tag, tasks)| *tag != taken && !tasks.is_empty()) {
        let what = format!("{} tasks under the tag `{tag}`", tasks.len());
        intake.leave(Place::document().below(tag), what, format!("the tag `{taken}` is read"));
    }
}

fn translated(mut task: Entry<'_>) -> Entry<'_> {
    for (key, field) in
        [("id", "id"), ("title", "name"), ("description", "description"), ("status", "status")]
    {
        task.take(key, field);
    }
    task.take("priority", "priority");
    dependencies(&mut task);
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
                task.leave(place.below(index).below("dependencies"), what, reason);
            }
        }
    }
    task.own.insert("acceptance_criteria".to_owned(), json!(criteria));
    task
}

/// Ids of tasks; a subtask `1.2` refers to its task.
fn dependencies(task: &mut Entry<'_>) {
    let Some(links) = task.value("dependencies").and_then(Value::as_array) else {
        return task.take("dependencies", "depends_on");
    };
    let own = task.value("id").map(|id| id.to_string().trim_matches('"').to_owned());
    let place = task.place.below("dependencies");
    let mut depends_on = Vec::with_capacity(links.len());
    for (index, link) in links.iter().enumerate() {
        let number = link.to_string();
        let Some((above, _)) = number.trim_matches('"').split_once('.') else {
            depends_on.push(link.clone());
            continue;
        };
        task.leave(
            place.below(index),
            format!("the wait for the subtask {link}"),
            "its whole task is waited for",
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
