//! Reading a project as it is in the user's checkout now: its settings and its feature list.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::backlog::{FeatureList, tasks_md};
use longhaul_workflows::contracts::{LoadBacklog, LoadInput, LoadedBacklog};
use longhaul_workflows::settings::Settings;

use crate::files::placed::{self, LONGEST, LONGEST_SETTINGS, Links};
use crate::git;

/// The settings file of a project.
pub const SETTINGS_FILE: &str = "longhaul.toml";
/// The checklist that is read when there is no feature list.
pub const TASKS_FILE: &str = "tasks.md";
/// The other spelling of the feature list that is met.
pub const OTHER_LIST_FILE: &str = "feature-list.json";

/// The handler of [`LoadBacklog`].
#[derive(Debug, Clone)]
pub struct ProjectReader {
    git: git::GitHandlers,
}

impl ProjectReader {
    /// A reader that finds projects where these handlers do.
    pub fn new(git: git::GitHandlers) -> Self {
        Self { git }
    }
}

#[async_trait]
impl Handler<LoadBacklog> for ProjectReader {
    async fn perform(&self, input: LoadInput, _attempt: &Attempt) -> Result<LoadedBacklog, Failure> {
        let root = self.git.root_of(&input.project);
        // Not while the checkout is moved.
        let turn = crate::files::turn_of(&root);
        let _mine = turn.lock().await;
        load(&root).await
    }
}

/// A file that git or an editor is just writing is missing or empty for a moment: only what stays wrong is wrong.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How often it has to be found wrong in the same way after the first time.
const SETTLED_AFTER: u32 = 3;

/// Reads the settings and the list of the project at `root`.
///
/// # Errors
/// Terminal failures that say which file is missing or wrong, and where.
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
    Ok(LoadedBacklog { features, settings, target, list_file, notes })
}

/// Reads `longhaul.toml`.
pub fn settings(root: &Path) -> Result<Settings, Failure> {
    let path = root.join(SETTINGS_FILE);
    let Some(text) = read(root, SETTINGS_FILE, LONGEST_SETTINGS)? else {
        let root = root.display();
        return Err(Failure::terminal(format!("there is no {SETTINGS_FILE} in {root}: run `longhaul init {root}`")));
    };
    let wrong = |error: toml::de::Error| format!("{}: {}", path.display(), error.to_string().trim_end());
    toml::from_str(&text).map_err(|error| Failure::terminal(wrong(error)))
}

fn features(
    root: &Path,
    settings: &Settings,
) -> Result<(String, Vec<longhaul_workflows::backlog::Feature>, Vec<String>), Failure> {
    let wrong = |file: &str, error: &dyn std::fmt::Display| {
        Failure::terminal(format!("{}: {error}", root.join(file).display()))
    };
    for file in [settings.project.list.as_str(), OTHER_LIST_FILE] {
        if let Some(text) = read(root, file, LONGEST)? {
            let list = FeatureList::parse(&text).map_err(|error| wrong(file, &error))?;
            let notes = list.notes().to_vec();
            return Ok((file.to_owned(), list.into_features(), notes));
        }
    }
    if let Some(text) = read(root, TASKS_FILE, LONGEST)? {
        let tasks = tasks_md::read_tasks(&text).map_err(|error| wrong(TASKS_FILE, &error))?;
        return Ok((settings.project.list.clone(), tasks.features, tasks.notes));
    }
    let (list, root) = (&settings.project.list, root.display());
    Err(Failure::terminal(format!(
        "there is no feature list in {root}: neither {list} nor {TASKS_FILE}; write one, or `longhaul feature add`"
    )))
}

fn read(root: &Path, file: &str, limit: u64) -> Result<Option<String>, Failure> {
    placed::read_text(&root.join(file), Links::Within(root), limit)
        .map_err(|error| Failure::terminal(error.to_string()))
}
