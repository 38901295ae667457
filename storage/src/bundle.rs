//! Runs as a file for lossless import into another log: JSON lines.
//!
//! ```text
//! {"schema":"longhaul.export/1","backup":null}
//! {"run":"shop/login/1","events":2,"mail":1,"published":1,"pruned":null,"blake3":"…"}
//! {"position":0,…}
//! {"position":1,…}
//! {"seq":4294967297,"at":"2026-01-01T00:00:03.000000Z","body":{"Signal":{"name":"go",…}}}
//! {"name":"plan","value":{…}}
//! {"end":true,"runs":1,"blake3":"…"}
//! ```
//!
//! - The first line gives the schema. That of a backup also identifies the log state:
//!   `"backup":{"epoch":3,"at":"…"}`, the epoch of the owner that made it, and the time.
//! - For each run, in the order of their ids: a line with the number of following lines of each
//!   kind and their hash; its events as [`history_file`] writes them; its unread messages; its
//!   published values. Blobs are not needed: payloads are embedded.
//! - A run with a pruned history has `"pruned":{…}`, its summary, and its remaining events.
//! - The last line holds the blake3 hash, in hex, of all bytes before it, including line ends. It
//!   detects damage; it is not a signature.
//!
//! A file compressed with zstd is decompressed when it is read. Files with several histories in
//! sequence are accepted too. The format is frozen, like that of [`history_file`].

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

/// A compressing writer; it must be finished.
pub fn compressed<W: std::io::Write>(
    out: W,
) -> std::io::Result<zstd::stream::write::Encoder<'static, W>> {
    zstd::stream::write::Encoder::new(out, 3)
}

/// The content of the first line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// The log state of a backup; `None`: an export.
    pub backup: Option<Backup>,
}

/// The log state from which a backup was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The epoch of the owner: all messages have lower numbers than the next epoch's.
    pub epoch: u64,
    /// The time of the backup.
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

/// The first line of a run: the number of lines of each kind, and their hash, which is checked
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
