//! Divergence: the workflow code does not follow its recorded history.

use crate::id::Position;

/// The code asks something else than its history recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("diverged at position {position}: recorded {recorded}, asked {asked}")]
pub struct Diverged {
    /// Where in the history.
    pub position: Position,
    /// What the history holds there.
    pub recorded: String,
    /// What the code asks now.
    pub asked: String,
}
