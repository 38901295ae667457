//! `[agent] env`: names of variables and where their values come from. A value is never part of the
//! settings, so it cannot reach the log, an export or a backup; it is read when a session starts.

use std::collections::BTreeMap;

use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The source of a variable's value, read when a session starts.
///
/// In `longhaul.toml`: `NAME = "value"` ([`EnvSource::Settings`]; the value is dropped here), `NAME
/// = { file = "path" }` or `NAME = { env = "OTHER" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvSource {
    /// `[agent] env` of the project's `longhaul.toml`.
    #[serde(rename = "in")]
    Settings(SettingsFile),
    /// A file, relative to the root of the checkout. One trailing newline is ignored.
    File(String),
    /// A variable of the process that owns the log.
    Env(String),
}

/// The only file that may hold values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SettingsFile {
    /// `longhaul.toml`.
    #[serde(rename = "longhaul.toml")]
    Longhaul,
}

impl EnvSource {
    /// The value is written in `longhaul.toml`.
    pub const SETTINGS: Self = Self::Settings(SettingsFile::Longhaul);
}

/// The source as the log and outputs show it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Reference {
    #[serde(rename = "in")]
    Settings(SettingsFile),
    File(String),
    Env(String),
}

impl<'de> Deserialize<'de> for EnvSource {
    /// The error never quotes the value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Literal(Literal),
            Reference(Reference),
            Other(IgnoredAny),
        }
        match Written::deserialize(deserializer)? {
            Written::Literal(Literal) => Ok(Self::SETTINGS),
            Written::Reference(Reference::Settings(file)) => Ok(Self::Settings(file)),
            Written::Reference(Reference::File(path)) => Ok(Self::File(path)),
            Written::Reference(Reference::Env(name)) => Ok(Self::Env(name)),
            Written::Other(IgnoredAny) => Err(D::Error::custom(
                "a variable is a text, { file = \"PATH\" } or { env = \"NAME\" }",
            )),
        }
    }
}

/// A string whose content is dropped during parsing.
struct Literal;

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|_| Self)
    }
}

/// The table of variables; the error never quotes a value.
pub(super) fn map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, EnvSource>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Table {
        Table(BTreeMap<String, Entry>),
        Other(IgnoredAny),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entry {
        Source(EnvSource),
        Other(IgnoredAny),
    }
    let Table::Table(entries) = Table::deserialize(deserializer)? else {
        return Err(D::Error::custom("`env` is a table: NAME = \"value\""));
    };
    let is_no_name = |name: &String| name.is_empty() || name.contains(['=', '\0']);
    if entries.keys().any(is_no_name) {
        // The text after a `=` may be a secret.
        return Err(D::Error::custom("env: the name of a variable is empty or contains `=`"));
    }
    let source = |(name, entry)| match entry {
        Entry::Source(source) => Ok((name, source)),
        Entry::Other(IgnoredAny) => Err(D::Error::custom(format!(
            "env: `{name}` is neither a text, nor {{ file = \"PATH\" }}, nor {{ env = \"NAME\" }}"
        ))),
    };
    entries.into_iter().map(source).collect()
}

/// The first variable with a literal value in `[agent]` settings that are to be recorded, if any.
pub fn literal_env(agent: &Value) -> Option<&str> {
    let variables = agent.get("env")?.as_object()?;
    variables.iter().find(|(_, source)| !source.is_object()).map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::AgentSettings;

    fn read(env: &Value) -> Result<AgentSettings, String> {
        serde_json::from_value(json!({ "env": env })).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_is_not_kept() {
        let settings =
            read(&json!({ "KEY": "s3cret", "F": { "file": "key" }, "E": { "env": "X" } })).unwrap();
        let recorded = serde_json::to_value(&settings).unwrap();
        let expected = json!({ "KEY": { "in": "longhaul.toml" }, "F": { "file": "key" }, "E": { "env": "X" } });
        assert_eq!(recorded["env"], expected);
        assert_eq!(serde_json::from_value::<AgentSettings>(recorded).unwrap(), settings);
    }

    #[test]
    fn an_error_does_not_quote_a_value() {
        for wrong in [
            json!("s3cret"),
            json!({ "K": ["s3cret"] }),
            json!({ "K": { "s3cret": 1 } }),
            json!({ "K": 777_777 }),
            json!({ "K=s3cret": "" }),
        ] {
            let error = read(&wrong).unwrap_err();
            assert!(!error.contains("s3cret") && !error.contains("777"), "{error}");
        }
    }

    #[test]
    fn literals_in_recorded_settings_are_found() {
        assert_eq!(literal_env(&json!({ "env": { "A": { "env": "B" }, "K": "v" } })), Some("K"));
        assert_eq!(literal_env(&json!({ "env": { "A": { "file": "B" } } })), None);
        assert_eq!(literal_env(&json!({})), None);
    }
}
