//! Issues as `gh issue list --json number,title,body,labels,state,url`, the REST interface or a
//! search return them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::entry::Entry;
use super::error::ImportError;
use super::intake::{Intake, Rule};
use super::place::Place;
use super::shape::Shape;
use super::source::{Source, Syntax, all_have, placed};
use crate::list::{EntriesAt, priority_of_word, slug};
use crate::tasks_md::boxes;

pub(super) const RULE: Rule = Rule { syntax: Syntax::JsonLines, matches, read };

/// Maximum length of the part of an id that comes from a repository, in bytes.
const REPOSITORY_MAX: usize = 40;

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

/// Keys that hold a repository, directly or in an address of one of its issues.
const ADDRESSES: [&str; 3] = ["repository_url", "html_url", "url"];

fn matches(source: &Source<'_>) -> bool {
    match source {
        Source::Json(Value::Array(list)) => all_have(list, &KEYS) || is_pages(list),
        Source::Json(entry) if source.lists() == ["items"] => issues_in(entry).is_some(),
        Source::Json(entry) => {
            source.lists().is_empty() && all_have(std::slice::from_ref(entry), &KEYS)
        }
        Source::Lines(lines) => lines.iter().all(|(_, line)| {
            all_have(std::slice::from_ref(line), &KEYS) && line.get("issue_type").is_none()
        }),
        _ => false,
    }
}

/// Pages of issues, as `gh api --paginate --slurp` writes them.
fn is_pages(list: &[Value]) -> bool {
    !list.is_empty()
        && list.iter().all(|page| page.as_array().is_some_and(|page| all_have(page, &KEYS)))
}

/// The issues of a search.
fn issues_in(document: &Value) -> Option<&Vec<Value>> {
    let items = document.get("items")?.as_array()?;
    (document.get("total_count").is_some() && all_have(items, &KEYS)).then_some(items)
}

/// All entries: those of each page, those of a search, or those of the document.
fn entries<'s>(source: &'s Source<'_>) -> Result<Vec<(Place, &'s Value)>, ImportError> {
    match source {
        Source::Json(Value::Array(list)) if is_pages(list) => {
            let pages = placed(&Place::document(), list).into_iter();
            let pages = pages.filter_map(|(place, page)| Some(placed(&place, page.as_array()?)));
            Ok(pages.flatten().collect())
        }
        Source::Json(document) if let Some(items) = issues_in(document) => {
            Ok(placed(&Place::document().below("items"), items))
        }
        _ => source.entries_with(Shape::Github, &KEYS),
    }
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let issues = intake.objects(entries(source)?);
    let mut work = Vec::with_capacity(issues.len());
    for (place, issue) in issues {
        let is_request = issue.get("pull_request").is_some_and(|value| !value.is_null())
            || address(issue).is_some_and(|address| address.contains("/pull/"));
        if is_request {
            let number = issue.get("number").map(Value::to_string).unwrap_or_default();
            intake.not_mapped.add(place, format!("the pull request #{number}"), "it is no issue");
        } else if is_declined(issue) {
            let number = issue.get("number").map(Value::to_string).unwrap_or_default();
            let reason = "it was closed as not planned or as a duplicate";
            intake.not_mapped.add(place, format!("the issue #{number}"), reason);
        } else {
            work.push((place, issue));
        }
    }
    let repositories: BTreeSet<String> =
        work.iter().filter_map(|(_, issue)| repository(issue)).collect();
    let several = repositories.len() > 1;
    let names = work.iter().filter_map(|(_, issue)| {
        Some(Name { several, repository: repository(issue) }.id(issue.get("number")?.as_u64()?))
    });
    let known: BTreeSet<String> =
        names.chain(intake.options.known.iter().map(|known| known.id.to_string())).collect();
    for (place, issue) in work {
        let name = Name { several, repository: repository(issue) };
        let issue = translated(Entry::new(place, issue), &name, &known);
        intake.add(Shape::Github, issue, EntriesAt::Root);
    }
    Ok(())
}

fn address(issue: &Map<String, Value>) -> Option<&str> {
    ["html_url", "url"].iter().find_map(|key| issue.get(*key)?.as_str())
}

