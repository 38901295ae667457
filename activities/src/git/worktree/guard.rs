//! Protected files in the trees of gates: restored from the commit, byte by byte, before each
//! check.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_engine::Failure;

use super::work::WorkTree;
use crate::git::files;
use crate::git::protected::{Protected, remove_with_empty_parents};

/// The first bytes of a Git LFS pointer file; the project's set-up fetches the real content.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The protected files of a commit.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    work: &'a WorkTree,
    entries: Vec<Entry>,
    search: Arc<Search>,
}

#[derive(Debug)]
struct Entry {
    path: PathBuf,
    mode: String,
    bytes: Vec<u8>,
}

/// Finds protected files that are not in the commit.
#[derive(Debug)]
struct Search {
    protected: Protected,
    /// The directories that can hold protected files, relative to the top.
    places: Vec<PathBuf>,
    /// The protected files and the submodules of the commit.
    known: HashSet<PathBuf>,
}

impl WorkTree {
    /// The files of a commit that match these globs.
    pub(crate) async fn guard(
        &self,
        commit: &str,
        protected: &[String],
    ) -> Result<Guard<'_>, Failure> {
        let places = protected.iter().map(|glob| fixed_part(glob)).collect();
        let mut search =
            Search { protected: Protected::of(protected, "")?, places, known: HashSet::new() };
        let repository = self.repository();
        let mut entries = Vec::new();
        for place in search.places.clone() {
            let place = place.to_string_lossy();
            for (path, entry) in repository.files_under(commit, place.trim_end_matches('/')).await?
            {
                let is_known = search.known.contains(files::path_of(&path));
                let is_covered = search.protected.covers(&path);
                if is_known || entry.is_file() && !is_covered {
                    continue;
                }
                let path = files::path_of(&path).to_owned();
                search.known.insert(path.clone());
                if entry.is_file() {
                    let bytes = repository.blob(&entry.object).await?;
                    entries.push(Entry { path, mode: entry.mode, bytes });
                }
            }
        }
        entries.retain(|entry| !entry.bytes.starts_with(LFS_POINTER));
        Ok(Guard { work: self, entries, search: Arc::new(search) })
    }
}

impl Guard<'_> {
    /// Whether a path, relative to the top, is protected.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.search.protected.covers(path.as_os_str().as_encoded_bytes())
    }
}

/// The part of a glob before the first component that is a pattern.
fn fixed_part(glob: &str) -> PathBuf {
    let parts = glob.trim_start_matches("./").split('/');
    parts.take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).collect()
}

impl Search {
    /// Protected files that exist and are not in the commit, relative to the top. Links are not
    /// followed.
    fn others(&self, top: &Path) -> Result<Vec<PathBuf>, Failure> {
        let mut found = Vec::new();
        let mut pending = self.places.clone();
        while let Some(path) = pending.pop() {
            let full = top.join(&path);
            let Ok(metadata) = fs::symlink_metadata(&full) else { continue };
            if self.known.contains(&path) || path == Path::new(".git") {
                continue;
            }
            if metadata.is_dir() {
                match fs::read_dir(&full) {
                    Ok(entries) => {
                        pending.extend(entries.flatten().map(|entry| path.join(entry.file_name())));
                    }
                    // Checks cannot read anything in it either.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::NotFound | ErrorKind::PermissionDenied
                        ) => {}
                    Err(error) => return Err(files::failed("list", &full, &error)),
                }
            } else if self.protected.covers(path.as_os_str().as_encoded_bytes()) {
                found.push(path);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

impl Guard<'_> {
    /// Restores protected files that differ from the commit, removes extra ones, and returns their
    /// names.
    pub(crate) async fn restore(&self) -> Result<Vec<String>, Failure> {
        // The data directory may be reached by a link.
        let top = files::canonical(self.work.path())?;
        let mut restored = Vec::new();
        let search = Arc::clone(&self.search);
        let of = top.clone();
        // A pattern can match anywhere, so its whole tree is searched.
        let searched = tokio::task::spawn_blocking(move || search.others(&of)).await;
        let others = searched.map_err(|error| {
            Failure::retryable(format!("the search for files ended: {error}"))
        })??;
        for path in others {
            remove_with_empty_parents(&top, &path)?;
            restored.push(path.to_string_lossy().into_owned());
        }
        for entry in &self.entries {
            if !is_as(&top.join(&entry.path), entry) {
                put(&top, entry)?;
                restored.push(entry.path.to_string_lossy().into_owned());
            }
        }
        Ok(restored)
    }
}

fn is_as(path: &Path, entry: &Entry) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    match entry.mode.as_str() {
        "120000" => {
            fs::read_link(path).is_ok_and(|link| link.as_os_str().as_encoded_bytes() == entry.bytes)
        }
        mode => {
            let is_program = metadata.permissions().mode() & 0o100 != 0;
            // Compares the size first, so that a file replaced by a huge one is not read.
            metadata.is_file()
                && is_program == (mode == "100755")
                && metadata.len() == entry.bytes.len() as u64
                && has_no_link_above(path)
                && has_content(path, &entry.bytes).unwrap_or(false)
        }
    }
}

/// Compares a file piece by piece: a list of a large project is compared before each check.
fn has_content(path: &Path, expected: &[u8]) -> io::Result<bool> {
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; expected.len().clamp(1, 256 * 1024)];
    for piece in expected.chunks(buffer.len()) {
        let found = &mut buffer[..piece.len()];
        file.read_exact(found)?;
        if found != piece {
            return Ok(false);
        }
    }
    Ok(file.read(&mut buffer[..1])? == 0)
}

/// Whether no parent directory of a file is a link.
fn has_no_link_above(path: &Path) -> bool {
    let parent = path.parent().unwrap_or(path);
    fs::canonicalize(parent).is_ok_and(|real| real == parent)
}

fn put(top: &Path, entry: &Entry) -> Result<(), Failure> {
    let mut dir = top.to_owned();
    for part in entry.path.parent().into_iter().flat_map(Path::components) {
        dir.push(part);
        let is_dir = fs::symlink_metadata(&dir).is_ok_and(|metadata| metadata.is_dir());
        if !is_dir {
            files::remove(&dir)?;
            fs::create_dir(&dir)
                .map_err(|error| files::failed("make the directory", &dir, &error))?;
        }
    }
    let path = top.join(&entry.path);
    files::remove(&path)?;
    let written = if entry.mode == "120000" {
        std::os::unix::fs::symlink(files::path_of(&entry.bytes), &path)
    } else {
        let mode = if entry.mode == "100755" { 0o755 } else { 0o644 };
        fs::write(&path, &entry.bytes)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
    };
    written.map_err(|error| files::failed("write", &path, &error))
}
