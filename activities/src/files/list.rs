//! The user's feature list: updates the states in it and changes nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use longhaul_backlog::{EntryState, FeatureList};
use longhaul_workflows::backlog::{Feature, FeatureId};

use super::error::FilesError;
use super::place::ProjectRoot;
use super::placed::is_absent;
use super::placed::{self, LONGEST, Links};
use super::swap::{self, ReplacedFile};
use super::{LIST_LOCK_TIMEOUT, lock_list};

/// The number of replaced files that are watched for late edits. Editors write within seconds after
/// they opened a file, and the list is rarely written eight times in that time.
const WATCHED_REPLACEMENTS: usize = 8;

/// Keeps the states in the list current.
#[derive(Debug, Default)]
pub(super) struct ListFile {
    states: BTreeMap<FeatureId, EntryState>,
    /// The version of the file in which the states were last up to date.
    up_to_date: Option<Stamp>,
    /// The digest of the text that was last written.
    written: Option<blake3::Hash>,
    /// The last replaced files: a program that had opened one before can still write to it.
    replaced: VecDeque<ReplacedFile>,
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
            self.up_to_date = None;
        }
    }

    /// Writes the states into the list, if it exists, is readable, and differs. `now` is RFC 3339
    /// text.
    pub(super) fn update(
        &mut self,
        place: &ProjectRoot,
        name: &str,
        now: &str,
    ) -> Result<(), FilesError> {
        let Some(path) = resolve_within(&place.root, name)? else { return Ok(()) };
        let _lock = lock_list(&place.root, LIST_LOCK_TIMEOUT);
        self.take_late_edits(&path)?;
        let found = match fs::metadata(&path) {
            Ok(found) if found.is_file() => found,
            Ok(_) => return Err(FilesError::NotA { expected: "file", path }),
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(FilesError::file("read the metadata of", &path)(error)),
        };
        let stamp = Stamp::of(&path, &found);
        if self.up_to_date.as_ref() == Some(&stamp) {
            return Ok(());
        }
        let Some(bytes) = read(&path)? else { return Ok(()) };
        // A file that is not a list may be in the middle of an edit.
        let Some(mut list) = parse(&bytes) else { return Ok(()) };
        let wrong = self.wrong_entries(list.features());
        if !list.set_states(&wrong, now) {
            self.up_to_date = Some(stamp);
            return Ok(());
        }
        let text = list.to_text().into_bytes();
        // A file that has been edited meanwhile stays; the next refresh handles it.
        if let Some(swapped) =
            swap::swap(&path, &bytes, &text).map_err(FilesError::file("write", &path))?
        {
            self.up_to_date = Some(Stamp::of(&path, &swapped.written));
            self.written = Some(blake3::hash(&text));
            self.replaced.truncate(WATCHED_REPLACEMENTS - 1);
            self.replaced.push_front(swapped.before);
        }
        Ok(())
    }

    /// Whether a program wrote to a replaced file, which it had opened before.
    pub(super) fn has_late_edit(&mut self) -> bool {
        self.replaced.iter_mut().any(|replaced| {
            replaced
                .written_since()
                .is_ok_and(|edit| edit.is_some_and(|edit| parse(&edit).is_some()))
        })
    }

    /// Takes edits that a program wrote to a replaced file.
    fn take_late_edits(&mut self, path: &Path) -> Result<(), FilesError> {
        let mut at = 0;
        while let Some(replaced) = self.replaced.get_mut(at) {
            match replaced.written_since() {
                Ok(Some(edit)) if parse(&edit).is_some() => {
                    self.keep_late_edit(path, &edit)?;
                    // Only now: a full disk must not cost the edit.
                    self.replaced.remove(at);
                }
                _ => at += 1,
            }
        }
        Ok(())
    }

    /// Writes a late edit to the list, or beside it if the list has been edited since.
    fn keep_late_edit(&self, path: &Path, edit: &[u8]) -> Result<(), FilesError> {
        let failed = || FilesError::file("write", path);
        let own = read(path)?.filter(|now| Some(blake3::hash(now)) == self.written);
        if let Some(own) = own
            && swap::swap(path, &own, edit).map_err(failed())?.is_some()
        {
            return Ok(());
        }
        let kept = swap::create_beside(path, edit).map_err(failed())?;
        tracing::warn!(
            file = %path.display(),
            kept = %kept.display(),
            "an edit of the feature list came too late; it is kept",
        );
        Ok(())
    }

    /// The states of the entries that differ.
    fn wrong_entries(&self, features: &[Feature]) -> BTreeMap<FeatureId, EntryState> {
        let wrong = features.iter().filter_map(|feature| {
            let state = self.states.get(&feature.id)?;
            // The written time stays if Longhaul has not tested the feature, or has pruned the
            // history of its pass. The time of a false claim to pass is removed.
            let own = || feature.last_tested.clone().filter(|_| !feature.passes || state.passes);
            let last_tested = state.last_tested.clone().or_else(own);
            let is_right = (feature.status, feature.passes) == (state.status, state.passes);
            let is_right = is_right && feature.last_tested == last_tested;
            (!is_right).then(|| (feature.id.clone(), EntryState { last_tested, ..state.clone() }))
        });
        wrong.collect()
    }
}

fn parse(bytes: &[u8]) -> Option<FeatureList> {
    FeatureList::from_bytes(bytes).ok()
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, FilesError> {
    Ok(placed::read(path, Links::Refused, LONGEST)?)
}

/// The real path of the list; `None` if it is missing.
fn resolve_within(root: &Path, name: &str) -> Result<Option<PathBuf>, FilesError> {
    let path = root.join(name);
    let real = |path: &Path| match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(FilesError::file("find", path)(error)),
    };
    let (Some(real_root), Some(real_path)) = (real(root)?, real(&path)?) else { return Ok(None) };
    if real_path.starts_with(&real_root) {
        Ok(Some(real_path))
    } else {
        Err(FilesError::Outside(path))
    }
}
