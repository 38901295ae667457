//! Why a file for people could not be brought up to date.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_engine::StoreError;

use super::placed::Unreadable;

/// What kept a file from being written, and which. The other files are written all the same.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The events could not be read.
    #[error("the files of the project are not up to date: {0}")]
    Log(#[from] StoreError),
    /// The operating system refused.
    #[error("cannot {doing} {}: {reason}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// There is a symbolic link where a file or a folder of Longhaul's own belongs.
    #[error("{} is a symbolic link, and Longhaul does not write through it; remove it, then it is made anew", .0.display())]
    Link(PathBuf),
    /// Something else is there than what belongs there.
    #[error("{} is not a {expected}; move it away, then one is made", path.display())]
    NotA {
        /// What belongs there.
        expected: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// A file that is not read as it is.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The feature list is not in the project.
    #[error(
        "the feature list {} is outside of the project, and Longhaul does not write there; name a file of the project as \
         `list` under [project] in longhaul.toml", .0.display()
    )]
    Outside(PathBuf),
    /// The program is about to end.
    #[error("the files of the project are not up to date: the program is stopping")]
    Stopping,
}

impl FilesError {
    /// Says what was tried with which file.
    pub(super) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::File { doing, path: path.to_owned(), reason: error.to_string() }
    }
}

/// Keeps the first of several errors.
#[derive(Debug, Default)]
pub(super) struct FirstError(Option<FilesError>);

impl FirstError {
    /// Takes an outcome; says whether it was a success.
    pub(super) fn take(&mut self, outcome: Result<(), FilesError>) -> bool {
        match outcome {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "a file for people is not up to date");
                self.0.get_or_insert(error);
                false
            }
        }
    }

    pub(super) fn into_result(self) -> Result<(), FilesError> {
        self.0.map_or(Ok(()), Err)
    }
}
