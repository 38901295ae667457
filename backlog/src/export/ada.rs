//! `{project_name, project_path, features}`: like Longhaul's own list, but without `passes` and
//! checks.

use serde_json::{Map, Value, json};

use super::{append, entries_without_claims};
use crate::list::{FeatureList, own_entry};
use crate::list::{PRIORITY_ORDER, PriorityOrder};

pub(super) fn write(list: &FeatureList, project_path: &str) -> String {
    let around = list.list_keys();
    let name = project_path.rsplit('/').next().unwrap_or(project_path);
    let mut document = Map::new();
    document.insert(
        "project_name".to_owned(),
        around.get("project_name").cloned().unwrap_or(json!(name)),
    );
    document.insert(
        "project_path".to_owned(),
        around.get("project_path").cloned().unwrap_or(json!(project_path)),
    );
    // An import would otherwise guess the order of the numbers.
    document.insert(PRIORITY_ORDER.to_owned(), json!(PriorityOrder::HighFirst.name()));
    let features = entries_without_claims(list).into_iter().map(|(feature, extra)| {
        let mut entry = own_entry(&feature);
        append(&mut entry, extra);
        Value::from(entry)
    });
    document.insert("features".to_owned(), features.collect());
    append(&mut document, around);
    format!("{:#}\n", Value::from(document))
}
