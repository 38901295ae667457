//! The frozen shapes of version 1: what the lines of a file say beside the histories, name for name.
//!
//! Never change a type here: files that were written would not be read any more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) schema: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) backup: Option<Backup>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Backup {
    pub(super) epoch: u64,
    pub(super) at: String,
}

/// The first line of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) run: String,
    /// Lines of its history, header and footer included; of a pruned run: of its events.
    pub(super) lines: u64,
    pub(super) mail: u64,
    pub(super) published: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pruned: Option<Summary>,
}

/// The summary of a run whose history is gone.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Summary {
    pub(super) workflow: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) status: Status,
    pub(super) origin: u64,
    pub(super) started_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended_at: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Running,
    Waiting {
        until: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<String>,
    },
    Paused {
        by: String,
        why: String,
    },
    Parked(String),
    Completed,
    Failed(String),
    Cancelled,
}

/// A published value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) name: String,
    pub(super) value: Box<RawValue>,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    pub(super) end: bool,
    pub(super) runs: u64,
    pub(super) blake3: String,
}
