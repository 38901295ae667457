//! Edits the input of a run: `key=value`, where the key is a dotted path into its settings or its
//! feature.

use longhaul_engine::Payload;
use longhaul_workflows::feature::FeatureInput;
use longhaul_workflows::settings::literal_env;
use serde_json::{Value, json};

/// The brief with edited values.
///
/// # Errors
/// The error in a key or a value, as a message for the user.
pub(crate) fn edited(
    input: &FeatureInput,
    set: &[(String, String)],
) -> Result<FeatureInput, String> {
    let mut whole = plain(input);
    for (key, text) in set {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
        let value = if CHECKS.contains(&key.as_str()) { as_checks(value) } else { value };
        *place(&mut whole, key)? = value.clone();
        if let Some(name) = literal_env(&whole["settings"]["agent"]) {
            return Err(format!(
                "the value of `{name}` would be recorded in the log; use --set \
                 'settings.agent.env.{name}={{\"file\":\"PATH\"}}' or '{{\"env\":\"NAME\"}}', or \
                 [agent] env in longhaul.toml: it is read when a session starts"
            ));
        }
        let read: FeatureInput = serde_json::from_value(whole.clone()).map_err(|error| {
            let is_of_checks = CHECKS.iter().any(|checks| key.starts_with(checks));
            let shape = if is_of_checks { SHAPE } else { "" };
            format!("`{key}` cannot be {value}: {error}{shape}")
        })?;
        whole = plain(&read);
        if *place(&mut whole, key)? == Value::Null && value != Value::Null {
            return Err(unknown(key));
        }
    }
    let edited: FeatureInput = serde_json::from_value(whole).map_err(|error| error.to_string())?;
    if edited.feature.id != input.feature.id {
        return Err(
            "`feature.id` cannot change: it names the branch, the run and its work tree".into()
        );
    }
    if edited.feature.checks != input.feature.checks
        || edited.settings.gates != input.settings.gates
    {
        // `passes` must not appear next to checks that have not passed.
        return Err(
            "the checks of the list and the gates of longhaul.toml decide: edit them there; a run \
             that works on the feature takes the edit over"
                .into(),
        );
    }
    Ok(edited)
}

/// The keys that contain checks.
const CHECKS: [&str; 3] = ["feature.checks", "settings.gate", "settings.baseline"];
/// The format of a check.
const SHAPE: &str = "; checks are a list of commands, or of \
                     {\"name\": …, \"run\": COMMAND, \"timeout_seconds\": …}";

/// Converts commands to checks, named as `longhaul feature add` names them.
fn as_checks(value: Value) -> Value {
    let commands = match value {
        Value::String(command) => vec![Value::String(command)],
        Value::Array(commands) => commands,
        other => return other,
    };
    let check = |(index, command): (usize, Value)| match command {
        Value::String(run) => {
            let name = if index == 0 { "check".into() } else { format!("check {}", index + 1) };
            json!({ "name": name, "run": run })
        }
        other => other,
    };
    commands.into_iter().enumerate().map(check).collect()
}

fn plain(input: &FeatureInput) -> Value {
    Payload::of(input).read().unwrap_or_default()
}

fn unknown(key: &str) -> String {
    format!(
        "there is no `{key}`: a key begins with `settings.` or `feature.`, such as \
         settings.limits.failed_gates"
    )
}

/// The value at a path; a missing optional field is created.
fn place<'a>(whole: &'a mut Value, key: &str) -> Result<&'a mut Value, String> {
    let (root, path) = key
        .split_once('.')
        .filter(|(root, _)| ["settings", "feature"].contains(root))
        .ok_or_else(|| unknown(key))?;
    let mut at = &mut whole[root];
    for part in path.split('.') {
        at = match at {
            Value::Object(fields) => fields.entry(part).or_insert(Value::Null),
            Value::Array(values) => part
                .parse::<usize>()
                .ok()
                .and_then(|nth| values.get_mut(nth))
                .ok_or_else(|| unknown(key))?,
            _ => return Err(unknown(key)),
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use longhaul_workflows::backlog::{Feature, FeatureId};
    use longhaul_workflows::contracts::ProjectRef;
    use longhaul_workflows::settings::Settings;

    use super::*;

    fn brief() -> FeatureInput {
        FeatureInput {
            project: ProjectRef { id: "p".into(), root: "/p".into() },
            target: "main".into(),
            feature: Feature::new(FeatureId::new("login").unwrap(), "Login"),
            settings: Settings::default(),
            list_file: "feature_list.json".into(),
            claimed: false,
            anew: false,
            called_done: false,
            may_have_landed: false,
            used: longhaul_workflows::resources::Resources::default(),
        }
    }

    fn check(key: &str, value: &str, expected: Result<&str, &str>) {
        let found = edited(&brief(), &[(key.into(), value.into())]);
        match (found, expected) {
            (Ok(found), Ok(part)) => {
                let text = Payload::of(&found).preview(usize::MAX);
                assert!(text.contains(part), "{key}: {text}");
            }
            (Err(found), Err(part)) => assert!(found.contains(part), "{key}: {found}"),
            (found, _) => panic!("{key}={value}: {found:?}"),
        }
    }

    #[test]
    fn keys_lead_into_settings_and_feature() {
        check("settings.limits.failed_gates", "9", Ok(r#""failed_gates":9"#));
        check("settings.agent.timeout", "\"2h\"", Ok(r#""timeout":7200"#));
        check("settings.agent.command", r#"["x"]"#, Ok(r#""command":["x"]"#));
        check("settings.agent.env.MODEL", r#"{"env":"M"}"#, Ok(r#""MODEL":{"env":"M"}"#));
        check("settings.agent.env.MODEL", "small", Err("`MODEL` would be recorded"));
        check("settings.agent", r#"{"env":{"MODEL":"small"}}"#, Err("`MODEL` would be recorded"));
        check("feature.description", "Build it again.", Ok("Build it again."));
        check("settings.limits.failed_gate", "9", Err("unknown field"));
        check("settings.limits.failed_gates", "many", Err("cannot be \"many\""));
        check("feature.checks", "make test", Err("the checks of the list"));
        check("settings.gate", "make test", Err("the checks of the list"));
        check(
            "settings.baseline",
            r#"["true", {"name": "lint", "run": "make lint"}]"#,
            Ok(r#""name":"check","run":"true"#),
        );
        check("feature.checks", "[1]", Err("checks are a list of commands"));
        check("feature.descriptoin", "x", Err("there is no"));
        check("feature.id", "other", Err("cannot change"));
        check("target", "x", Err("begins with"));
        check("project.root", "/", Err("begins with"));
    }
}
