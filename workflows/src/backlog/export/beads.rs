//! One issue to a line: dependencies are links of the type `blocks`, P2 is the usual priority.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{append, entries};
use crate::backlog::feature::{Feature, FeatureStatus};
use crate::backlog::import::{ORDERS, PRIORITY_OF_P0};
use crate::backlog::list::FeatureList;

/// Where an import keeps the links of an issue.
const KEPT_LINKS: &str = "beads_dependencies";

pub(super) fn write(list: &FeatureList) -> String {
    let lines = entries(list).into_iter().map(|(feature, extra)| format!("{}\n", Value::from(issue(feature, extra))));
    lines.collect()
}

fn issue(feature: &Feature, mut extra: Map<String, Value>) -> Map<String, Value> {
    let mut issue = Map::new();
    let mut put = |key: &str, is_wanted: bool, value: Value| {
        if is_wanted {
            issue.insert(key.to_owned(), value);
        }
    };
    let links = links(feature, extra.shift_remove(KEPT_LINKS));
    put("id", true, json!(feature.id));
    put("title", true, json!(feature.name));
    put("description", !feature.description.is_empty(), json!(feature.description));
    put("acceptance_criteria", !feature.acceptance_criteria.is_empty(), json!(criteria(&feature.acceptance_criteria)));
    put("status", true, json!(status(feature.status)));
    put("priority", true, json!(PRIORITY_OF_P0.saturating_sub(feature.priority)));
    put("issue_type", feature.category.is_some(), json!(feature.category));
    put("dependencies", !links.is_empty(), json!(links));
    put("checks", !feature.checks.is_empty(), json!(feature.checks));
    put("approval", feature.approval, json!(true));
    put("last_tested", feature.last_tested.is_some(), json!(feature.last_tested));
    append(&mut issue, extra);
    issue
}

fn status(status: FeatureStatus) -> &'static str {
    match status {
        FeatureStatus::Pending => "open",
        FeatureStatus::InProgress => "in_progress",
        FeatureStatus::Completed => "closed",
        FeatureStatus::Blocked => "blocked",
    }
}

/// One to a line; what is below the first line of a criterion is indented.
fn criteria(criteria: &[String]) -> String {
    criteria.iter().map(|text| format!("- {}", text.replace('\n', "\n  "))).collect::<Vec<_>>().join("\n")
}

/// The links that an import kept, without those that are no dependency any more, and those that are new.
fn links(feature: &Feature, kept: Option<Value>) -> Vec<Value> {
    let wanted: HashSet<&str> = feature.depends_on.iter().map(super::super::FeatureId::as_str).collect();
    let mut links = match kept {
        Some(Value::Array(links)) => links,
        _ => Vec::new(),
    };
    let target = |link: &Value| link.get("depends_on_id").and_then(Value::as_str).map(str::to_owned);
    let kind = |link: &Value| link.get("type").and_then(Value::as_str).unwrap_or(ORDERS[0]).to_owned();
    let is_order = |link: &Value| ORDERS.contains(&kind(link).as_str());
    links.retain(|link| !is_order(link) || target(link).is_some_and(|target| wanted.contains(target.as_str())));
    let linked: HashSet<String> = links.iter().filter(|link| is_order(link)).filter_map(target).collect();
    let new = feature.depends_on.iter().filter(|id| !linked.contains(id.as_str()));
    let new: Vec<Value> =
        new.map(|id| json!({ "issue_id": feature.id, "depends_on_id": id, "type": ORDERS[0] })).collect();
    links.extend(new);
    links
}
