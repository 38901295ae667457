//! Single lines, in exactly the form in which they are written.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::history_file::line::{reason, shown};

/// A value of the frozen types as one line.
pub(super) fn json_of<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the frozen types have a JSON form")
}

/// The value of a line. One that says the same in other bytes is refused: it would be written otherwise again.
pub(super) fn read<T: Serialize + DeserializeOwned>(what: &str, line: &str) -> Result<T, String> {
    let value =
        serde_json::from_str(line).map_err(|error| format!("not {what}, but {}: {}", shown(line), reason(&error)))?;
    if json_of(&value) == line {
        return Ok(value);
    }
    Err(format!("{what} is written otherwise than this version does: {}", shown(line)))
}
