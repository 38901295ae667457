//! Paths of logs and sessions, and files written atomically with respect to a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use longhaul_engine::{Attempt, RunId};

use crate::files::remove_all;

/// The id of the owner of a data directory: the same for every process that owns it, now and later.
pub fn owner_id(data_dir: &Path) -> String {
    let place = data_dir.canonicalize().or_else(|_| std::path::absolute(data_dir));
    let place = place.unwrap_or_else(|_| data_dir.to_owned());
    blake3::hash(place.as_os_str().as_encoded_bytes()).to_hex()[..16].to_owned()
}

/// The id of a run as one directory name, unique per run.
pub fn run_directory_name(run: &RunId) -> String {
    // Neither `~` nor `+` is valid in a run id, so names are unique; no name is `.`, `..` or
    // hidden.
    let flat = run.as_str().replace('/', "~");
    flat.strip_prefix('.').map_or_else(|| flat.clone(), |rest| format!("+{rest}"))
}

/// Creates the log file of one attempt. An attempt repeated after a crash has the same number as
/// the lost one: its file gets a new number, and the older file stays.
pub(super) fn create_log(
    data_dir: &Path,
    attempt: &Attempt,
    name: &str,
) -> io::Result<(PathBuf, File)> {
    let directory = data_dir.join("logs").join(run_directory_name(&attempt.run));
    fs::create_dir_all(&directory)?;
    let stem = format!("{}-{}-{}", attempt.slot, attempt.number, plain(name));
    let mut nth = 1;
    loop {
        let suffix = if nth == 1 { String::new() } else { format!(".{nth}") };
        let path = directory.join(format!("{stem}{suffix}.log"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => nth += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The log files of all attempts of a call, the newest last.
pub(crate) fn logs_of(data_dir: &Path, attempt: &Attempt, name: &str) -> Vec<PathBuf> {
    let directory = data_dir.join("logs").join(run_directory_name(&attempt.run));
    let slot = format!("{}-", attempt.slot);
    let name = format!("-{}.", plain(name));
    let is_of_call = |file: &str| file.starts_with(&slot) && file.contains(&name);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut logs: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_of_call))
        .map(|entry| (entry.metadata().and_then(|found| found.modified()).ok(), entry.path()))
        .collect();
    logs.sort();
    logs.into_iter().map(|(_, path)| path).collect()
}

/// The directory for temporary files of programs in a sandbox.
pub(super) fn temporary_in(data_dir: &Path) -> PathBuf {
    data_dir.join("tmp")
}

/// Makes an empty directory for the temporary files of one attempt.
pub(super) fn make_temporary(data_dir: &Path, attempt: &Attempt) -> io::Result<PathBuf> {
    let directory = temporary_in(data_dir).join(format!(
        "{}-{}",
        run_directory_name(&attempt.run),
        attempt.slot
    ));
    remove_temporary(&directory);
    fs::create_dir_all(&directory)?;
    // As for `/tmp`: a program may change its user.
    fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    Ok(directory)
}

/// Removes temporary files. Leftovers cost only space.
pub(super) fn remove_temporary(directory: &Path) {
    if let Err(error) = remove_all(directory) {
        let directory = directory.display();
        tracing::warn!(%directory, %error, "temporary files cannot be removed");
    }
}

/// A user-chosen name as part of a file name.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.chars().take(60).map(plain).collect()
}

/// Creates a directory and its parents, durable against a power cut.
pub(crate) fn make_directory_durably(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().unwrap_or(Path::new("/"));
    make_directory_durably(above)?;
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(above)?.sync_all(),
    }
}

/// Writes a file; after a power cut it exists with all of its content, or not at all.
pub(crate) fn write_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_directories_inside_the_data_directory() {
        for (run, directory) in [
            ("shop/login#2", "shop~login#2"),
            ("..", "+."),
            (".", "+"),
            ("a/../b", "a~..~b"),
            ("./a", "+~a"),
        ] {
            assert_eq!(run_directory_name(&RunId::new(run).unwrap()), directory);
        }
    }

    #[test]
    fn names_of_checks_become_parts_of_file_names() {
        assert_eq!(plain("unit tests / all"), "unit-tests---all");
        assert_eq!(plain(&"é".repeat(100)), "-".repeat(60));
    }
}
