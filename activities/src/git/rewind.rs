//! Going back: checkpoints, a feature at an earlier commit, and a target branch at an earlier
//! commit.

pub(super) mod checkpoint;
pub(super) mod feature;
pub(super) mod rollback;
