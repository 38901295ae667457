//! A batch that has ended.

use longhaul_server::BatchStanding;

/// A settled batch, with the states of its projects in the order of the file.
pub(super) struct SettledBatch {
    pub(super) standing: BatchStanding,
    /// Whether it ended before it read the submission.
    pub(super) is_held: bool,
}
