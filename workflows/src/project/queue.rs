//! The merge queue: which run merges next, and in which integration work tree.
//!
//! One run merges at a time, because concurrent merges invalidate each other and must be repeated
//! and checked again. A held run (paused, parked, stuck) must not block the others, so the next one
//! gets a lease beside it. Two properties keep that safe under any interleaving and any crash, even
//! if the held runs are not known exactly:
//!
//! - An integration work tree belongs to one run from the lease until the run returns it or ends.
//! - Landing is a compare-and-swap of the tip: a run whose tip has moved merges again, and its
//!   gates run again.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::feature::MergeRequest;

/// The runs that merge or wait to merge. A feature has one run at a time, so its id identifies the
/// run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct MergeQueue {
    /// The features with a lease, each with its integration work tree.
    holders: BTreeMap<FeatureId, u32>,
    /// The waiting features, the next one first.
    waiting: VecDeque<MergeRequest>,
}

impl MergeQueue {
    /// A feature requests a merge. A waiting one keeps its place.
    pub(super) fn add(&mut self, request: MergeRequest) {
        if self.waiting.iter().all(|waiting| waiting.feature != request.feature) {
            self.waiting.push_back(request);
        }
    }

    /// A feature returns its lease.
    pub(super) fn release(&mut self, id: &FeatureId) {
        self.holders.remove(id);
    }

    /// A feature no longer wants to merge, so it gets no lease. If it has one, it keeps its work
    /// tree until its run ends.
    pub(super) fn stop_waiting(&mut self, id: &FeatureId) {
        self.waiting.retain(|request| request.feature != *id);
    }

    /// The run of a feature is over.
    pub(super) fn leave(&mut self, id: &FeatureId) {
        self.release(id);
        self.stop_waiting(id);
    }

    /// The finished features that wait for a lease.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &MergeRequest> {
        self.waiting.iter()
    }

    /// The features with a lease.
    pub(super) fn holders(&self) -> impl Iterator<Item = &FeatureId> {
        self.holders.keys()
    }

    /// The next feature to get a lease, of those that may merge, and its integration work tree.
    /// Held features get none, and do not count among those that have one. A feature that has a
    /// lease and requests it again has lost the grant (by damage to the log), and gets the same
    /// one.
    pub(super) fn next(
        &mut self,
        is_held: impl Fn(&FeatureId) -> bool,
        may_merge: impl Fn(&FeatureId) -> bool,
    ) -> Option<(MergeRequest, u32)> {
        if let Some(place) =
            self.waiting.iter().position(|request| self.holders.contains_key(&request.feature))
        {
            let request = self.waiting.remove(place)?;
            let tree = *self.holders.get(&request.feature)?;
            return Some((request, tree));
        }
        if self.holders.keys().any(|id| !is_held(id)) {
            return None;
        }
        let place = self
            .waiting
            .iter()
            .position(|request| !is_held(&request.feature) && may_merge(&request.feature))?;
        let request = self.waiting.remove(place)?;
        let tree = (0..=u32::MAX).find(|tree| self.holders.values().all(|used| used != tree))?;
        self.holders.insert(request.feature.clone(), tree);
        Some((request, tree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str) -> MergeRequest {
        MergeRequest { feature: FeatureId::new(id).unwrap(), files: Vec::new() }
    }

    /// The next turn while these features are held.
    fn next(queue: &mut MergeQueue, held: &[&str]) -> Option<(String, u32)> {
        let next = queue.next(|id| held.contains(&id.as_str()), |_| true);
        next.map(|(request, tree)| (request.feature.to_string(), tree))
    }

    #[test]
    fn one_merges_at_a_time_in_the_order_of_asking() {
        let mut queue = MergeQueue::default();
        for id in ["a", "b", "b", "c"] {
            queue.add(request(id));
        }
        assert_eq!(next(&mut queue, &[]), Some(("a".into(), 0)));
        assert_eq!(next(&mut queue, &[]), None);
        queue.release(&request("a").feature);
        queue.stop_waiting(&request("b").feature);
        assert_eq!(next(&mut queue, &[]), Some(("c".into(), 0)));
        queue.leave(&request("c").feature);
        assert_eq!(next(&mut queue, &[]), None);
    }

    #[test]
    fn a_held_run_keeps_its_tree_and_blocks_no_other() {
        let mut queue = MergeQueue::default();
        for id in ["a", "b", "c", "d"] {
            queue.add(request(id));
        }
        assert_eq!(next(&mut queue, &[]), Some(("a".into(), 0)));
        assert_eq!(
            next(&mut queue, &["a", "b"]),
            Some(("c".into(), 1)),
            "b would not use its turn"
        );
        assert_eq!(next(&mut queue, &["a", "b"]), None);
        queue.leave(&request("c").feature);
        assert_eq!(next(&mut queue, &["a"]), Some(("b".into(), 1)));
        assert_eq!(next(&mut queue, &[]), None, "a goes on beside b, in a tree of its own");
        queue.leave(&request("a").feature);
        queue.leave(&request("b").feature);
        assert_eq!(next(&mut queue, &[]), Some(("d".into(), 0)));
    }
    #[test]
    fn one_that_does_not_know_of_its_turn_gets_it_again() {
        let mut queue = MergeQueue::default();
        for id in ["a", "b", "a"] {
            queue.add(request(id));
        }
        assert_eq!(next(&mut queue, &["b"]), Some(("a".into(), 0)));
        queue.add(request("a"));
        assert_eq!(next(&mut queue, &[]), Some(("a".into(), 0)), "before b, and in its own tree");
        assert_eq!(next(&mut queue, &[]), None, "b waits until it is given back");
        queue.release(&request("a").feature);
        assert_eq!(next(&mut queue, &[]), Some(("b".into(), 0)));
    }
}
