//! Errors of writing the files for people.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_engine::StoreError;

use super::placed::Unreadable;

/// The cause of an unwritten file, with its path. The other files are still written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The events could not be read.
    #[error("the files of the project are not up to date: {0}")]
    Log(#[from] StoreError),
    /// The operating system refused an operation.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A symbolic link at the path of a file or directory of Longhaul's.
    #[error("{} is a symbolic link, and Longhaul does not write through it; remove it",
        .0.display())]
    Link(PathBuf),
    /// A file of another type at the path.
    #[error("{} is not a {expected}; move it away, and Longhaul creates it", path.display())]
    NotA {
        /// The expected type.
        expected: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The feature list is outside of the project.
    #[error(
        "the feature list {} is outside of the project, and Longhaul does not write there; name a \
         file of the project as `list` under [project] in longhaul.toml", .0.display()
    )]
    Outside(PathBuf),
    /// The program is shutting down.
    #[error("the files of the project are not up to date: the program is stopping")]
    Stopping,
}

impl FilesError {
    /// Maps an I/O error of an operation on a file.
    pub(super) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let text = error.to_string();
            // A temporary file has another name each time; a report that changes is repeated.
            let source = match text.split_once(" at path \"") {
                Some((cause, _)) => io::Error::new(error.kind(), cause),
                None => error,
            };
            Self::File { doing, path: path.to_owned(), source }
        }
    }
}

/// Keeps the first of several errors.
#[derive(Debug, Default)]
pub(super) struct FirstError(Option<FilesError>);

impl FirstError {
    /// Records a result; returns whether it was a success.
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
