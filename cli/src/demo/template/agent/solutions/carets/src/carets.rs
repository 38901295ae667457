//! Errors, shown under the line that they are about.

use crate::error::Error;

/// The line, a caret under the place, and the message. An error without a place is only its message.
pub fn render(line: &str, error: &Error) -> String {
    let Some(at) = error.at else {
        return format!("error: {error}");
    };
    // A tab before the place must be a tab below it too.
    let shown = line.trim_end();
    let before = shown.chars().map(|c| if c == '\t' { '\t' } else { ' ' });
    let margin: String = before.chain(std::iter::repeat(' ')).take(at).collect();
    format!("{shown}\n{margin}^\nerror: {error}")
}
