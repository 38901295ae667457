//! The data directory that a repository belongs to: two of them would work on its features twice,
//! and pay for it.
//!
//! The repository's own configuration names it, beside the project id. A data directory has an id
//! of its own, which tells a moved one from another one, and a copy from the original.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_engine::Failure;

use crate::files::locks::lock_within;
use crate::git::command::Git;
use crate::git::command::directories::common_dir;
use crate::git::files;

/// The setting that names the owner: `<id> <path>`.
const OWNER: &str = "longhaul.owner";
/// The file of a data directory that holds its id.
const ID_FILE: &str = "id";
/// Locked while the setting is read, compared and written. Not named `*.lock`, which would count as
/// a stale git lock.
const LOCK: &str = "longhaul-owner";
/// How long to wait for the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirectory {
    id: String,
    /// Its path.
    pub path: PathBuf,
}

/// The relation of a repository to a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The repository belongs to it.
    Ours,
    /// The repository belongs to another one.
    Other(DataDirectory),
}

impl DataDirectory {
    /// The data directory at a path; creates its id the first time. The caller holds the
    /// directory's lock, so that only one process creates it.
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

    /// Whether this one is `recorded`, or replaces it: moved here, or created anew at its path.
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

/// The other data directory that a repository belongs to, if any. Read-only.
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

/// The lock ends when the file is dropped, also when the process dies.
async fn lock(common: &Path) -> Result<File, Failure> {
    let path = common.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| files::failed("open", &path, &error))?;
    let locked = tokio::task::spawn_blocking(|| lock_within(file, LOCK_TIMEOUT)).await;
    match locked.unwrap_or(Err(TryLockError::WouldBlock)) {
        Ok(file) => Ok(file),
        Err(TryLockError::Error(error)) => Err(files::failed("lock", &path, &error)),
        Err(TryLockError::WouldBlock) => Err(Failure::retryable(format!(
            "another process holds {}; end it, or try again",
            path.display()
        ))),
    }
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

        // A moved directory is the same; a copy of it is another one.
        let moved = place.path().join("moved");
        std::fs::rename(&one.path, &moved).unwrap();
        let moved = DataDirectory::at(&moved).unwrap();
        assert_eq!(own(&repository, &moved, false).await, Ok(Ownership::Ours));
        let copy = directory(place.path(), "copy");
        std::fs::copy(moved.path.join(ID_FILE), copy.join(ID_FILE)).unwrap();
        let copy = DataDirectory::at(&copy).unwrap();
        assert_eq!(own(&repository, &copy, false).await, Ok(Ownership::Other(moved.clone())));

        // Recreated at its path, the old one is lost for certain; elsewhere only a person can know.
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
