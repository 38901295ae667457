//! Features that change the same files: their conflicts are resolved one at a time, on a fixed tip.
//!
//! A feature whose work conflicts requests a session to resolve that. Once granted, its files are
//! reserved until its run is over: no other feature that changes one of them merges or resolves
//! meanwhile. Features that were in the merge queue before the request go first; that costs only
//! merges, and saves a second resolution. A held feature reserves no files meanwhile: it later
//! merges on top of the others' work.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::feature::MergeRequest;

type Files = BTreeSet<String>;

/// The files that features change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Conflicts {
    /// The features that resolve, with their reserved files.
    resolving: BTreeMap<FeatureId, Files>,
    /// The files of unpassed features whose work was ready or in conflict.
    touched: BTreeMap<FeatureId, Files>,
}

/// A request to resolve a conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) feature: FeatureId,
    pub(super) files: Files,
    /// The features with common files that were ready to merge before the request.
    pub(super) after: BTreeSet<FeatureId>,
}

impl Conflicts {
    /// Records the files that the work on a feature changes.
    pub(super) fn learn<'a>(
        &mut self,
        feature: &FeatureId,
        files: impl IntoIterator<Item = &'a String>,
    ) {
        let known = self.touched.entry(feature.clone()).or_default();
        known.extend(files.into_iter().cloned());
    }

    /// The features that resolve a conflict.
    pub(super) fn resolving(&self) -> impl Iterator<Item = &FeatureId> {
        self.resolving.keys()
    }

    /// The features with known files.
    pub(super) fn known(&self) -> impl Iterator<Item = &FeatureId> {
        self.touched.keys()
    }

    /// Whether two features are known to change a common file.
    pub(super) fn overlap(&self, one: &FeatureId, other: &FeatureId) -> bool {
        match (self.touched.get(one), self.touched.get(other)) {
            (Some(one), Some(other)) => !one.is_disjoint(other),
            _ => false,
        }
    }

    /// The claim of a feature, after the features that are now ready to merge.
    pub(super) fn claim<'a>(
        &self,
        feature: &FeatureId,
        files: &[String],
        request: impl IntoIterator<Item = &'a FeatureId>,
    ) -> Claim {
        let files: Files = files.iter().cloned().collect();
        let is_before = |other: &&FeatureId| {
            *other != feature
                && self.touched.get(*other).is_some_and(|touched| !touched.is_disjoint(&files))
        };
        let after = request.into_iter().filter(is_before).cloned().collect();
        Claim { feature: feature.clone(), files, after }
    }

    /// The feature that a claim must wait for: it resolves, requested earlier, or was ready before
    /// the request.
    ///
    /// A feature that already resolves and requests another session does not wait: those with
    /// common files wait for it.
    pub(super) fn before<'a>(
        &'a self,
        claim: &'a Claim,
        earlier: impl IntoIterator<Item = &'a Claim>,
        request: &BTreeSet<&'a FeatureId>,
        held: &BTreeSet<FeatureId>,
    ) -> Option<&'a FeatureId> {
        if self.resolving.contains_key(&claim.feature) {
            return None;
        }
        let overlaps = |files: &Files| !files.is_disjoint(&claim.files);
        let resolving =
            self.resolving.iter().filter(|(_, files)| overlaps(files)).map(|(other, _)| other);
        let claimed =
            earlier.into_iter().filter(|other| overlaps(&other.files)).map(|other| &other.feature);
        let before = claim.after.iter().filter(|feature| request.contains(feature));
        resolving.chain(claimed).chain(before).find(|other| !held.contains(*other))
    }

    /// Reserves the files of a claim, besides those of an earlier claim of the feature.
    pub(super) fn reserve(&mut self, claim: &Claim) {
        self.resolving
            .entry(claim.feature.clone())
            .or_default()
            .extend(claim.files.iter().cloned());
    }

    /// The feature that finished work must wait for before it merges.
    pub(super) fn holds_back<'a>(
        &'a self,
        request: &MergeRequest,
        claims: impl IntoIterator<Item = &'a Claim>,
        held: &BTreeSet<FeatureId>,
    ) -> Option<&'a FeatureId> {
        // Files beyond its own reservation are ignored, or two resolving features could wait for
        // each other.
        if self.resolving.contains_key(&request.feature) {
            return None;
        }
        let overlaps = |files: &Files| request.files.iter().any(|file| files.contains(file));
        let resolving =
            self.resolving.iter().filter(|(_, files)| overlaps(files)).map(|(other, _)| other);
        let is_before = |claim: &&Claim| {
            claim.feature != request.feature
                && overlaps(&claim.files)
                && !claim.after.contains(&request.feature)
        };
        let claimed = claims.into_iter().filter(is_before).map(|claim| &claim.feature);
        resolving.chain(claimed).find(|other| !held.contains(*other))
    }

    /// The run of a feature is over.
    pub(super) fn leave(&mut self, feature: &FeatureId) {
        self.resolving.remove(feature);
    }

    /// A feature has passed or was removed.
    pub(super) fn forget(&mut self, feature: &FeatureId) {
        self.leave(feature);
        self.touched.remove(feature);
    }
}
