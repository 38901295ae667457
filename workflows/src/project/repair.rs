//! Repair of a broken baseline: one feature repairs it, the others wait and start from the result.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::backlog::{FeatureId, FeatureState};
use crate::feature::{BlockReason, BrokenBase, GivenUp};

use super::wait_reason::WaitReason;

/// The number of features that may give up on the repair of a commit.
const TRIES: usize = 2;

/// The state of the baseline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Repair {
    /// The repairing feature, and the commit that it repairs.
    at_work: Option<(FeatureId, String)>,
    /// The commit of the last repair that landed.
    repaired: Option<String>,
    /// The commit on which repairs failed.
    base: String,
    /// The features that gave up on it.
    failed: Vec<GivenUp>,
}

/// Whether a feature that starts from a broken commit may have a session.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RepairDecision {
    /// It repairs the baseline.
    Repairs,
    /// Another feature repairs it now.
    Waits(WaitReason),
    /// The commit is repaired: the feature should start from the current target.
    Rebase,
    /// The repair was given up too often.
    Refused(BlockReason),
}

impl Repair {
    /// Whether a feature repairs the baseline now; a held one does not.
    pub(super) fn is_at_work(&self, held: &BTreeSet<FeatureId>) -> bool {
        self.repairer().is_some_and(|repairer| !held.contains(repairer))
    }

    /// The repairing feature.
    pub(super) fn repairer(&self) -> Option<&FeatureId> {
        self.at_work.as_ref().map(|(feature, _)| feature)
    }

    /// The decision for a feature that found the baseline broken.
    pub(super) fn turn(
        &self,
        feature: &FeatureId,
        broken: &BrokenBase,
        held: &BTreeSet<FeatureId>,
    ) -> RepairDecision {
        if self.repaired.as_ref() == Some(&broken.commit) {
            return RepairDecision::Rebase;
        }
        match self.repairer().filter(|repairer| !held.contains(*repairer)) {
            Some(other) if other != feature => RepairDecision::Waits(WaitReason::Repair {
                by: other.clone(),
                earlier: self.failed_on(broken).last().cloned(),
            }),
            None if self.failed_on(broken).len() >= TRIES => {
                RepairDecision::Refused(BlockReason::Baseline {
                    broken: broken.clone(),
                    given_up: self.failed_on(broken).to_vec(),
                })
            }
            _ => RepairDecision::Repairs,
        }
    }

    /// A feature begins to repair.
    pub(super) fn begin(&mut self, feature: &FeatureId, broken: &BrokenBase) {
        self.at_work = Some((feature.clone(), broken.commit.clone()));
    }

    /// The run of a feature is over.
    pub(super) fn end(&mut self, feature: &FeatureId, state: Option<&FeatureState>) {
        let Some((_, base)) = self.at_work.take_if(|(repairer, _)| repairer == feature) else {
            return;
        };
        match state {
            Some(FeatureState::Passed) => {
                self.repaired = Some(base);
                self.failed.clear();
            }
            Some(FeatureState::Blocked(block)) => {
                if self.base != base {
                    self.base = base;
                    self.failed = Vec::new();
                }
                let reason = first_line(&block.reason);
                self.failed.push(GivenUp { feature: feature.clone(), reason });
            }
            _ => {}
        }
    }

    fn failed_on(&self, broken: &BrokenBase) -> &[GivenUp] {
        if self.base == broken.commit { &self.failed } else { &[] }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}
