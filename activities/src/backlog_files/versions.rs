//! Detects edits of the list and the settings.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use longhaul_engine::Failure;
use longhaul_workflows::backlog::FeatureId;

use super::{OTHER_LIST_FILE, TASKS_FILE, find_list};
use crate::longhaul_toml::{SETTINGS_FILE, settings};

/// The least age of a file whose stamp is trusted: a second edit within the resolution of its time
/// would leave the stamp as it is.
const SETTLED: Duration = Duration::from_secs(1);

/// The versions of the files from which a project was read.
#[derive(Debug, Clone)]
pub struct FileVersions {
    list_file: String,
    files: Vec<Stamp>,
}

/// The inode, the length and the time of a file; `None`: it does not exist.
type Stamp = Option<(u64, u64, SystemTime)>;

impl FileVersions {
    /// The versions now; `None` if one of them is so young that a further edit could go unnoticed.
    /// `begun` is a time before the files were read.
    pub fn of(root: &Path, list_file: &str, begun: SystemTime) -> Option<Self> {
        let files = stamps(root, list_file);
        let is_settled = |stamp: &Stamp| {
            stamp.is_none_or(|(.., at)| begun.duration_since(at).is_ok_and(|age| age > SETTLED))
        };
        let list_file = list_file.to_owned();
        files.iter().all(is_settled).then_some(Self { list_file, files })
    }

    /// Whether no file has changed.
    pub fn is_current(&self, root: &Path) -> bool {
        self.files == stamps(root, &self.list_file)
    }
}

fn stamps(root: &Path, list_file: &str) -> Vec<Stamp> {
    let stamp = |file| {
        let found = std::fs::metadata(root.join(file)).ok()?;
        Some((found.ino(), found.len(), found.modified().ok()?))
    };
    [SETTINGS_FILE, list_file, OTHER_LIST_FILE, TASKS_FILE].into_iter().map(stamp).collect()
}

/// The versions of the features in the list of a project. Clones share what was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListedVersions(Arc<Mutex<Option<Listed>>>);

#[derive(Debug)]
struct Listed {
    root: PathBuf,
    files: FileVersions,
    features: HashMap<FeatureId, String>,
}

impl ListedVersions {
    /// Whether the list and the settings have another version of a feature now. Files that cannot
    /// be read, and a list without the feature, have none.
    pub(crate) async fn is_edited(&self, root: &Path, feature: &FeatureId, known: &str) -> bool {
        let listed = self.clone();
        let root = root.to_owned();
        let feature = feature.clone();
        let now = tokio::task::spawn_blocking(move || listed.version(&root, &feature)).await;
        now.ok().flatten().is_some_and(|now| now != known)
    }

    fn version(&self, root: &Path, feature: &FeatureId) -> Option<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = &*known
            && listed.root == root
            && listed.files.is_current(root)
        {
            return listed.features.get(feature).cloned();
        }
        let begun = SystemTime::now();
        let (list_file, mut features) = read(root).ok()?;
        let version = features.get(feature).cloned();
        *known = FileVersions::of(root, &list_file, begun).map(|files| {
            features.shrink_to_fit();
            Listed { root: root.to_owned(), files, features }
        });
        version
    }
}

fn read(root: &Path) -> Result<(String, HashMap<FeatureId, String>), Failure> {
    let settings = settings(root)?;
    let list = find_list(root, &settings)?;
    let version = |feature: &longhaul_workflows::backlog::Feature| {
        (feature.id.clone(), feature.version(&settings.gates, &settings.baseline))
    };
    Ok((list.file, list.features.iter().map(version).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_edit_is_seen_at_once_and_a_state_is_no_edit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let list = |feature: &str| {
            std::fs::write(root.join("feature_list.json"), format!("[{feature}]")).unwrap();
        };
        let a = FeatureId::new("a").unwrap();
        std::fs::write(root.join(SETTINGS_FILE), "").unwrap();
        let listed = ListedVersions::default();
        assert!(!listed.is_edited(root, &a, "").await, "there is no list");
        list(r#"{"id":"a","description":"x","checks":["true"]}"#);
        let known = listed.version(root, &a).unwrap();
        assert!(!listed.is_edited(root, &a, &known).await);
        list(r#"{"id":"a","description":"x","checks":["true"],"passes":true,"priority":3}"#);
        assert!(!listed.is_edited(root, &a, &known).await);
        list(r#"{"id":"a","description":"x","checks":["fals"],"passes":true,"priority":3}"#);
        assert!(listed.is_edited(root, &a, &known).await);
        list("");
        assert!(!listed.is_edited(root, &a, &known).await, "it is removed");
        list(r#"{"id":"a","description":"x","checks":["true"]}"#);
        let gate = "[[gate]]\nname = \"lint\"\nrun = \"true\"\n";
        std::fs::write(root.join(SETTINGS_FILE), gate).unwrap();
        assert!(listed.is_edited(root, &a, &known).await);
    }
}
