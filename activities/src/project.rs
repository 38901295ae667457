//! Reads a project from the user's checkout: its settings and its feature list.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_backlog::{FeatureList, tasks_md};
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{LoadBacklog, LoadInput, LoadedBacklog};
use longhaul_workflows::settings::{EnvSource, Settings};

use crate::confine;
use crate::files::placed::{self, LONGEST, LONGEST_SETTINGS, Links};
use crate::git;
use crate::machine;
use crate::nul;

/// The settings file of a project.
pub const SETTINGS_FILE: &str = "longhaul.toml";
/// The checklist that is used when there is no feature list.
pub const TASKS_FILE: &str = "tasks.md";
/// The other common spelling of the feature list.
pub const OTHER_LIST_FILE: &str = "feature-list.json";

/// The handler of [`LoadBacklog`].
#[derive(Debug, Clone)]
pub struct ProjectReader {
    git: git::GitHandlers,
}

impl ProjectReader {
    /// A reader that finds projects by the paths of these handlers.
    pub fn new(git: git::GitHandlers) -> Self {
        Self { git }
    }
}

#[async_trait]
impl Handler<LoadBacklog> for ProjectReader {
    async fn perform(
        &self,
        input: LoadInput,
        _attempt: &Attempt,
    ) -> Result<LoadedBacklog, Failure> {
        let root = self.git.root_of(&input.project);
        // Waits for moves of the checkout to end.
        let lock = crate::files::files_lock(&root);
        let _mine = lock.lock().await;
        let mut loaded = load(&root).await?;
        let held_out = loaded.settings.project.hidden_checks.as_ref().map(|named| root.join(named));
        let data_dir = self.git.data_dir();
        confine::held_out::record(data_dir, &input.project.id, held_out.as_deref()).map_err(
            |error| {
                let message = format!("the directory of held-out checks is not recorded: {error}");
                let retryable = Failure::retryable;
                machine::failure(&error, machine::Operation::Files, data_dir, message, retryable)
            },
        )?;
        if !input.landed.is_empty() {
            loaded.tip = git::tip_of(&root, &input.target).await?;
        }
        if loaded.tip.is_some() {
            let landed: Vec<&str> = input.landed.iter().map(String::as_str).collect();
            let missing = git::commits_not_in(&root, &landed, &input.target).await?;
            loaded.lost =
                input.landed.into_iter().filter(|commit| missing.contains(commit)).collect();
        }
        Ok(loaded)
    }
}

/// The delay before a second read: a file that git or an editor is writing is missing or empty for
/// a moment.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The number of repeated reads with the same error before the error counts.
const SETTLED_AFTER: u32 = 3;

/// Reads the settings and the list of the project at `root`.
///
/// # Errors
/// Terminal failures that name the missing or invalid file and the place in it.
pub async fn load(root: &Path) -> Result<LoadedBacklog, Failure> {
    let mut found = load_now(root).await;
    let mut same = 0;
    while found.is_err() && same < SETTLED_AFTER {
        tokio::time::sleep(LOOK_AGAIN).await;
        let next = load_now(root).await;
        same = if next == found { same + 1 } else { 0 };
        found = next;
    }
    found
}

async fn load_now(root: &Path) -> Result<LoadedBacklog, Failure> {
    let own_root = root.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let settings = settings(&own_root)?;
        let found = features(&own_root, &settings)?;
        Ok::<_, Failure>((settings, found))
    });
    let (settings, (list_file, features, notes)) = match read.await {
        Ok(read) => read?,
        Err(error) => return Err(Failure::retryable(format!("the project was not read: {error}"))),
    };
    let target = match &settings.project.target {
        Some(target) => target.clone(),
        None => git::branch_of(root).await?,
    };
    git::refuse_own_branch(&target)?;
    Ok(LoadedBacklog { features, settings, target, list_file, notes, lost: Vec::new(), tip: None })
}

/// The failure code for a missing `longhaul.toml`.
pub const NO_SETTINGS: &str = "no_settings";

/// The failure code for a missing feature list.
pub const NO_LIST: &str = "no_list";

/// Reads `longhaul.toml`.
pub fn settings(root: &Path) -> Result<Settings, Failure> {
    let path = root.join(SETTINGS_FILE);
    let Some(text) = read(root, SETTINGS_FILE, LONGEST_SETTINGS)? else {
        let missing =
            Failure::terminal(format!("there is no {SETTINGS_FILE} in {}", root.display()));
        return Err(missing.with_code(NO_SETTINGS));
    };
    let settings =
        toml::from_str(&text).map_err(|error| Failure::terminal(wrong(&path, &text, &error)))?;
    nul::refuse_in_toml(&text)
        .map_err(|error| Failure::terminal(format!("{}: {error}", path.display())))?;
    Ok(settings)
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

fn features(
    root: &Path,
    settings: &Settings,
) -> Result<(String, Vec<longhaul_workflows::backlog::Feature>, Vec<String>), Failure> {
    let wrong = |file: &str, error: &dyn std::fmt::Display| {
        Failure::terminal(format!("{}: {error}", root.join(file).display()))
    };
    for file in [settings.project.list.as_str(), OTHER_LIST_FILE] {
        let path = root.join(file);
        let content = placed::read(&path, Links::Within(root), LONGEST)
            .map_err(|error| machine::unreadable(&error, &path, Failure::terminal))?;
        if let Some(content) = content {
            let list = FeatureList::from_bytes(&content).map_err(|error| wrong(file, &error))?;
            let notes = list.notes().to_vec();
            return Ok((file.to_owned(), list.into_features(), notes));
        }
    }
    if let Some(text) = read(root, TASKS_FILE, LONGEST)? {
        let tasks = tasks_md::read_tasks(&text).map_err(|error| wrong(TASKS_FILE, &error))?;
        return Ok((settings.project.list.clone(), tasks.features, tasks.notes));
    }
    let list = &settings.project.list;
    let root = root.display();
    let missing = format!("there is no feature list in {root}: neither {list} nor {TASKS_FILE}");
    Err(Failure::terminal(missing).with_code(NO_LIST))
}

fn read(root: &Path, file: &str, limit: u64) -> Result<Option<String>, Failure> {
    let path = root.join(file);
    placed::read_text(&path, Links::Within(root), limit)
        .map_err(|error| machine::unreadable(&error, &path, Failure::terminal))
}
