//! Feature lists in JSON of several tools: one reader, and a rule for each tool.

use serde_json::Value;

use super::entry::Entry;
use super::error::ImportError;
use super::intake::{Intake, Rule};
use super::place::Place;
use super::shape::Shape;
use super::source::{Source, Syntax, all_have, any_has, has_objects, placed};
use crate::list::{EntriesAt, PRIORITY_ORDER, PriorityOrder, STORY_KEYS};

/// An array of `{category, description, steps, passes}`, or of `{name, description, passes}`.
pub(super) const QUICKSTART: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| {
        source.array(None).is_some_and(|list| {
            all_have(list, &["passes"])
                && any_has(list, &["description", "steps"])
                && !all_have(list, &["status"])
                && !any_has(list, &["number", "issue_type"])
        })
    },
    read: |source, intake| read(source, intake, Shape::Quickstart, EntriesAt::Root),
};

/// An array with dependencies by name.
pub(super) const ADK: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| {
        source.array(None).is_some_and(|list| {
            all_have(list, &["name", "status"])
                && any_has(list, &["lastTested", "passes", "dependencies"])
                && !any_has(list, &["number", "issue_type", "acceptance_criteria", "depends_on"])
        })
    },
    read: |source, intake| read(source, intake, Shape::Adk, EntriesAt::Root),
};

/// The same under `items`, below a `meta`.
pub(super) const ADK_META: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| has(source, "meta", Value::is_object) && source.lists().contains(&"items"),
    read: |source, intake| read(source, intake, Shape::AdkMeta, EntriesAt::Key("items")),
};

/// The `tests` of one feature.
pub(super) const ADK_TESTS: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| {
        let is_of_one_feature =
            has(source, "feature", Value::is_string) || has(source, "summary", Value::is_object);
        is_of_one_feature && source.lists().contains(&"tests")
    },
    read: |source, intake| read(source, intake, Shape::AdkTests, EntriesAt::Key("tests")),
};

/// `features` with acceptance criteria and `depends_on`.
pub(super) const ADA: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| {
        const TYPICAL: [&str; 2] = ["acceptance_criteria", "depends_on"];
        let is_list = source
            .array(None)
            .is_some_and(|list| all_have(list, &["id", "status"]) && any_has(list, &TYPICAL));
        let is_project = source
            .array(Some("features"))
            .is_some_and(|list| any_has(list, &TYPICAL) || has(source, "project_name", |_| true));
        is_list || is_project && source.lists().contains(&"features")
    },
    read: |source, intake| {
        let at =
            if source.array(None).is_some() { EntriesAt::Root } else { EntriesAt::Key("features") };
        read(source, intake, Shape::Ada, at)
    },
};

/// `userStories`: a `prd.json`.
pub(super) const RALPH: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| {
        let lists = source.lists();
        let is_alone = lists.len() == 1 && lists[0] == "stories";
        is_alone || lists.contains(&"userStories") || lists.contains(&"user_stories")
    },
    read: |source, intake| {
        let lists = source.lists();
        let key = STORY_KEYS.into_iter().find(|key| lists.contains(key));
        read(source, intake, Shape::Ralph, EntriesAt::Key(key.unwrap_or("userStories")))
    },
};

/// Any other list.
pub(super) const LIST: Rule = Rule {
    syntax: Syntax::Json,
    matches: |source| {
        let is_list = |list: &[Value]| list.is_empty() || has_objects(list) && !are_labels(list);
        source.array(None).is_some_and(is_list)
            || source.lists().iter().any(|key| source.array(Some(key)).is_some_and(is_list))
    },
    read: |source, intake| {
        let at = source.lists().first().map_or(EntriesAt::Root, |key| EntriesAt::Key(key));
        read(source, intake, Shape::List, at)
    },
};

/// Whether the entries are labels of a tracker: a name and a colour, and nothing to do.
fn are_labels(list: &[Value]) -> bool {
    const WORK: [&str; 8] =
        ["title", "status", "state", "passes", "steps", "acceptance_criteria", "priority", "body"];
    all_have(list, &["name", "color"]) && !any_has(list, &WORK)
}

fn has(source: &Source<'_>, key: &str, is_kind: fn(&Value) -> bool) -> bool {
    source.object().and_then(|list| list.get(key)).is_some_and(is_kind)
}

/// Reads the entries at a place of a JSON document with the vocabulary of feature lists.
fn read(
    source: &Source<'_>,
    intake: &mut Intake<'_>,
    shape: Shape,
    at: EntriesAt,
) -> Result<(), ImportError> {
    let (key, wanted) = match at {
        EntriesAt::Root => (None, "its root is no array of entries".to_owned()),
        EntriesAt::Key(key) => (Some(key), format!("it has no array under `{key}`")),
    };
    let other = || ImportError::OtherShape { shape, place: Place::document(), reason: wanted };
    let entries = source.array(key).ok_or_else(other)?;
    let place = key.map_or_else(Place::document, |key| Place::document().below(key));
    for (place, entry) in intake.objects(placed(&place, entries)) {
        intake.add_ranked(shape, Entry::of_list(place, entry), at);
    }
    if shape == Shape::Ralph {
        intake.priorities.are_of_format(PriorityOrder::LowFirst);
    }
    if let Some(list) = source.object() {
        intake.priorities.look_for_hint(list, &source.lists());
    }
    if let (Some(list), Some(key)) = (source.object(), key) {
        let others = source.lists().into_iter().filter(|other| *other != key);
        for other in others {
            let place = Place::document().below(other);
            intake.not_mapped.add(
                place,
                format!("the list under `{other}`"),
                format!("the entries are under `{key}`"),
            );
        }
        if let Some(command) = list.get("verify").and_then(Value::as_str) {
            intake.verify_with(command);
        }
        let without: Vec<&str> =
            source.lists().into_iter().chain([key, "verify", "summary", PRIORITY_ORDER]).collect();
        intake.keep_around(list, &Place::document(), &without);
    }
    if matches!(shape, Shape::Adk | Shape::AdkMeta | Shape::AdkTests)
        && let Some(counts) = source.object().and_then(|list| list.get("summary"))
    {
        intake.not_mapped.add(
            Place::document().below("summary"),
            format!("the counts {counts}"),
            "Longhaul counts for itself",
        );
    }
    Ok(())
}
