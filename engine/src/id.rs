//! The names of things: runs, workflows, positions, messages.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A run: one execution of a workflow. Readable, and chosen by the caller that starts it, so that
/// starting twice is joining.
///
/// At most [`RunId::MAX_LEN`] bytes of ASCII letters, digits and `. _ - / # @`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// Why a text cannot be the id of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be a run id: {reason}")]
pub struct InvalidRunId {
    text: String,
    reason: &'static str,
}

impl RunId {
    /// The longest id, in bytes.
    pub const MAX_LEN: usize = 200;

    /// Checks and takes a text as an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidRunId> {
        let text = text.into();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/#@".contains(&byte);
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.len() > Self::MAX_LEN {
            "it is longer than 200 bytes"
        } else if !text.bytes().all(allowed) {
            "only ASCII letters, digits and . _ - / # @ are allowed"
        } else {
            return Ok(Self(text));
        };
        Err(InvalidRunId { text, reason })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the run `root` or one below it: `shop/login/1` is within `shop/login`, and
    /// not within `shop/log`.
    pub fn is_within(&self, root: &str) -> bool {
        self.0.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The first part of the id: the run that all others of it are below.
    pub fn root(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

impl TryFrom<String> for RunId {
    type Error = InvalidRunId;
    fn try_from(text: String) -> Result<Self, InvalidRunId> {
        Self::new(text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The place of an event in the history of its run, counted from zero without gaps.
pub type Position = u64;

/// The order of a message in a mailbox: growing, never reused while the store lives.
pub type MessageSeq = u64;

/// Which command of the current segment of a history an event answers, and for `all` which of its
/// calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The number of the command, counted from zero since the segment began.
    pub command: u32,
    /// The number of the call within the command.
    pub call: u16,
    /// How many calls the command has.
    pub calls: u16,
}

impl Slot {
    /// The most calls of one command.
    pub const MAX_CALLS: usize = u16::MAX as usize;

    /// The slot of a command with one call.
    pub const fn only(command: u32) -> Self {
        Self { command, call: 0, calls: 1 }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.command, self.call)
    }
}
