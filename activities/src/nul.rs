//! NUL characters in settings: no program, variable or file name can have one, so they are refused
//! when a file is read, and not when a session begins.

use std::fmt::Display;

use serde_json::Value;

/// The error for settings in TOML that have a NUL character, which needs an escape there.
///
/// # Errors
/// If there is one; the text names the setting.
pub(crate) fn refuse_in_toml(text: &str) -> Result<(), String> {
    if !text.contains('\\') {
        return Ok(());
    }
    // The reader of the settings reports text that is not TOML.
    toml::from_str::<Value>(text).map_or(Ok(()), |settings| refuse(&settings))
}

/// The error for settings that have a NUL character.
///
/// # Errors
/// If there is one; the text names the setting.
pub fn refuse(settings: &Value) -> Result<(), String> {
    let Some(place) = place_of_nul(settings) else { return Ok(()) };
    let place = place.replace('\0', "\\u0000");
    Err(format!("`{place}` has a NUL character (`\\u0000`): remove it"))
}

/// The path of the first text or key with a NUL character.
fn place_of_nul(value: &Value) -> Option<String> {
    let below = |key: &dyn Display, value: &Value| match place_of_nul(value)? {
        rest if rest.is_empty() || rest.starts_with('[') => Some(format!("{key}{rest}")),
        rest => Some(format!("{key}.{rest}")),
    };
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(index, value)| below(&format!("[{}]", index + 1), value)),
        Value::Object(values) => values.iter().find_map(|(key, value)| {
            if key.contains('\0') { Some(key.clone()) } else { below(key, value) }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &str, expected: &str) {
        let found = refuse_in_toml(settings).err().unwrap_or_default();
        assert_eq!(found.split(" has ").next().unwrap(), expected, "{settings}");
    }

    #[test]
    fn a_nul_character_is_named_with_its_setting() {
        check("[agent]\ncommand = [\"a\", \"b\\n\"]", "");
        check("[agent]\ncommand = [\"a\", \"\\u0000\"]", "`agent.command[2]`");
        check("[agent.env]\nKEY = \"\\U00000000\"", "`agent.env.KEY`");
        check("[agent.env]\n\"K\\u0000\" = \"v\"", "`agent.env.K\\u0000`");
        check("[[gate]]\nname = \"x\\u0000\"", "`gate[1].name`");
        check("broken = \\", "");
    }
}
