//! A JUnit test report: each failing test becomes a feature, the others are counted.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use roxmltree::Node;
use serde_json::{Map, Value, json};

use super::entry;
use super::error::ImportError;
use super::intake::{Intake, Rule};
use super::place::Place;
use super::shape::Shape;
use super::source::{Source, Syntax};
use crate::list::{EntriesAt, shortened, slug};

pub(super) const RULE: Rule = Rule { syntax: Syntax::Xml, matches, read };

/// Maximum length of a failing test's output in a description, in characters.
const SAID_MAX: usize = 4000;
/// Maximum length of the part of an id that comes from the name of a test, in bytes.
const SLUG_MAX: usize = 48;

/// A failing test.
struct FailingTest {
    line: usize,
    suite: String,
    class: String,
    name: String,
    file: Option<String>,
    /// `failure` or `error`.
    kind: &'static str,
    message: String,
    said: String,
}

fn matches(source: &Source<'_>) -> bool {
    let Source::Xml(document) = source else { return false };
    ["testsuites", "testsuite"].contains(&document.root_element().tag_name().name())
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>) -> Result<(), ImportError> {
    let shape = Shape::Junit;
    if !matches(source) {
        let reason = "neither <testsuites> nor <testsuite> is at its root".to_owned();
        return Err(ImportError::OtherShape { shape, place: Place::line(1), reason });
    }
    let Source::Xml(document) = source else { return Ok(()) };
    let cases: Vec<Node<'_, '_>> =
        document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
    let mut failing: Vec<FailingTest> = Vec::new();
    let mut lines: HashMap<(String, String), usize> = HashMap::new();
    // Counts lines incrementally, because counting from the start is slow in a long report.
    let mut at = 0;
    let mut line = 1;
    for (case, test) in cases.iter().filter_map(|case| Some((case, failing_test(*case)?))) {
        let start = case.range().start;
        line += document.input_text()[at..start].matches('\n').count();
        at = start;
        match lines.entry((test.class.clone(), test.name.clone())) {
            Entry::Vacant(new) => {
                new.insert(line);
                failing.push(FailingTest { line, ..test });
            }
            Entry::Occupied(earlier) => {
                let reason = format!("it fails at line {} too, and counts once", earlier.get());
                intake.not_mapped.add(
                    Place::line(line),
                    format!("the test `{}`", test.name),
                    reason,
                );
            }
        }
    }
    if failing.len() < cases.len() {
        let others = cases.len() - failing.len();
        intake.report.note(format!(
            "{others} of {} tests do not fail, or were counted already",
            cases.len()
        ));
    }
    let ids = ids(&failing);
    for (test, id) in failing.iter().zip(ids) {
        let keys = entry_of(test, &id);
        intake.add(shape, translated(Place::line(test.line), &keys), EntriesAt::Root);
    }
    Ok(())
}

fn failing_test(case: Node<'_, '_>) -> Option<FailingTest> {
    let verdict =
        case.children().find(|node| node.has_tag_name("failure") || node.has_tag_name("error"))?;
    let text =
        |node: Node<'_, '_>, name: &str| node.attribute(name).map(|text| text.trim().to_owned());
    let suite = case.ancestors().find(|node| node.has_tag_name("testsuite"));
    Some(FailingTest {
        line: 0,
        suite: suite.and_then(|suite| text(suite, "name")).unwrap_or_default(),
        class: text(case, "classname").unwrap_or_default(),
        name: text(case, "name").unwrap_or_default(),
        file: text(case, "file"),
        kind: if verdict.has_tag_name("error") { "error" } else { "failure" },
        message: text(verdict, "message").or_else(|| text(verdict, "type")).unwrap_or_default(),
        said: verdict.text().unwrap_or_default().trim().to_owned(),
    })
}

/// An id that depends only on the test itself: if the name is too long or ambiguous, a hash of the
/// whole name is appended.
fn ids(failing: &[FailingTest]) -> Vec<String> {
    let full = |test: &FailingTest| format!("{} {}", test.class, test.name);
    let long = |test: &FailingTest| slug(&full(test), usize::MAX);
    let mut counts: HashMap<String, usize> = HashMap::new();
    for test in failing {
        *counts.entry(long(test)).or_default() += 1;
    }
    let id = |test: &FailingTest| {
        let long = long(test);
        if !long.is_empty() && long.len() <= SLUG_MAX && counts[&long] == 1 {
            return format!("fix-{long}");
        }
        let short = slug(&test.name, SLUG_MAX);
        let short = if short.is_empty() { "test" } else { &short };
        format!("fix-{short}-{:08x}", digest(&full(test)))
    };
    failing.iter().map(id).collect()
}

/// FNV-1a: the same on every machine and in every version.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A test as keys, as if the report were JSON.
fn entry_of(test: &FailingTest, id: &str) -> Map<String, Value> {
    let place = json!({
        "suite": test.suite, "classname": test.class, "name": test.name, "file": test.file
    });
    let keys = [
        ("id", json!(id)),
        ("name", json!(test.name)),
        (test.kind, json!(described(test))),
        ("junit", place),
    ];
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn translated(place: Place, keys: &Map<String, Value>) -> entry::Entry<'_> {
    let mut entry = entry::Entry::new(place, keys);
    let name = entry.text("name").unwrap_or("a test without a name");
    let class = keys["junit"]["classname"].as_str().filter(|class| !class.is_empty());
    let full = class.map_or_else(|| name.to_owned(), |class| format!("{class} {name}"));
    entry.take("id", "id");
    entry.mapped.clear();
    entry.put("name", "name", json!(format!("Fix the test {}", shortened(name, 120))));
    for key in ["failure", "error"] {
        entry.take(key, "description");
    }
    entry.own.insert("category".to_owned(), json!("bugfix"));
    entry
        .own
        .insert("acceptance_criteria".to_owned(), json!([format!("The test `{full}` passes")]));
    entry
}

fn described(test: &FailingTest) -> String {
    let name = if test.class.is_empty() {
        test.name.clone()
    } else {
        format!("{} {}", test.class, test.name)
    };
    let at = test.file.as_ref().map(|file| format!(" in {file}")).unwrap_or_default();
    let mut text = format!(
        "The test `{name}`{at} gives {}.",
        if test.kind == "error" { "an error" } else { "a failure" }
    );
    for part in [&test.message, &test.said] {
        if !part.is_empty() && !text.contains(part.as_str()) {
            text = format!("{text}\n\n{}", shortened(part, SAID_MAX));
        }
    }
    text
}
