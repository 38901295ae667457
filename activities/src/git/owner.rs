//! The data directory that a repository belongs to: two of them would work on its features twice,
//! and pay for it.
//!
//! The repository's own configuration names it, beside the id of the project. A data directory has
//! an id of its own, so that one that was moved is told from another one, and one that was copied
//! from the original.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_engine::Failure;

use super::command::Git;
use super::files;
use super::repository::common_dir;

/// The setting that names the owner: `<id> <path>`.
const OWNER: &str = "longhaul.owner";
/// The file of a data directory that holds its id.
const ID_FILE: &str = "id";
/// Locked while the setting is read, compared and written. No name of a lock of git's, which would
/// count as left behind.
const LOCK: &str = "longhaul-owner";
/// How often the lock is tried, with a pause of [`PAUSE`] between.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// A data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirectory {
    id: String,
    /// Where it is.
    pub path: PathBuf,
}

/// How a repository stands to a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// It belongs to it.
    Ours,
    /// It belongs to another one.
    Other(DataDirectory),
}

impl DataDirectory {
    /// The data directory at a path; it gets an id the first time. It must be open, so that nobody
    /// else does the same.
    ///
    /// # Errors
    /// If its id can be neither read nor written.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        let path = files::canonical(path)?;
        if let Some(id) = id_of(&path) {
            return Ok(Self { id, path });
        }
        let id = uuid::Uuid::new_v4().to_string();
        files::write_durably(&path.join(ID_FILE), id.as_bytes())?;
        Ok(Self { id, path })
    }

    fn parse(text: &str) -> Option<Self> {
        let (id, path) = text.split_once(' ')?;
        Some(Self { id: id.to_owned(), path: PathBuf::from(path) })
    }

    /// Whether this one is `recorded`, or took its place: it was moved here, or made anew where
    /// that one was.
    fn succeeds(&self, recorded: &Self) -> bool {
        let is_there = id_of(&recorded.path).as_ref() == Some(&recorded.id);
        *self == *recorded || (self.id == recorded.id || self.path == recorded.path) && !is_there
    }
}

impl std::fmt::Display for DataDirectory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.id, self.path.display())
    }
}

fn id_of(path: &Path) -> Option<String> {
    let bytes = files::read(&path.join(ID_FILE)).ok().flatten()?;
    Some(String::from_utf8(bytes).ok()?.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The data directory that a repository belongs to, if it belongs to another one than this. Changes
/// nothing.
///
/// # Errors
/// If git fails.
pub async fn other_owner(
    root: &Path,
    ours: &DataDirectory,
) -> Result<Option<DataDirectory>, Failure> {
    let recorded = Git::at(root).args(["config", "--local", "--get", OWNER]).find().await?;
    let recorded = recorded.and_then(|text| DataDirectory::parse(&text));
    Ok(recorded.filter(|recorded| !ours.succeeds(recorded)))
}

/// Makes a repository belong to a data directory, unless it belongs to another one. `take_over`: in
/// any case.
///
/// # Errors
/// If git fails, or another process holds the lock for long.
pub async fn own(root: &Path, ours: &DataDirectory, take_over: bool) -> Result<Ownership, Failure> {
    let _lock = lock(&common_dir(root).await?).await?;
    if !take_over && let Some(other) = other_owner(root, ours).await? {
        return Ok(Ownership::Other(other));
    }
    let value = ours.to_string();
    let recorded = Git::at(root).args(["config", "--local", "--get", OWNER]).find().await?;
    if recorded.as_ref() != Some(&value) {
        Git::at(root).args(["config", "--local", OWNER, &value]).run().await?;
    }
    Ok(Ownership::Ours)
}

/// The lock is released when the file is dropped, also by a process that dies.
async fn lock(common: &Path) -> Result<File, Failure> {
    let path = common.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| files::failed("open", &path, &error))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(files::failed("lock", &path, &error));
            }
        }
    }
    Err(Failure::retryable(format!(
        "another process holds {}; end it, or try again",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(place: &Path, name: &str) -> PathBuf {
        let path = place.join(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[tokio::test]
    async fn a_repository_belongs_to_one_data_directory() {
        let place = tempfile::tempdir().unwrap();
        let repository = directory(place.path(), "repository");
        Git::at(&repository).args(["init", "--quiet"]).run().await.unwrap();
        let one = DataDirectory::at(&directory(place.path(), "one")).unwrap();
        let two = DataDirectory::at(&directory(place.path(), "two")).unwrap();
        assert_eq!(own(&repository, &one, false).await, Ok(Ownership::Ours));
        assert_eq!(own(&repository, &one, false).await, Ok(Ownership::Ours));
        assert_eq!(own(&repository, &two, false).await, Ok(Ownership::Other(one.clone())));

        // Moved, it is the same; the copy of it is another one.
        let moved = place.path().join("moved");
        std::fs::rename(&one.path, &moved).unwrap();
        let moved = DataDirectory::at(&moved).unwrap();
        assert_eq!(own(&repository, &moved, false).await, Ok(Ownership::Ours));
        let copy = directory(place.path(), "copy");
        std::fs::copy(moved.path.join(ID_FILE), copy.join(ID_FILE)).unwrap();
        let copy = DataDirectory::at(&copy).unwrap();
        assert_eq!(own(&repository, &copy, false).await, Ok(Ownership::Other(moved.clone())));

        // Made anew in its place, it is lost for certain; elsewhere only a person can say so.
        std::fs::remove_file(moved.path.join(ID_FILE)).unwrap();
        assert_eq!(own(&repository, &two, false).await, Ok(Ownership::Other(moved.clone())));
        let anew = DataDirectory::at(&moved.path).unwrap();
        assert_eq!(own(&repository, &anew, false).await, Ok(Ownership::Ours));
        assert_eq!(own(&repository, &two, true).await, Ok(Ownership::Ours));
        assert_eq!(own(&repository, &anew, false).await, Ok(Ownership::Other(two)));
    }

    #[tokio::test]
    async fn of_two_that_come_at_once_one_is_the_owner() {
        let place = tempfile::tempdir().unwrap();
        let repository = directory(place.path(), "repository");
        Git::at(&repository).args(["init", "--quiet"]).run().await.unwrap();
        let all = ["one", "two", "three", "four"].map(|name| directory(place.path(), name));
        let all = all.map(|path| DataDirectory::at(&path).unwrap());
        let [one, two, three, four] = &all;
        let own = |ours| own(&repository, ours, false);
        let (one, two, three, four) = tokio::join!(own(one), own(two), own(three), own(four));
        let owners =
            [one, two, three, four].into_iter().filter(|owned| *owned == Ok(Ownership::Ours));
        assert_eq!(owners.count(), 1);
    }
}
