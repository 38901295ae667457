//! Features that change the same files: their conflicts are resolved one at a time, on a tip that
//! does not move under them.
//!
//! A feature whose work does not merge asks for a session to resolve that. Once granted, its files
//! are reserved until its run is over: no other feature that changes one of them merges before it
//! or resolves beside it. Whoever was in the merge queue before it asked goes first; that costs
//! merges only, and saves a second resolution. A feature that does not go on by itself
//! keeps no files from the others meanwhile: it merges on top of what they landed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::feature::Ready;

type Files = BTreeSet<String>;

/// Which features change which files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Conflicts {
    /// The features that resolve, and the files that are reserved for them.
    resolving: BTreeMap<FeatureId, Files>,
    /// The files of features whose work was ready or in conflict and has not passed.
    touched: BTreeMap<FeatureId, Files>,
}

/// A feature that waits to resolve a conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Claim {
    pub(super) feature: FeatureId,
    pub(super) files: Files,
    /// The features with such files that were ready to merge before it asked.
    pub(super) after: BTreeSet<FeatureId>,
}

impl Conflicts {
    /// Notes which files the work on a feature changes.
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

    /// The features whose files are known.
    pub(super) fn known(&self) -> impl Iterator<Item = &FeatureId> {
        self.touched.keys()
    }

    /// Whether two features are known to change a file both.
    pub(super) fn overlap(&self, one: &FeatureId, other: &FeatureId) -> bool {
        match (self.touched.get(one), self.touched.get(other)) {
            (Some(one), Some(other)) => !one.is_disjoint(other),
            _ => false,
        }
    }

    /// The claim of a feature, behind the features that are ready to merge now.
    pub(super) fn claim<'a>(
        &self,
        feature: &FeatureId,
        files: &[String],
        ready: impl IntoIterator<Item = &'a FeatureId>,
    ) -> Claim {
        let files: Files = files.iter().cloned().collect();
        let is_before = |other: &&FeatureId| {
            *other != feature
                && self.touched.get(*other).is_some_and(|touched| !touched.is_disjoint(&files))
        };
        let after = ready.into_iter().filter(is_before).cloned().collect();
        Claim { feature: feature.clone(), files, after }
    }

    /// The feature that a claim has to wait for: one that resolves, asked before it, or is ready
    /// since before it asked.
    ///
    /// A feature that resolves already and asks once more waits for none: those with the same files
    /// wait for it.
    pub(super) fn before<'a>(
        &'a self,
        claim: &'a Claim,
        earlier: impl IntoIterator<Item = &'a Claim>,
        ready: &BTreeSet<&'a FeatureId>,
        held: &BTreeSet<FeatureId>,
    ) -> Option<&'a FeatureId> {
        if self.resolving.contains_key(&claim.feature) {
            return None;
        }
        let overlaps = |files: &Files| !files.is_disjoint(&claim.files);
        let resolving =
            self.resolving.iter().filter(|(_, files)| overlaps(files)).map(|(other, _)| other);
        let asked =
            earlier.into_iter().filter(|other| overlaps(&other.files)).map(|other| &other.feature);
        let before = claim.after.iter().filter(|feature| ready.contains(feature));
        resolving.chain(asked).chain(before).find(|other| !held.contains(*other))
    }

    /// Reserves the files of a claim, besides those of an earlier claim of the feature.
    pub(super) fn reserve(&mut self, claim: &Claim) {
        self.resolving
            .entry(claim.feature.clone())
            .or_default()
            .extend(claim.files.iter().cloned());
    }

    /// The feature that finished work has to wait for before it merges.
    pub(super) fn holds_back<'a>(
        &'a self,
        ready: &Ready,
        claims: impl IntoIterator<Item = &'a Claim>,
        held: &BTreeSet<FeatureId>,
    ) -> Option<&'a FeatureId> {
        // Files that it changes beyond its own reservation must not make two that resolve wait for
        // each other.
        if self.resolving.contains_key(&ready.feature) {
            return None;
        }
        let overlaps = |files: &Files| ready.files.iter().any(|file| files.contains(file));
        let resolving =
            self.resolving.iter().filter(|(_, files)| overlaps(files)).map(|(other, _)| other);
        let is_before = |claim: &&Claim| {
            claim.feature != ready.feature
                && overlaps(&claim.files)
                && !claim.after.contains(&ready.feature)
        };
        let asked = claims.into_iter().filter(is_before).map(|claim| &claim.feature);
        resolving.chain(asked).find(|other| !held.contains(*other))
    }

    /// The run of a feature is over.
    pub(super) fn leave(&mut self, feature: &FeatureId) {
        self.resolving.remove(feature);
    }

    /// A feature has passed or is gone.
    pub(super) fn forget(&mut self, feature: &FeatureId) {
        self.leave(feature);
        self.touched.remove(feature);
    }
}
