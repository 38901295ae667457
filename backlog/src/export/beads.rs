//! One issue per line: dependencies are links of the type `blocks`, P2 is the default priority.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{append, entries_without_claims};
use crate::import::{BLOCKING, KEPT_PRIORITY, beads_priority, criteria_of_beads, text_of_criteria};
use crate::list::FeatureList;
use longhaul_workflows::backlog::{Feature, FeatureStatus};

/// The key in which an import keeps the links of an issue.
const KEPT_LINKS: &str = "beads_dependencies";
/// The key in which an import keeps the text of the acceptance criteria.
const KEPT_CRITERIA: &str = "beads_acceptance_criteria";

pub(super) fn write(list: &FeatureList) -> String {
    let issues =
        entries_without_claims(list).into_iter().map(|(feature, extra)| issue(&feature, extra));
    issues.fold(String::new(), |text, issue| text + &format!("{}\n", Value::from(issue)))
}

fn issue(feature: &Feature, mut extra: Map<String, Value>) -> Map<String, Value> {
    let description = without_design(&feature.description, extra.get("design"));
    let kept = extra.shift_remove(KEPT_CRITERIA);
    let kept = kept
        .as_ref()
        .and_then(Value::as_str)
        .filter(|kept| criteria_of_beads(kept) == feature.acceptance_criteria);
    let criteria =
        kept.map_or_else(|| text_of_criteria(&feature.acceptance_criteria), str::to_owned);
    let mut issue = Map::new();
    let mut put = |key: &str, is_wanted: bool, value: Value| {
        if is_wanted {
            issue.insert(key.to_owned(), value);
        }
    };
    let links = links(feature, extra.shift_remove(KEPT_LINKS));
    put("id", true, json!(feature.id));
    put("title", true, json!(feature.name));
    put("description", !description.is_empty(), json!(description));
    put("acceptance_criteria", !criteria.is_empty(), json!(criteria));
    put("status", true, json!(status(feature.status)));
    let (priority, is_exact) = beads_priority(feature.priority);
    put("priority", true, json!(priority));
    put(KEPT_PRIORITY, !is_exact, json!(feature.priority));
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

/// The description without the design that an import has appended, because issues have a separate
/// field for it.
fn without_design<'a>(description: &'a str, design: Option<&Value>) -> &'a str {
    let Some(design) =
        design.and_then(Value::as_str).map(str::trim).filter(|design| !design.is_empty())
    else {
        return description;
    };
    description.strip_suffix(&format!("Design:\n{design}")).map_or(description, str::trim_end)
}

/// The imported links without removed dependencies, plus new ones.
fn links(feature: &Feature, kept: Option<Value>) -> Vec<Value> {
    let wanted: HashSet<&str> =
        feature.depends_on.iter().map(longhaul_workflows::backlog::FeatureId::as_str).collect();
    let mut links = match kept {
        Some(Value::Array(links)) => links,
        _ => Vec::new(),
    };
    let target =
        |link: &Value| link.get("depends_on_id").and_then(Value::as_str).map(str::to_owned);
    let kind =
        |link: &Value| link.get("type").and_then(Value::as_str).unwrap_or(BLOCKING[0]).to_owned();
    let is_order = |link: &Value| BLOCKING.contains(&kind(link).as_str());
    links.retain(|link| {
        !is_order(link) || target(link).is_some_and(|target| wanted.contains(target.as_str()))
    });
    let linked: HashSet<String> =
        links.iter().filter(|link| is_order(link)).filter_map(target).collect();
    let new = feature.depends_on.iter().filter(|id| !linked.contains(id.as_str()));
    let new: Vec<Value> = new
        .map(|id| json!({ "issue_id": feature.id, "depends_on_id": id, "type": BLOCKING[0] }))
        .collect();
    links.extend(new);
    links
}
