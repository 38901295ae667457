//! Notes of people to the agent that works on a feature.

use serde::{Deserialize, Serialize};

/// The signal `note`: a text for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note(pub String);

impl Note {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "note";
}
