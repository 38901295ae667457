//! An array of `{category, description, steps, passes}` with the most urgent first.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use super::{append, entries};
use crate::list::{EntriesAt, FeatureList, name_of_description, settle_ids};
use longhaul_workflows::backlog::{Feature, FeatureStatus};

pub(super) fn write(list: &FeatureList) -> String {
    let mut sorted = entries(list);
    sorted.sort_by_key(|(feature, _)| Reverse(feature.priority));
    let ids: Vec<_> = sorted.iter().map(|(feature, _)| &feature.id).collect();
    let mut document = Value::from(
        sorted.iter().map(|(feature, extra)| entry(feature, extra)).collect::<Vec<_>>(),
    );
    // Ids are written only if they differ from the ids generated from the descriptions.
    settle_ids(&mut document, EntriesAt::Root, &ids);
    format!("{document:#}\n")
}

fn entry(feature: &Feature, extra: &Map<String, Value>) -> Value {
    let mut entry = Map::new();
    let mut put = |key: &str, is_wanted: bool, value: Value| {
        if is_wanted {
            entry.insert(key.to_owned(), value);
        }
    };
    let description =
        if feature.description.is_empty() { &feature.name } else { &feature.description };
    let claim = if feature.passes { FeatureStatus::Completed } else { FeatureStatus::Pending };
    put("name", feature.name != name_of_description(description), json!(feature.name));
    put("category", feature.category.is_some(), json!(feature.category));
    put("description", true, json!(description));
    put("steps", true, json!(feature.acceptance_criteria));
    put("passes", true, json!(feature.passes));
    put("status", feature.status != claim, json!(feature.status));
    put("last_tested", feature.last_tested.is_some(), json!(feature.last_tested));
    put("priority", feature.priority != 0, json!(feature.priority));
    put("depends_on", !feature.depends_on.is_empty(), json!(feature.depends_on));
    put("checks", !feature.checks.is_empty(), json!(feature.checks));
    put("approval", feature.approval, json!(true));
    append(&mut entry, extra.clone());
    entry.into()
}
