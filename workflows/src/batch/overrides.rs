//! Settings of a batch that override the `longhaul.toml` of a project.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::settings::{Settings, literal_env};

/// Settings by their names in `longhaul.toml`, only the overridden ones. They are recorded, so the
/// variables of an agent are sources, never values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Overrides(Map<String, Value>);

impl Overrides {
    /// These settings.
    pub fn new(settings: Map<String, Value>) -> Self {
        Self(settings)
    }

    /// Whether nothing is overridden.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an override by its path: `["project", "parallel"]`.
    pub fn set(&mut self, path: [&str; 2], value: Value) {
        merge(
            &mut self.0,
            Map::from_iter([(
                path[0].to_owned(),
                Value::from(Map::from_iter([(path[1].to_owned(), value)])),
            )]),
        );
    }

    /// Refuses values of environment variables: overrides are recorded.
    ///
    /// # Errors
    /// The variable with a value, and the remedy.
    pub fn check(&self) -> Result<(), String> {
        match self.0.get("agent").and_then(literal_env) {
            None => Ok(()),
            Some(name) => Err(format!(
                "env: the value of `{name}` would be recorded in the log; write {name} = {{ file = \"PATH\" }} or {name} = \
                 {{ env = \"NAME\" }} (a variable of the process that runs the log): it is read when a session starts"
            )),
        }
    }

    /// The settings with these overrides applied.
    ///
    /// # Errors
    /// If there is no such setting, or the value is invalid.
    pub fn apply(&self, settings: Settings) -> Result<Settings, String> {
        if self.is_empty() {
            return Ok(settings);
        }
        self.check()?;
        let Ok(Value::Object(mut merged)) = serde_json::to_value(settings) else {
            return Err("settings are no table".into());
        };
        merge(&mut merged, self.0.clone());
        serde_json::from_value(Value::Object(merged))
            .map_err(|error| format!("the settings of the batch: {error}"))
    }
}

/// Merges tables; replaces everything else.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::EnvSource;
    use serde_json::json;

    #[test]
    fn what_is_set_counts_and_the_rest_stays() {
        let mut overrides = Overrides::default();
        overrides.set(["project", "parallel"], json!(2));
        overrides.set(["agent", "env"], json!({ "A": { "env": "OTHER" } }));
        let mut settings = Settings::default();
        settings.agent.env.insert("B".into(), EnvSource::SETTINGS);
        let merged = overrides.apply(settings.clone()).unwrap();
        assert_eq!(
            (merged.project.parallel, merged.agent.env.len(), merged.limits.clone()),
            (2, 2, settings.limits)
        );

        overrides.set(["limits", "patience"], json!(1));
        assert!(overrides.apply(Settings::default()).unwrap_err().contains("patience"));
    }

    #[test]
    fn values_of_variables_are_refused() {
        let mut overrides = Overrides::default();
        overrides.set(["agent", "env"], json!({ "KEY": "s3cret" }));
        for error in
            [overrides.check().unwrap_err(), overrides.apply(Settings::default()).unwrap_err()]
        {
            assert!(
                error.contains("`KEY` would be recorded") && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
