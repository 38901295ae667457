//! Moved projects: histories record the path that a project had when they began.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::ProjectRef;

use crate::git::GitHandlers;
use crate::git::repository::known_project_id;

impl GitHandlers {
    /// Registers the current path of a project, which overrides the recorded one.
    pub fn is_at(&self, project: &ProjectRef) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert(project.id.clone(), project.root.clone().into());
    }

    /// The current path of a project if registered, else the recorded one.
    pub(crate) fn root_of(&self, project: &ProjectRef) -> PathBuf {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&project.id).cloned().unwrap_or_else(|| PathBuf::from(&project.root))
    }

    /// Reconnects the work trees of a moved project to its repository: they borrow objects from it.
    pub async fn follow_move(&self, project: &ProjectRef) -> Result<(), Failure> {
        let repository = self.repository(project).await?;
        repository.trees().iter().try_for_each(|tree| repository.borrow_objects(tree))
    }
}

/// Whether the repository at a path has this project id: a second one with it is a copy.
pub async fn carries_id(root: &Path, id: &str) -> bool {
    root.join(".git").exists() && known_project_id(root).await.ok().flatten().as_deref() == Some(id)
}
