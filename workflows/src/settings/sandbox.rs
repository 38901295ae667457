//! What programs of a project may reach: the settings of the sandbox.

use serde::{Deserialize, Serialize};

/// Whether agents, set-up scripts and checks run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// The best level that this machine offers, which may be none.
    #[default]
    Auto,
    /// As `auto`, but nothing runs where there is no sandbox.
    Required,
    /// No sandbox.
    Off,
}

/// What of the network a program reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkAccess {
    /// All of it.
    #[default]
    On,
    /// A loopback interface of its own: its processes reach each other and nothing else.
    Loopback,
    /// Nothing.
    Off,
}

impl NetworkAccess {
    /// As the settings write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Loopback => "loopback",
            Self::Off => "off",
        }
    }
}

/// What one program of a project may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Confinement {
    /// Whether there is a sandbox.
    pub sandbox: SandboxMode,
    /// What of the network it reaches.
    pub network: NetworkAccess,
    /// Paths that it may write besides its own; `None`: state of agents and package caches in the
    /// home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// The directory of held-out checks, which only those checks see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
}

impl Confinement {
    /// Whether it is what holds where nothing is chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
