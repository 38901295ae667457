//! Identifiers of runs, positions, messages and commands.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of a run: one execution of a workflow. Readable, and chosen by the caller, so that a
/// repeated start joins the run.
///
/// At most [`RunId::MAX_LEN`] bytes of ASCII letters, digits and `. _ - / # @`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// An invalid run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be a run id: {reason}")]
pub struct InvalidRunId {
    text: String,
    reason: &'static str,
}

impl RunId {
    /// The longest id, in bytes.
    pub const MAX_LEN: usize = 200;

    /// Validates a string as an id.
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

    /// The id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the run `root` or one below it: `shop/login/1` is within `shop/login`, and
    /// not within `shop/log`.
    pub fn is_within(&self, root: &str) -> bool {
        self.0.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The first part of the id: the root run, above all others.
    pub fn root(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The id without its last part: `shop/login/1` for `shop/login/1/2`.
    pub fn above(&self) -> Option<Self> {
        let (above, _) = self.0.rsplit_once('/')?;
        Some(Self(above.to_owned()))
    }

    /// The last part of the id as a number: 2 for `shop/login/1/2`.
    pub fn number(&self) -> Option<u32> {
        let last = self.0.rsplit('/').next()?;
        last.parse().ok().filter(|number: &u32| number.to_string() == last)
    }

    /// The id with another last part: `shop/login/1/3`.
    pub fn with_number(&self, number: u32) -> Option<Self> {
        Self::new(format!("{}/{number}", self.above()?)).ok()
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

/// The position of an event in the history of its run, counted from zero without gaps.
pub type Position = u64;

/// The sequence number of a message in a mailbox: increasing, never reused.
pub type MessageSeq = u64;

/// The slot of an event: the command of the segment that it answers, and for `all` the call of that
/// command.
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
    pub(crate) const MAX_CALLS: usize = u16::MAX as usize;

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
