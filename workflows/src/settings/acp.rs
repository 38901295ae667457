//! `[agent.acp]`: an agent that speaks the Agent Client Protocol.

use serde::{Deserialize, Serialize};

/// The kind of a tool, as the protocol names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Removes files.
    Delete,
    /// Moves files.
    Move,
    /// Searches.
    Search,
    /// Runs commands.
    Execute,
    /// Plans.
    Think,
    /// Gets data from other places.
    Fetch,
    /// Changes the mode of the session.
    SwitchMode,
    /// Anything else, and tools without a kind.
    Other,
}

impl ToolKind {
    /// The kind of a name of the protocol; newer kinds are others.
    pub fn named(name: &str) -> Self {
        let value = serde_json::Value::String(name.to_owned());
        serde_json::from_value(value).unwrap_or(Self::Other)
    }

    /// Its name in the protocol and in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "other",
        }
    }
}

/// `[agent.acp]`: the driver `acp`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcpSettings {
    /// The kinds of tools for which the agent gets permission when it asks; others are refused.
    pub allow: Vec<ToolKind>,
    /// The method of login, if the agent needs the request `authenticate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
}

impl Default for AcpSettings {
    fn default() -> Self {
        use ToolKind::{Delete, Edit, Execute, Move, Read, Search, Think};
        Self { allow: vec![Read, Edit, Delete, Move, Search, Execute, Think], login: None }
    }
}
