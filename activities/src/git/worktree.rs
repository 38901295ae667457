//! Longhaul's work trees: for features, gates and merges, each with a private repository for the
//! programs in it.

pub(super) mod claim;
pub(super) mod close;
pub(super) mod guard;
pub(super) mod head;
pub(super) mod history;
pub(super) mod open;
pub(super) mod private;
pub(super) mod spare;
pub(super) mod steady;
pub(super) mod tree;
pub(super) mod work;
