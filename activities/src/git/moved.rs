//! Projects that were moved: histories name the place where a project was when they began.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::ProjectRef;

use super::GitHandlers;
use super::repository::known_project_id;

impl GitHandlers {
    /// From now on, a project is at this place, wherever a history says that it is.
    pub fn is_at(&self, project: &ProjectRef) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert(project.id.clone(), project.root.clone().into());
    }

    /// Where a project is now, as far as that is known; else where the history says.
    pub fn root_of(&self, project: &ProjectRef) -> PathBuf {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&project.id).cloned().unwrap_or_else(|| PathBuf::from(&project.root))
    }

    /// Joins the work trees of a project that was moved to its repository again: they borrow
    /// objects from it.
    pub async fn follow_move(&self, project: &ProjectRef) -> Result<(), Failure> {
        let repository = self.repository(project).await?;
        repository.trees().iter().try_for_each(|tree| repository.borrow_objects(tree))
    }
}

/// Whether the repository at a place carries this id: then another one that carries it, too, is a
/// copy.
pub async fn carries_id(root: &Path, id: &str) -> bool {
    root.join(".git").exists() && known_project_id(root).await.ok().flatten().as_deref() == Some(id)
}
