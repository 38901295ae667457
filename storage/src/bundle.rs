//! Runs as a file that another log takes in without loss: JSON, one document a line.
//!
//! ```text
//! {"schema":"longhaul.export/1"}
//! {"run":"shop/login/1","lines":4,"mail":1,"published":1}
//! {"schema":"longhaul.history/1","run":"shop/login/1","events":2}
//! {"position":0,…}
//! {"position":1,…}
//! {"end":true,"blake3":"…"}
//! {"seq":4294967297,"at":"2026-01-01T00:00:03.000000Z","body":{"Signal":{"name":"go","payload":1}}}
//! {"name":"plan","value":{…}}
//! {"end":true,"runs":1,"blake3":"…"}
//! ```
//!
//! - The first line says what the file is. That of a backup also says of what: `"backup":{"epoch":3,"at":"…"}`, the
//!   number of the ownership in which it was made, and when.
//! - For each run, in the order of their ids: a line with how many lines follow of each kind; its history as
//!   [`history_file`] writes it, to the byte; the messages that it has not taken; the values that it has published.
//!   Blobs are not needed: payloads are embedded.
//! - A run whose history was pruned has `"pruned":{…}`, its summary, in its first line, and in place of a history the
//!   events that it still has.
//! - The last line holds the blake3 hash, in hex, of all bytes before it, line ends included. It tells damage; it is no
//!   signature.
//!
//! Whatever was compressed with zstd is read as if it had not been, and so are files that hold one history after another.
//! The form is frozen, as that of [`history_file`] is.

mod error;
mod line;
mod reader;
mod section;
#[cfg(test)]
mod tests;
mod v1;
mod writer;

use chrono::{DateTime, Utc};

pub use error::BundleError;
pub use reader::Reader;
pub use writer::Writer;

#[expect(unused_imports, reason = "named in the documentation")]
use crate::history_file;

/// What the schema of every version begins with.
const FAMILY: &str = "longhaul.export/";

/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;

/// A writer that compresses what it is given; it has to be finished.
pub fn compressed<W: std::io::Write>(out: W) -> std::io::Result<zstd::stream::write::Encoder<'static, W>> {
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
