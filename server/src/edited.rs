//! Detects edits of the list and the settings of a project.

use std::path::Path;
use std::time::SystemTime;

use longhaul_activities::project::{self, FileVersions};
use longhaul_engine::Payload;
use longhaul_workflows::backlog::{Feature, FeatureStatus};
use longhaul_workflows::contracts::LoadedBacklog;

/// The list and the settings of a project without the states that Longhaul writes.
#[derive(Debug)]
pub(crate) struct Edited {
    /// A digest of them, or why they are unreadable.
    pub(crate) content: Result<blake3::Hash, String>,
    /// The versions of the files that they were read from, if a further edit would be noticed.
    files: Option<FileVersions>,
}

impl Edited {
    pub(crate) async fn at(root: &Path) -> Self {
        let begun = SystemTime::now();
        let loaded = project::load(root).await.map_err(|failure| failure.message);
        let files = loaded
            .as_ref()
            .ok()
            .and_then(|loaded| FileVersions::of(root, &loaded.list_file, begun));
        let without_state = |feature| Feature {
            status: FeatureStatus::Pending,
            passes: false,
            last_tested: None,
            ..feature
        };
        let digest = |loaded: LoadedBacklog| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(Payload::of(&(&loaded.settings, &loaded.list_file)).as_bytes());
            for feature in loaded.features {
                hasher.update(Payload::of(&without_state(feature)).as_bytes());
            }
            hasher.finalize()
        };
        Self { content: loaded.map(digest), files }
    }

    /// Whether no file has changed.
    pub(crate) fn is_current(&self, root: &Path) -> bool {
        self.files.as_ref().is_some_and(|files| files.is_current(root))
    }
}
