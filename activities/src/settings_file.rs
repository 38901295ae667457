//! Files in the data directory in which a user states facts, such as prices.

use std::io::ErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::nul;

/// Reads a file that may be absent.
///
/// # Errors
///
/// The file cannot be read, or is wrong; the text names the line.
pub(crate) fn load<T: DeserializeOwned + Default>(
    path: &Path,
    checked: impl FnOnce(T) -> Result<T, String>,
) -> Result<T, String> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(format!("{shown} cannot be read: {error}")),
    };
    let read = toml::from_str::<T>(&text).map_err(|error| error.to_string());
    let read = read.and_then(|read| nul::refuse_in_toml(&text).map(|()| read));
    read.and_then(checked).map_err(|error| format!("{shown} is wrong: {}", error.trim()))
}
