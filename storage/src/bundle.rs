//! Runs as a file that another log takes in without loss: JSON, one document a line.
//!
//! ```text
//! {"schema":"longhaul.export/1","backup":null}
//! {"run":"shop/login/1","events":2,"mail":1,"published":1,"pruned":null,"blake3":"…"}
//! {"position":0,…}
//! {"position":1,…}
//! {"seq":4294967297,"at":"2026-01-01T00:00:03.000000Z","body":{"Signal":{"name":"go","payload":1}}}
//! {"name":"plan","value":{…}}
//! {"end":true,"runs":1,"blake3":"…"}
//! ```
//!
//! - The first line says what the file is. That of a backup also says of what:
//!   `"backup":{"epoch":3,"at":"…"}`, the number of the ownership in which it was made, and when.
//! - For each run, in the order of their ids: a line with how many lines follow of each kind and
//!   their hash; its events as [`history_file`] writes them; the messages that it has not taken;
//!   the values that it has published. Blobs are not needed: payloads are embedded.
//! - A run whose history was pruned has `"pruned":{…}`, its summary, and the events that it still
//!   has.
//! - The last line holds the blake3 hash, in hex, of all bytes before it, line ends included. It
//!   tells damage; it is no signature.
//!
//! Whatever was compressed with zstd is read as if it had not been, and so are files that hold one
//! history after another. The form is frozen, as that of [`history_file`] is.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

pub use reader::Reader;
pub use writer::Writer;

use crate::file_error::Schema;
#[expect(unused_imports, reason = "named in the documentation")]
use crate::history_file;
use crate::wire::json::Json;
use crate::wire::v1::{Summary, Time};

const SCHEMA: Schema = Schema { family: "longhaul.export", version: 1 };

/// A writer that compresses what it is given; it has to be finished.
pub fn compressed<W: std::io::Write>(
    out: W,
) -> std::io::Result<zstd::stream::write::Encoder<'static, W>> {
    zstd::stream::write::Encoder::new(out, 3)
}

/// What the first line of a file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// Of which log this is a backup; `None`: it is an export.
    pub backup: Option<Backup>,
}

/// What a backup says about its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The number of the ownership in which it was made: messages were numbered up to there.
    pub epoch: u64,
    /// When it was made.
    pub at: DateTime<Utc>,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    schema: String,
    backup: Option<BackupField>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupField {
    epoch: u64,
    at: Time,
}

/// The first line of a run: how many lines of each kind follow, and their hash, which is checked
/// before they are decoded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunLine {
    run: RunId,
    events: u64,
    mail: u64,
    published: u64,
    pruned: Option<Summary>,
    blake3: String,
}

/// A published value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedLine {
    name: String,
    value: Json,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    end: bool,
    runs: u64,
    blake3: String,
}
