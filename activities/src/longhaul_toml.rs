//! Reads `longhaul.toml`: the settings of a project, and the variables of its agent.

use std::collections::BTreeMap;
use std::path::Path;

use longhaul_engine::Failure;
use longhaul_workflows::settings::{EnvSource, Settings};

use crate::files::placed::{self, LONGEST, LONGEST_SETTINGS, Links};
use crate::{machine, nul};

/// The settings file of a project.
pub const SETTINGS_FILE: &str = "longhaul.toml";

/// The failure code for a missing `longhaul.toml`.
pub const NO_SETTINGS: &str = "no_settings";

/// Reads `longhaul.toml`.
pub fn settings(root: &Path) -> Result<Settings, Failure> {
    let path = root.join(SETTINGS_FILE);
    let Some(text) = read(root, SETTINGS_FILE, LONGEST_SETTINGS)? else {
        let missing =
            Failure::terminal(format!("there is no {SETTINGS_FILE} in {}", root.display()));
        return Err(missing.with_code(NO_SETTINGS));
    };
    let settings: Settings =
        toml::from_str(&text).map_err(|error| Failure::terminal(wrong(&path, &text, &error)))?;
    let refused = |error| Failure::terminal(format!("{}: {error}", path.display()));
    nul::refuse_in_toml(&text).map_err(refused)?;
    match settings.problem().or_else(|| hides_root(root, &settings)) {
        Some(problem) => Err(refused(problem)),
        None => Ok(settings),
    }
}

/// A directory of held-out checks that contains the repository: agents could not see their work.
fn hides_root(root: &Path, settings: &Settings) -> Option<String> {
    let named = settings.project.hidden_checks.as_ref()?;
    let hidden = root.join(named).canonicalize().ok()?;
    let root = root.canonicalize().ok()?;
    root.starts_with(hidden).then(|| {
        format!("`hidden_checks`: `{named}` contains the repository; name a directory of its own")
    })
}

/// The error in a settings file, with its line number. The line is not quoted: it may hold a
/// secret, and failures are recorded.
fn wrong(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let line = |span: std::ops::Range<usize>| {
        let before = text.get(..span.start).unwrap_or_default();
        format!(" line {}:", before.matches('\n').count() + 1)
    };
    let line = error.span().map(line).unwrap_or_default();
    let message = error.message().trim_end();
    let is_list =
        message.starts_with("invalid type: string") && message.ends_with("expected a sequence");
    let advice = if is_list { "; write it as a list, such as [\"agent1\"]" } else { "" };
    format!("{}:{line} {message}{advice}", path.display())
}

/// The longest value of a variable.
const LONGEST_VALUE: u64 = 64 * 1024;

/// The values of a session's variables, read now. A variable that `longhaul.toml` no longer sets is
/// omitted.
///
/// # Errors
/// If a source cannot be read. The message names the variable and the source, never a
/// value.
pub(crate) fn agent_env(
    root: &Path,
    wanted: &BTreeMap<String, EnvSource>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut set = None;
    let mut found = BTreeMap::new();
    for (name, source) in wanted {
        let value = match source {
            EnvSource::Settings(_) => {
                if set.is_none() {
                    set = Some(values(root)?);
                }
                set.as_ref().and_then(|set| set.get(name)).cloned()
            }
            EnvSource::File(file) => Some(value_in(&root.join(file)).map_err(|error| {
                let path = root.join(file);
                Failure::terminal(format!(
                    "cannot read the variable `{name}` from {}: {error}",
                    path.display()
                ))
            })?),
            EnvSource::Env(other) => Some(std::env::var(other).map_err(|_| {
                Failure::terminal(format!(
                    "the variable `{name}` is to be that of `{other}`, which is not set in the \
                     process that runs the log"
                ))
            })?),
        };
        found.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(found)
}

/// The values that `[agent] env` of `longhaul.toml` sets.
fn values(root: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let path = root.join(SETTINGS_FILE);
    let Some(text) = read(root, SETTINGS_FILE, LONGEST)? else { return Ok(BTreeMap::new()) };
    // The file may be half-written at this moment.
    let table: toml::Table =
        toml::from_str(&text).map_err(|error| Failure::retryable(wrong(&path, &text, &error)))?;
    let variables =
        table.get("agent").and_then(|agent| agent.get("env")).and_then(toml::Value::as_table);
    let value =
        |(name, value): (&String, &toml::Value)| Some((name.clone(), value.as_str()?.to_owned()));
    Ok(variables.into_iter().flatten().filter_map(value).collect())
}

/// The content of a file, without a final newline.
fn value_in(path: &Path) -> Result<String, String> {
    let text = placed::read_text(path, Links::Followed, LONGEST_VALUE)
        .map_err(|error| error.to_string())?;
    let text = text.ok_or("there is no such file")?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
}

pub(crate) fn read(root: &Path, file: &str, limit: u64) -> Result<Option<String>, Failure> {
    let path = root.join(file);
    placed::read_text(&path, Links::Within(root), limit)
        .map_err(|error| machine::unreadable(&error, &path, Failure::terminal))
}