/// `owner/name` of an issue, in lower case.
fn repository(issue: &Map<String, Value>) -> Option<String> {
    let named = issue.get("repository").and_then(|repository| {
        let keys = ["nameWithOwner", "full_name", "name"];
        repository.as_str().or_else(|| keys.iter().find_map(|key| repository.get(*key)?.as_str()))
    });
    let of_address = || {
        let address = ADDRESSES.iter().find_map(|key| issue.get(*key)?.as_str())?;
        let path = address.split_once("://")?.1.split_once('/')?.1;
        let path = path.strip_prefix("api/v3/").unwrap_or(path);
        let path = path.strip_prefix("repos/").unwrap_or(path);
        let mut parts = path.split('/');
        Some(format!("{}/{}", parts.next()?, parts.next()?))
    };
    named.map(str::to_owned).or_else(of_address).map(|name| name.to_lowercase())
}

/// How the issues of a repository are named.
struct Name {
    /// Whether the file has issues of several repositories.
    several: bool,
    repository: Option<String>,
}

impl Name {
    fn id(&self, number: u64) -> String {
        match &self.repository {
            Some(repository) if self.several => {
                format!("{}-issue-{number}", slug(repository, REPOSITORY_MAX))
            }
            _ => format!("issue-{number}"),
        }
    }

    /// The id of `#12` or `owner/name#12`; `None` for another text or another repository.
    fn id_of(&self, word: &str) -> Option<String> {
        let (repository, number) = word.split_once('#')?;
        let number = number.parse().ok()?;
        if repository.is_empty() || self.repository.as_deref() == Some(repository) {
            return Some(self.id(number));
        }
        let other = Self { several: self.several, repository: Some(repository.to_owned()) };
        self.several.then(|| other.id(number))
    }
}

fn translated<'e>(mut issue: Entry<'e>, name: &Name, known: &BTreeSet<String>) -> Entry<'e> {
    let number = issue.value("number").and_then(Value::as_u64);
    match number {
        Some(number) => issue.put_and_keep("number", "id", json!(name.id(number))),
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
    let own = number.map(|number| name.id(number));
    depends_on(&mut issue, body, own.as_ref(), name, known);
    issue
}

/// Whether an issue was closed without being done.
fn is_declined(issue: &Map<String, Value>) -> bool {
    let is = |key: &str, word: &str| {
        issue.get(key).and_then(Value::as_str).is_some_and(|text| text.eq_ignore_ascii_case(word))
    };
    let reasons = ["stateReason", "state_reason"];
    is("state", "CLOSED")
        && reasons.iter().any(|key| is(key, "NOT_PLANNED") || is(key, "DUPLICATE"))
}

/// A closed issue claims to be done.
fn state(issue: &mut Entry<'_>) {
    if let Some(state) = issue.text("state") {
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
fn depends_on(
    issue: &mut Entry<'_>,
    body: &str,
    own: Option<&String>,
    name: &Name,
    known: &BTreeSet<String>,
) {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in body.lines().map(str::to_lowercase) {
        let rest = WAITS.iter().find_map(|words| line.split_once(words)).map(|(_, rest)| rest);
        for word in rest.into_iter().flat_map(words) {
            if let Some(id) = name.id_of(word)
                && Some(&id) != own
                && found.iter().all(|(other, _)| *other != id)
            {
                found.push((id, word.to_owned()));
            }
        }
    }
    found.sort();
    let mut depends_on = Vec::new();
    for (id, word) in found {
        if known.contains(&id) {
            depends_on.push(id);
        } else {
            let reason = "that issue is no work of the file or the project's list: taken as done";
            issue.not_mapped.add(
                issue.place.below("body"),
                format!("the dependency on {word}"),
                reason,
            );
        }
    }
    if !depends_on.is_empty() {
        issue.put_and_keep("body", "depends_on", json!(depends_on));
    }
}

/// The words of a text such as `#12, #13 (and owner/name#14)`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let apart =
        |letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '&');
    text.split(apart).map(|word| word.trim_end_matches('.'))
}
