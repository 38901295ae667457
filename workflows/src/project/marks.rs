//! The marks of passed features in the list on the target branch.
//!
//! A commit that marks one feature contains the whole list. Of a long list, the marks of many
//! features therefore land together, so that the cost of a landing does not grow with the list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::contracts::PassMark;

/// The length up to which each landing marks its own feature.
const SHORT: usize = 1000;

/// How often a longer list is committed while it is worked off.
const COMMITS: usize = 100;

/// The marks that are due.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct DueMarks {
    /// The features that landed without a mark.
    due: Vec<FeatureId>,
    /// The features that merge, with the marks of their commits.
    merging: BTreeMap<FeatureId, PassMark>,
}

impl DueMarks {
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty() && self.merging.is_empty()
    }

    /// A feature of a list of this length gets the merge lease. `is_last`: no landing follows soon.
    pub(super) fn begin(&mut self, feature: &FeatureId, length: usize, is_last: bool) -> PassMark {
        if length <= SHORT && self.due.is_empty() {
            return PassMark::Own;
        }
        let mark = if !is_last && length > SHORT && self.due.len() + 1 < length / COMMITS {
            PassMark::Later
        } else {
            PassMark::With(self.due.clone())
        };
        self.merging.insert(feature.clone(), mark.clone());
        mark
    }

    /// The run of a feature is over.
    pub(super) fn end(&mut self, feature: &FeatureId, has_passed: bool) {
        let mark = self.merging.remove(feature).filter(|_| has_passed);
        match mark {
            Some(PassMark::Later) => self.due.push(feature.clone()),
            Some(PassMark::With(marked)) => self.due.retain(|due| !marked.contains(due)),
            Some(PassMark::Own) | None => {}
        }
    }

    /// A feature has not passed any more.
    pub(super) fn forget(&mut self, feature: &FeatureId) {
        self.due.retain(|due| due != feature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> FeatureId {
        FeatureId::new(format!("f{number}")).unwrap()
    }

    /// How many features the commit of each feature marks besides itself; `None`: not even itself.
    fn land(marks: &mut DueMarks, feature: usize, length: usize, is_last: bool) -> Option<usize> {
        let mark = marks.begin(&id(feature), length, is_last);
        marks.end(&id(feature), true);
        match mark {
            PassMark::Own => Some(0),
            PassMark::Later => None,
            PassMark::With(others) => Some(others.len()),
        }
    }

    #[test]
    fn short_lists_are_marked_by_each_landing() {
        let mut marks = DueMarks::default();
        assert!((0..9).all(|feature| land(&mut marks, feature, SHORT, false) == Some(0)));
        assert!(marks.is_empty());
    }

    #[test]
    fn long_lists_are_marked_in_parts_and_at_the_end() {
        let mut marks = DueMarks::default();
        let landed: Vec<_> =
            (0..7).map(|feature| land(&mut marks, feature, 3 * COMMITS * 10, false)).collect();
        assert_eq!(landed, [None; 7]);
        assert_eq!(land(&mut marks, 7, 300, false), Some(7), "the list became short");
        assert!(marks.is_empty());
        let landed: Vec<_> =
            (0..7).map(|feature| land(&mut marks, feature, 3 * SHORT / 2, feature == 6)).collect();
        assert_eq!(landed, [None, None, None, None, None, None, Some(6)]);
    }

    #[test]
    fn what_did_not_land_is_marked_later_and_what_was_lost_is_not() {
        let mut marks = DueMarks::default();
        for feature in 0..3 {
            assert_eq!(land(&mut marks, feature, 2 * SHORT, false), None);
        }
        marks.begin(&id(3), 2 * SHORT, true);
        marks.end(&id(3), false);
        marks.forget(&id(1));
        assert_eq!(marks.begin(&id(4), 2 * SHORT, true), PassMark::With(vec![id(0), id(2)]));
    }
}
