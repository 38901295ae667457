//! Detects the shape of a file by its content, never by its name.

use serde_json::Value;

use super::error::ImportError;
use super::intake::Rule;
use super::shape::Shape;
use super::source::{Source, all_have};
use super::{beads, github, junit, lists, markdown, task_master};

/// How a shape is detected and read.
pub(super) fn rule(shape: Shape) -> Rule {
    match shape {
        Shape::Quickstart => lists::QUICKSTART,
        Shape::Adk => lists::ADK,
        Shape::AdkMeta => lists::ADK_META,
        Shape::AdkTests => lists::ADK_TESTS,
        Shape::Ada => lists::ADA,
        Shape::Ralph => lists::RALPH,
        Shape::Beads => beads::RULE,
        Shape::TaskMaster => task_master::RULE,
        Shape::TasksMd => markdown::TASKS,
        Shape::SpecKit => markdown::SPEC_KIT,
        Shape::Kiro => markdown::KIRO,
        Shape::Checklist => markdown::CHECKLIST,
        Shape::Junit => junit::RULE,
        Shape::Github => github::RULE,
        Shape::List => lists::LIST,
    }
}

/// The only matching shape.
pub(super) fn shape_of(source: &Source<'_>) -> Result<Shape, ImportError> {
    let special = &Shape::ALL[..Shape::ALL.len() - 1];
    let any = Shape::List;
    let fitting: Vec<Shape> =
        special.iter().copied().filter(|shape| (rule(*shape).matches)(source)).collect();
    match fitting.as_slice() {
        [shape] => Ok(*shape),
        [] if (rule(any).matches)(source) => Ok(any),
        [] if matches!(source, Source::Markdown(text) if text.trim().is_empty()) => {
            Err(ImportError::Empty)
        }
        [] => Err(ImportError::Unknown { found: description(source) }),
        _ => Err(ImportError::Ambiguous(fitting)),
    }
}

/// A short description of the content.
fn description(source: &Source<'_>) -> String {
    match source {
        Source::Json(Value::Object(object)) => {
            let keys: Vec<&str> = object.keys().map(String::as_str).take(8).collect();
            format!("a JSON object with the keys [{}]", keys.join(", "))
        }
        Source::Json(Value::Array(list)) if all_have(list, &["name", "color"]) => {
            "labels, which are no work".to_owned()
        }
        Source::Json(Value::Array(_)) => "a JSON array without entries that are objects".to_owned(),
        Source::Json(_) => "a single JSON value".to_owned(),
        Source::Lines(_) => {
            "lines of JSON that are no issues: `id`, `title` and `issue_type` are looked for"
                .to_owned()
        }
        Source::Xml(document) => {
            format!("XML with <{}> at its root", document.root_element().tag_name().name())
        }
        Source::Markdown(_) => {
            "a text without `- [ ]` boxes and `### Task 1: title` headings".to_owned()
        }
    }
}
