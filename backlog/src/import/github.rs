//! Issues as `gh issue list --json number,title,body,labels,state,url` writes them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::detect::all_have;
use super::entry::Entry;
use super::error::ImportError;
use super::intake::Intake;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::list::{EntriesAt, priority_of_word};
use crate::tasks_md::boxes;

pub(super) const RULE: Rule = Rule { syntax: Syntax::Json, matches, read };

const KEYS: [&str; 2] = ["number", "title"];

/// Labels that mean a kind of work, with that kind.
const KINDS: [(&str, &str); 5] = [
    ("bug", "bugfix"),
    ("enhancement", "functional"),
    ("feature", "functional"),
    ("documentation", "documentation"),
    ("refactor", "refactor"),
];

/// Words before the number of an issue that is a dependency.
const WAITS: [&str; 3] = ["depends on", "blocked by", "depends-on:"];

fn matches(source: &Source<'_>) -> bool {
    match source {
        Source::Json(Value::Array(list)) => all_have(list, &KEYS),
        Source::Json(entry) => {
            source.lists().is_empty() && all_have(std::slice::from_ref(entry), &KEYS)
        }
        _ => false,
    }
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let issues = intake.objects(source.entries_with(Shape::Github, &KEYS)?);
    let numbers = issues.iter().filter_map(|(_, issue)| issue.get("number")?.as_u64()).map(id);
    let known: BTreeSet<String> =
        numbers.chain(intake.options.known.iter().map(|known| known.id.to_string())).collect();
    for (place, issue) in issues {
        intake.add(Shape::Github, translated(Entry::new(place, issue), &known), EntriesAt::Root);
    }
    Ok(())
}

fn id(number: u64) -> String {
    format!("issue-{number}")
}

fn translated<'e>(mut issue: Entry<'e>, known: &BTreeSet<String>) -> Entry<'e> {
    let number = issue.value("number").and_then(Value::as_u64);
    match number {
        Some(number) => issue.put_and_keep("number", "id", json!(id(number))),
        None => issue.take("number", "id"),
    }
    issue.take("title", "name");
    let body = issue.text("body").unwrap_or_default();
    issue.put("body", "description", json!(body.replace("\r\n", "\n").trim()));
    let criteria: Vec<&str> =
        boxes(body).map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
    if !criteria.is_empty() {
        issue.put_and_keep("body", "acceptance_criteria", json!(criteria));
    }
    state(&mut issue);
    labels(&mut issue);
    depends_on(&mut issue, body, number, known);
    issue
}

/// A closed issue claims to be done; one closed as not planned or duplicate is blocked.
fn state(issue: &mut Entry<'_>) {
    let is =
        |key: &str, word: &str| issue.text(key).is_some_and(|text| text.eq_ignore_ascii_case(word));
    let declined = is("stateReason", "NOT_PLANNED") || is("stateReason", "DUPLICATE");
    if is("state", "CLOSED") && declined {
        issue.put_and_keep("state", "status", json!("blocked"));
    } else if let Some(state) = issue.text("state") {
        issue.put_and_keep("state", "status", json!(state.to_ascii_lowercase()));
    }
}

/// A kind of work and a priority, if labels name one.
fn labels(issue: &mut Entry<'_>) {
    let labels = issue.value("labels").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names =
        labels.iter().filter_map(|label| label.as_str().or_else(|| label.get("name")?.as_str()));
    let names: Vec<String> = names.map(str::to_lowercase).collect();
    let kind = |name: &String| KINDS.iter().find(|(label, _)| label == name);
    if let Some((_, kind)) = names.iter().find_map(kind) {
        issue.put_and_keep("labels", "category", json!(kind));
    }
    let word = |name: &String| {
        let name = name
            .strip_prefix("priority")
            .map_or(name.as_str(), |rest| rest.trim_start_matches([':', '/', '-', ' ']));
        priority_of_word(name)
    };
    if let Some(priority) = names.iter().find_map(word) {
        issue.put_and_keep("labels", "priority", json!(priority));
    }
}

/// `Depends on #12` in the text; an issue that is not in the file may be done already.
fn depends_on(issue: &mut Entry<'_>, body: &str, own: Option<u64>, known: &BTreeSet<String>) {
    let mut found = BTreeSet::new();
    for line in body.lines().map(str::to_lowercase) {
        if let Some(rest) =
            WAITS.iter().find_map(|words| line.split_once(words)).map(|(_, rest)| rest)
        {
            found.extend(numbers(rest));
        }
    }
    let mut depends_on = Vec::new();
    for number in found.into_iter().filter(|number| Some(*number) != own) {
        if known.contains(&id(number)) {
            depends_on.push(id(number));
        } else {
            let reason =
                "that issue is neither in the file nor in the project's list: taken as done";
            issue.leave(issue.place.below("body"), format!("the dependency on #{number}"), reason);
        }
    }
    if !depends_on.is_empty() {
        issue.put_and_keep("body", "depends_on", json!(depends_on));
    }
}

/// The numbers in `#12, #13`; `other/repository#14` is none of them.
fn numbers(text: &str) -> Vec<u64> {
    let apart = |letter: char| {
        letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '.' | '&')
    };
    text.split(apart).filter_map(|word| word.strip_prefix('#')?.parse().ok()).collect()
}
