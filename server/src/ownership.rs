//! Ownership of repositories: each project repository belongs to exactly one data directory.

use std::path::Path;

use longhaul_activities::git::{self, DataDirectory, Ownership};
use longhaul_engine::{Failure, RunId, StoreError};
use longhaul_workflows::contracts::ProjectRef;

use crate::advice;
use crate::lock_state::LockState;
use crate::request::RequestError;
use crate::service::Service;

impl Service {
    /// Claims the repository of a project for this data directory. `take_over` claims it from
    /// another directory that no process runs. The error explains why the project cannot run.
    pub(crate) async fn own(
        &self,
        project: &ProjectRef,
        take_over: bool,
    ) -> Result<(), RequestError> {
        let failed = |failure: Failure| RequestError::Failed { reason: failure.message };
        let root = Path::new(&project.root);
        let ours = self.data_directory().map_err(failed)?;
        if take_over && let Some(other) = git::other_owner(root, &ours).await.map_err(failed)? {
            let standing = LockState::of(&other.path).await;
            if let Ok(LockState::Owned { by, .. }) = standing {
                let other = other.path.display();
                let reason = format!(
                    "process {by} runs the log in {other}, to which {} belongs: end it first",
                    project.root
                );
                return Err(RequestError::Refused { reason });
            }
        }
        match git::own(root, &ours, take_over).await.map_err(failed)? {
            Ownership::Ours => Ok(()),
            Ownership::Other(other) => Err(RequestError::refused(belongs_to(root, &other, &ours))),
        }
    }

    /// The reason why this data directory may not change the repository of a run: another one owns
    /// it.
    pub(crate) async fn not_owned(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let Ok(project) = RunId::new(run.root()) else { return Ok(None) };
        let Some(root) = crate::head::known_root(&*self.store, &project).await? else {
            return Ok(None);
        };
        let Ok(ours) = self.data_directory() else { return Ok(None) };
        let root = Path::new(&root);
        // Without a repository there is nothing to protect.
        let other = git::other_owner(root, &ours).await.ok().flatten();
        Ok(other.map(|other| belongs_to(root, &other, &ours)))
    }

    fn data_directory(&self) -> Result<DataDirectory, Failure> {
        DataDirectory::at(self.log.directory())
    }
}

fn belongs_to(root: &Path, other: &DataDirectory, ours: &DataDirectory) -> String {
    let word = advice::quoted(&root.to_string_lossy());
    let directory = advice::quoted(&other.path.to_string_lossy());
    let take_over = advice::command(["run", "--take-over", &root.to_string_lossy()]);
    let root = root.display();
    let other = other.path.display();
    let ours = ours.path.display();
    format!(
        "{root} belongs to the log in {other}, and its features would be worked on twice with the \
         one in {ours}; run it with `--data-dir {directory}`. If that log is gone, or was restored \
         here, {take_over}. If {root} is a copy of a repository, \
         `git -C {word} config --remove-section longhaul` makes it a project of its own"
    )
}
