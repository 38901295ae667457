//! The feature list in the user's checkout, under any of its names.

mod versions;

use std::path::Path;

use longhaul_backlog::{FeatureList, tasks_md};
use longhaul_engine::Failure;
use longhaul_workflows::backlog::Feature;
use longhaul_workflows::settings::Settings;

use crate::files::placed::{self, LONGEST, Links};
use crate::longhaul_toml::read;
use crate::machine;

pub use versions::FileVersions;
pub(crate) use versions::ListedVersions;

/// The checklist that is used when there is no feature list.
pub const TASKS_FILE: &str = "tasks.md";
/// The other common spelling of the feature list.
pub const OTHER_LIST_FILE: &str = "feature-list.json";

/// The failure code for a missing feature list.
pub const NO_LIST: &str = "no_list";

/// The list of a project.
pub(crate) struct FoundList {
    /// Its file, relative to the root.
    pub(crate) file: String,
    pub(crate) features: Vec<Feature>,
    pub(crate) notes: Vec<String>,
}

/// Reads the list of a project.
///
/// # Errors
/// Terminal failures that name the missing or invalid file and the place in it.
pub(crate) fn find_list(root: &Path, settings: &Settings) -> Result<FoundList, Failure> {
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
            let file = file.to_owned();
            return Ok(FoundList { file, features: list.into_features(), notes });
        }
    }
    if let Some(text) = read(root, TASKS_FILE, LONGEST)? {
        let tasks = tasks_md::read_tasks(&text).map_err(|error| wrong(TASKS_FILE, &error))?;
        let file = settings.project.list.clone();
        return Ok(FoundList { file, features: tasks.features, notes: tasks.notes });
    }
    let list = &settings.project.list;
    let root = root.display();
    let missing = format!("there is no feature list in {root}: neither {list} nor {TASKS_FILE}");
    Err(Failure::terminal(missing).with_code(NO_LIST))
}
