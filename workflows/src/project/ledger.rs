//! The ledger of a project: resources used by its sessions, and reserved by those at work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::resources::{Resource, Resources};
use crate::settings::BudgetSettings;

/// Amounts of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UsageLedger {
    /// Used by sessions that have ended.
    spent: Resources,
    /// Reserved by sessions at work.
    reserved: BTreeMap<FeatureId, Resources>,
}

impl UsageLedger {
    /// The resource that is spent.
    pub(super) fn lacks(&self, budget: &BudgetSettings) -> Option<Resource> {
        budget.resources().minus(self.spent).lacks()
    }

    /// Reserves resources for a session: at most what its feature has left, and an equal part of
    /// what the project has left for so many features at once. `None`: sessions at work have
    /// reserved the rest.
    pub(super) fn reserve(
        &mut self,
        feature: &FeatureId,
        wanted: Resources,
        budget: &BudgetSettings,
        parallel: usize,
    ) -> Option<Resources> {
        self.reserved.remove(feature);
        let mut used = self.spent;
        for reserved in self.reserved.values() {
            used += *reserved;
        }
        let others = parallel.saturating_sub(self.reserved.len()).max(1);
        let free = budget.resources().minus(used);
        let part = free.divided(u32::try_from(others).unwrap_or(u32::MAX));
        let part = if part.lacks().is_some() { free } else { part };
        let available = wanted.least(part);
        if available.lacks().is_some() {
            return None;
        }
        self.reserved.insert(feature.clone(), available);
        Some(available)
    }

    /// A session has ended.
    pub(super) fn settle(&mut self, feature: &FeatureId, used: Resources) {
        self.reserved.remove(feature);
        self.spend(used);
    }

    /// A session has used this, perhaps after the end of the run of its feature.
    pub(super) fn spend(&mut self, used: Resources) {
        self.spent += used;
    }

    /// The run of a feature is over.
    pub(super) fn leave(&mut self, feature: &FeatureId) {
        self.reserved.remove(feature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Usd;

    fn id(text: &str) -> FeatureId {
        FeatureId::new(text).expect("the id of a test is valid")
    }

    /// The request of a session: this money, and little of everything else.
    fn cost(micros: u64) -> Resources {
        Resources { turns: 1, tokens: 1, cost_micros: micros, time_ms: 1 }
    }

    fn budget(micros: u64) -> BudgetSettings {
        BudgetSettings { cost: Usd(micros), ..BudgetSettings::default() }
    }

    #[test]
    fn sessions_at_once_share_what_is_left() {
        let mut ledger = UsageLedger::default();
        let budget = budget(100);
        let mut reserve = |name: &str, wanted: u64| {
            let reserved = ledger.reserve(&id(name), cost(wanted), &budget, 2);
            reserved.map(|reserved| reserved.cost_micros)
        };
        assert_eq!(reserve("a", 80), Some(50));
        assert_eq!(reserve("b", 20), Some(20));
        assert_eq!(reserve("c", 80), Some(30));
        assert_eq!(reserve("d", 80), None);
    }

    #[test]
    fn a_session_gives_back_what_it_has_not_used() {
        let mut ledger = UsageLedger::default();
        let budget = budget(100);
        assert!(ledger.reserve(&id("a"), cost(100), &budget, 1).is_some());
        assert_eq!(ledger.lacks(&budget), None);
        ledger.settle(&id("a"), Resources { cost_micros: 60, ..Resources::default() });
        let left = ledger.reserve(&id("b"), cost(100), &budget, 1).map(|left| left.cost_micros);
        assert_eq!(left, Some(40));
        ledger.settle(&id("b"), Resources { cost_micros: 41, ..Resources::default() });
        assert_eq!(ledger.lacks(&budget), Some(Resource::Cost));
    }
}
