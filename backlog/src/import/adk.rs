//! Three shapes of one tool: an array with dependencies by name, the same below a `meta`, and the `tests` of a feature.

use super::detect::{all_have, any_has};
use super::error::ImportError;
use super::generic::read_list;
use super::intake::Intake;
use super::shape::{Rule, Shape};
use super::source::{Source, Syntax};
use crate::list::EntriesAt;

pub(super) const ARRAY: Rule = Rule {
    syntax: Syntax::Json,
    fits: is_array,
    read: |source, intake| read(source, intake, Shape::Adk, EntriesAt::Root),
};

pub(super) const META: Rule = Rule {
    syntax: Syntax::Json,
    fits: has_meta,
    read: |source, intake| read(source, intake, Shape::AdkMeta, EntriesAt::Key("items")),
};

pub(super) const TESTS: Rule = Rule {
    syntax: Syntax::Json,
    fits: has_tests,
    read: |source, intake| read(source, intake, Shape::AdkTests, EntriesAt::Key("tests")),
};

fn is_array(source: &Source<'_>) -> bool {
    source.array(None).is_some_and(|list| {
        all_have(list, &["name", "status"])
            && any_has(list, &["lastTested", "passes", "dependencies"])
            && !any_has(list, &["number", "issue_type", "acceptance_criteria", "depends_on"])
    })
}

fn has_meta(source: &Source<'_>) -> bool {
    let has_meta = source.object().is_some_and(|list| list.get("meta").is_some_and(serde_json::Value::is_object));
    has_meta && source.lists().contains(&"items")
}

fn has_tests(source: &Source<'_>) -> bool {
    let is_of_one_feature = |list: &serde_json::Map<_, serde_json::Value>| {
        list.get("feature").is_some_and(serde_json::Value::is_string)
            || list.get("summary").is_some_and(serde_json::Value::is_object)
    };
    source.object().is_some_and(is_of_one_feature) && source.lists().contains(&"tests")
}

fn read(source: &Source<'_>, intake: &mut Intake<'_>, shape: Shape, at: EntriesAt) -> Result<(), ImportError> {
    read_list(source, intake, shape, at)?;
    if let Some(place) = source.object().and_then(|list| list.get("summary")) {
        let reason = "Longhaul counts for itself";
        intake.leave(super::Place::document().below("summary"), format!("the counts {place}"), reason);
    }
    Ok(())
}
