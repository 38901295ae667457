//! The sandbox settings of a project's programs.

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

/// The network access of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkAccess {
    /// The whole network.
    #[default]
    On,
    /// A loopback interface of its own: its processes reach only each other.
    Loopback,
    /// No network.
    Off,
}

impl NetworkAccess {
    /// Its name in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Loopback => "loopback",
            Self::Off => "off",
        }
    }
}

/// The access of one program of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Confinement {
    /// Whether there is a sandbox.
    pub sandbox: SandboxMode,
    /// Its network access.
    pub network: NetworkAccess,
    /// Writable paths besides its own; `None`: state of agents and package caches in the home
    /// directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// The directory of held-out checks, visible only to those checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<String>,
}

impl Confinement {
    /// Whether it is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
