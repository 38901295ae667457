//! Errors, shown under the line that they are about.

use crate::error::Error;

/// The line, a caret under the place, and the message.
pub fn render(_line: &str, _error: &Error) -> String {
    "not implemented".to_owned()
}
