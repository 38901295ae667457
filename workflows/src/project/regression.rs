//! The finished features that a merge could break.

use std::collections::BTreeSet;

use crate::backlog::{Check, FeatureState};
use crate::feature::MergeRequest;
use crate::settings::Regression;

use super::state::ProjectRun;

/// The checks of finished features to repeat on the merged result, without duplicate commands.
pub(super) fn checks(memory: &ProjectRun, request: &MergeRequest) -> Vec<Check> {
    let scope = memory.settings.merge.regression;
    if scope == Regression::None {
        return Vec::new();
    }
    let touched: BTreeSet<&str> = request.files.iter().map(String::as_str).collect();
    let could_break = |id: &crate::backlog::FeatureId| {
        let record = memory.records.get(id);
        scope == Regression::All
            || record.is_some_and(|record| {
                record.files.iter().any(|file| touched.contains(file.as_str()))
            })
    };
    let mut known = BTreeSet::new();
    let passed = memory.backlog.iter().filter(|(_, state)| **state == FeatureState::Passed);
    let broken = passed.filter(|(feature, _)| could_break(&feature.id));
    broken
        .flat_map(|(feature, _)| feature.checks.iter().map(|check| (&feature.id, check)))
        .filter(|(_, check)| known.insert(check.run.as_str()))
        .map(|(id, check)| Check { name: format!("{id}: {}", check.name), ..check.clone() })
        .collect()
}
