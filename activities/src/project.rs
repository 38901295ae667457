//! Reads a project from the user's checkout: its settings and its feature list.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_engine::{Attempt, Failure, Handler};
use longhaul_workflows::contracts::{LoadBacklog, LoadInput, LoadedBacklog};

use crate::backlog_files::{FoundList, find_list};
use crate::git;

pub use crate::backlog_files::{FileVersions, NO_LIST, OTHER_LIST_FILE, TASKS_FILE};
pub use crate::longhaul_toml::{NO_SETTINGS, SETTINGS_FILE, settings};

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
        self.git.record_held_out(&input.project, held_out.as_deref())?;
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
        let list = find_list(&own_root, &settings)?;
        Ok::<_, Failure>((settings, list))
    });
    let (settings, list) = match read.await {
        Ok(read) => read?,
        Err(error) => return Err(Failure::retryable(format!("the project was not read: {error}"))),
    };
    let target = match &settings.project.target {
        Some(target) => target.clone(),
        None => git::branch_of(root).await?,
    };
    git::refuse_own_branch(&target)?;
    let FoundList { file: list_file, features, notes } = list;
    Ok(LoadedBacklog { features, settings, target, list_file, notes, lost: Vec::new(), tip: None })
}
