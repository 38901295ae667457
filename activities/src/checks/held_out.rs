//! The files of held-out checks: located outside of the repository, and hashed.

use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use crate::files::placed::{self, LONGEST, Links};

/// The limit of files.
const MOST: usize = 10_000;

/// The configured directory, with links resolved. It must exist, outside of the repository.
pub(super) fn directory(root: &Path, named: &str) -> Result<PathBuf, Failure> {
    let advice = "correct `hidden_checks` under [project] in longhaul.toml";
    let directory = root.join(named);
    let wrong = |what: &str| Failure::terminal(format!("{} {what}: {advice}", directory.display()));
    let real =
        directory.canonicalize().map_err(|error| wrong(&format!("cannot be used: {error}")))?;
    let top = root.canonicalize().map_err(|error| wrong(&format!("cannot be used: {error}")))?;
    if real.starts_with(top) {
        return Err(wrong("is in the repository, where agents see it"));
    }
    if !real.is_dir() {
        return Err(wrong("is no directory"));
    }
    Ok(real)
}

/// blake3 of the paths and contents of all files in a directory, in hex.
pub(super) fn digest(directory: &Path) -> Result<String, Failure> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::retryable(format!(
            "the held-out checks in {} cannot be read: {error}",
            path.display()
        ))
    };
    while let Some(next) = directories.pop() {
        for entry in std::fs::read_dir(&next).map_err(|error| failed(&next, &error))? {
            let entry = entry.map_err(|error| failed(&next, &error))?;
            let kind = entry.file_type().map_err(|error| failed(&next, &error))?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else {
                files.push(entry.path());
            }
            if files.len() > MOST {
                return Err(failed(directory, &format!("there are more than {MOST} files")));
            }
        }
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let content = placed::read(&file, Links::Within(directory), LONGEST)
            .map_err(|error| failed(directory, &error))?;
        let name = file.strip_prefix(directory).unwrap_or(&file).as_os_str().as_encoded_bytes();
        for part in [name, &content.unwrap_or_default()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}
