//! Events of a model call for live views. They are not recorded.

use serde::{Deserialize, Serialize};

/// A piece of an answer while it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelEvent {
    /// A piece of its text.
    Text {
        /// The text.
        text: String,
    },
    /// A piece of its reasoning.
    Thinking {
        /// The text.
        text: String,
    },
    /// The call of a tool begins.
    Tool {
        /// The tool.
        name: String,
    },
}
