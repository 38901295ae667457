//! The way to the target branch: merging it into the work, the candidate that would land, the
//! landing, and branches that were moved by others.

pub(super) mod land;
pub(super) mod landed;
pub(super) mod merge;
pub(super) mod outside;
pub(super) mod refresh;
pub(super) mod waiting;
