//! The user's feature list: updates the states in it and changes nothing else.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use longhaul_backlog::{EntryState, FeatureList};
use longhaul_workflows::backlog::{Feature, FeatureId};

use super::error::FilesError;
use super::place::{Durable, Place, is_missing, replace_if};
use super::placed::{self, LONGEST, Links};
use super::{LIST_PATIENCE, list_turn};

/// Keeps the states in the list current.
#[derive(Debug, Default)]
pub(super) struct ListFile {
    states: BTreeMap<FeatureId, EntryState>,
    /// The version of the file in which the states were last correct.
    right: Option<Stamp>,
}

/// Identifies a version of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(path: &Path, found: &Metadata) -> Self {
        Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl ListFile {
    /// Replaces the states.
    pub(super) fn set(&mut self, states: BTreeMap<FeatureId, EntryState>) {
        if self.states != states {
            self.states = states;
            self.right = None;
        }
    }

    /// Writes the states into the list, if it exists, is readable, and differs. `now` is RFC 3339
    /// text.
    pub(super) fn bring_up_to_date(
        &mut self,
        place: &Place,
        name: &str,
        now: &str,
    ) -> Result<(), FilesError> {
        let Some(path) = inside(&place.root, name)? else { return Ok(()) };
        let _lock = list_turn(&place.root, LIST_PATIENCE);
        let found = match fs::metadata(&path) {
            Ok(found) if found.is_file() => found,
            Ok(_) => return Err(FilesError::NotA { expected: "file", path }),
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(FilesError::file("look at", &path)(error)),
        };
        let stamp = Stamp::of(&path, &found);
        if self.right.as_ref() == Some(&stamp) {
            return Ok(());
        }
        let Some(bytes) = read(&path)? else { return Ok(()) };
        let Some(mut list) =
            std::str::from_utf8(&bytes).ok().and_then(|text| FeatureList::parse(text).ok())
        else {
            // Possibly in the middle of an edit.
            return Ok(());
        };
        let wrong = self.wrong_entries(list.features());
        let before = (!wrong.is_empty()).then(|| list.document().clone());
        list.set_states(&wrong, now);
        if before.is_none_or(|before| before == *list.document()) {
            self.right = Some(stamp);
            return Ok(());
        }
        // The file may have been edited meanwhile; the next refresh handles that.
        let is_as_read = || read(&path).is_ok_and(|now| now.is_some_and(|now| now == bytes));
        if let Some(written) =
            replace_if(&path, list.to_text().as_bytes(), Durable::Yes, is_as_read)?
        {
            self.right = Some(Stamp::of(&path, &written));
        }
        Ok(())
    }

    /// The states of the entries that differ.
    fn wrong_entries(&self, features: &[Feature]) -> BTreeMap<FeatureId, EntryState> {
        let wrong = features.iter().filter_map(|feature| {
            let state = self.states.get(&feature.id)?;
            // Without a test of Longhaul's, the user's earlier time stays, except beside a false
            // claim to pass. A passed feature without a time has a pruned history: the written time
            // stays.
            let own = || feature.last_tested.clone().filter(|_| !feature.passes || state.passes);
            let last_tested = state.last_tested.clone().or_else(own);
            let right = (feature.status, feature.passes) == (state.status, state.passes);
            let right = right && feature.last_tested == last_tested;
            (!right).then(|| (feature.id.clone(), EntryState { last_tested, ..state.clone() }))
        });
        wrong.collect()
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, FilesError> {
    Ok(placed::read(path, Links::Refused, LONGEST)?)
}

/// The real path of the list; `None` if it is missing.
fn inside(root: &Path, name: &str) -> Result<Option<PathBuf>, FilesError> {
    let path = root.join(name);
    let real = |path: &Path| match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(FilesError::file("find", path)(error)),
    };
    let (Some(real_root), Some(real_path)) = (real(root)?, real(&path)?) else { return Ok(None) };
    if real_path.starts_with(&real_root) {
        Ok(Some(real_path))
    } else {
        Err(FilesError::Outside(path))
    }
}
