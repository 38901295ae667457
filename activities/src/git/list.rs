//! The feature list in commits: marks passed features, describes changes, and merges two versions.

use std::collections::BTreeMap;

use longhaul_backlog::{EntryState, FeatureList};
use longhaul_engine::Failure;
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};

/// The list with a feature and others marked as passing; `None` if it is not a list or has no entry
/// of the feature.
pub(super) fn with_passed(
    text: &[u8],
    feature: &FeatureId,
    others: &[FeatureId],
    at: &str,
) -> Option<String> {
    let mut list = parse(text).ok()?;
    list.feature(feature)?;
    let state = EntryState {
        status: FeatureStatus::Completed,
        passes: true,
        last_tested: Some(at.to_owned()),
    };
    let marked = others.iter().chain([feature]).map(|id| (id.clone(), state.clone()));
    list.set_states(&marked.collect(), at);
    Some(list.to_text())
}

/// Whether the list says that a feature passes.
pub(super) fn passes(text: &[u8], feature: &FeatureId) -> bool {
    parse(text).is_ok_and(|list| list.feature(feature).is_some_and(|feature| feature.passes))
}

/// An agent's changes to the list, one sentence each.
pub(super) fn differences(before: &[u8], after: &[u8]) -> Vec<String> {
    let Ok(earlier) = parse(before) else { return vec!["changed".to_owned()] };
    let later = match parse(after) {
        Ok(later) => later,
        Err(error) => return vec![format!("cannot be read any more: {error}")],
    };
    let found = later.flips_since(&earlier).into_iter().chain(later.edits_since(&earlier));
    let texts: Vec<String> = found.map(|difference| difference.to_string()).collect();
    if texts.is_empty() { vec!["changed".to_owned()] } else { texts }
}

/// The user's version with the features marked that pass in Longhaul's; `None` if one of them is
/// not a list.
pub(super) fn joined(users: &[u8], longhauls: &[u8]) -> Option<String> {
    let mut list = parse(users).ok()?;
    let landed = parse(longhauls).ok()?;
    let passed = landed.features().iter().filter(|feature| feature.passes);
    let states: BTreeMap<FeatureId, EntryState> = passed
        .map(|feature| {
            let last_tested = feature.last_tested.clone();
            (
                feature.id.clone(),
                EntryState { status: FeatureStatus::Completed, passes: true, last_tested },
            )
        })
        .collect();
    let now =
        states.values().filter_map(|state| state.last_tested.clone()).max().unwrap_or_default();
    list.set_states(&states, &now);
    Some(list.to_text())
}

fn parse(text: &[u8]) -> Result<FeatureList, Failure> {
    FeatureList::from_bytes(text).map_err(|error| Failure::terminal(error.to_string()))
}
