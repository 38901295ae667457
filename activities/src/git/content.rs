//! The content of a commit as checks see it: equal content needs no second check.

use longhaul_engine::Failure;
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;

use super::GitHandlers;
use super::list;
use super::objects::Entries;
use super::refs::Repository;

/// Any fixed time: the mark of a feature in the list has a time, which does not count.
const ANY_TIME: &str = "2000-01-01T00:00:00Z";

impl GitHandlers {
    /// A digest of the content of a commit. The mark of this feature in the list does not count:
    /// Longhaul writes it when the feature has passed.
    pub(crate) async fn content_of(
        &self,
        project: &ProjectRef,
        commit: &str,
        list_file: &str,
        feature: &FeatureId,
    ) -> Result<blake3::Hash, Failure> {
        self.repository(project).await?.content_of(commit, list_file, feature).await
    }
}

impl Repository {
    async fn content_of(
        &self,
        commit: &str,
        list_file: &str,
        feature: &FeatureId,
    ) -> Result<blake3::Hash, Failure> {
        let mut digest = blake3::Hasher::new();
        let mut tree = Some(self.tree_of(commit).await?);
        for part in list_file.split('/') {
            let mut entries = self.entries(tree.take().as_deref()).await?;
            let here = entries.remove(part.as_bytes());
            add(&mut digest, &entries);
            match here {
                Some(entry) if entry.is_directory() => tree = Some(entry.object),
                Some(entry) => {
                    let text = self.blob(&entry.object).await?;
                    let marked = list::with_passed(&text, feature, ANY_TIME);
                    digest.update(entry.mode.as_bytes());
                    digest.update(marked.map_or(text, String::into_bytes).as_slice());
                }
                None => {}
            }
        }
        add(&mut digest, &self.entries(tree.as_deref()).await?);
        Ok(digest.finalize())
    }
}

fn add(digest: &mut blake3::Hasher, entries: &Entries) {
    digest.update(&(entries.len() as u64).to_le_bytes());
    for (name, entry) in entries {
        digest.update(&(name.len() as u64).to_le_bytes()).update(name);
        digest.update(entry.mode.as_bytes()).update(entry.object.as_bytes());
    }
}
