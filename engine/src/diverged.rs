//! Divergence: the workflow code does not follow its recorded history.

use crate::id::Position;

/// The code gives another command than its history recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("diverged at position {position}: recorded {recorded}, asked {asked}")]
pub struct Diverged {
    /// The position in the history.
    pub position: Position,
    /// The recorded command.
    pub recorded: String,
    /// The command that the code gives now.
    pub asked: String,
}
