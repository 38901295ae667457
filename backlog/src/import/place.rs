//! Places in an imported file.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// A line, a JSON pointer, or a pointer within a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Place {
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// As in RFC 6901; within the line, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

impl Place {
    /// A line, counted from 1.
    pub(super) fn line(line: usize) -> Self {
        Self { line: Some(line), pointer: None }
    }

    /// The root of a JSON document.
    pub(super) fn document() -> Self {
        Self { line: None, pointer: Some(String::new()) }
    }

    /// The place below a key or an index.
    pub(super) fn below(&self, key: impl fmt::Display) -> Self {
        let key = key.to_string().replace('~', "~0").replace('/', "~1");
        let pointer = format!("{}/{key}", self.pointer.as_deref().unwrap_or_default());
        Self { line: self.line, pointer: Some(pointer) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.pointer.as_deref()) {
            (Some(line), Some(pointer)) => write!(formatter, "line {line} {pointer}"),
            (Some(line), None) => write!(formatter, "line {line}"),
            (None, Some("") | None) => formatter.write_str("the document"),
            (None, Some(pointer)) => formatter.write_str(pointer),
        }
    }
}
