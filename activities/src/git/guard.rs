//! Protected files where gates run: put back as the commit has them, byte by byte, before each check.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use longhaul_engine::Failure;

use super::files;
use super::protected::{Protected, remove_with_empty_parents};
use super::work::WorkTree;

/// How the content of a file begins that Git LFS keeps elsewhere; its real content is the work of the project's set-up.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The protected files of a commit.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    work: &'a WorkTree,
    protected: Protected,
    /// The globs as git writes them.
    pathspecs: Vec<String>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    path: PathBuf,
    mode: String,
    bytes: Vec<u8>,
}

impl WorkTree {
    /// The files of a commit that match these globs.
    pub(crate) async fn guard(&self, commit: &str, protected: &[String]) -> Result<Guard<'_>, Failure> {
        let pathspecs = protected.iter().flat_map(|glob| [format!(":(glob){glob}"), format!(":(glob){glob}/**")]);
        let pathspecs = pathspecs.collect();
        let protected = Protected::of(protected, "")?;
        let plumbing = &self.tree().plumbing;
        let listed = plumbing.git().args(["ls-tree", "-r", "-z", commit]).run().await?;
        let mut entries = Vec::new();
        let mut objects = String::new();
        for line in files::nul_separated(&listed.stdout) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let head = files::shown(&line[..tab]);
            if let [mode, "blob", object] = head.split(' ').collect::<Vec<_>>()[..]
                && protected.covers(&line[tab + 1..])
            {
                let path = files::path_of(&line[tab + 1..]).to_owned();
                entries.push(Entry { path, mode: mode.to_owned(), bytes: Vec::new() });
                objects.push_str(object);
                objects.push('\n');
            }
        }
        if !entries.is_empty() {
            let printed = plumbing.git().args(["cat-file", "--batch"]).input(objects).run().await?.stdout;
            read_batch(&printed, &mut entries).ok_or_else(|| {
                Failure::retryable(format!("git printed the protected files of {commit} incompletely"))
            })?;
            entries.retain(|entry| !entry.bytes.starts_with(LFS_POINTER));
        }
        Ok(Guard { work: self, protected, pathspecs, entries })
    }
}

/// Reads `<object> blob <size>`, the bytes and a line feed for each entry.
fn read_batch(mut printed: &[u8], entries: &mut [Entry]) -> Option<()> {
    for entry in entries {
        let end = printed.iter().position(|byte| *byte == b'\n')?;
        let size: usize = files::shown(&printed[..end]).rsplit(' ').next()?.parse().ok()?;
        entry.bytes = printed.get(end + 1..end + 1 + size)?.to_vec();
        printed = printed.get(end + 2 + size..)?;
    }
    Some(())
}

impl Guard<'_> {
    /// Puts protected files back that differ from the commit, and removes those that it does not have. Names them.
    pub(crate) async fn restore(&self) -> Result<Vec<String>, Failure> {
        let top = self.work.path();
        let mut restored = Vec::new();
        let git = self.work.tree().git().env("GIT_LITERAL_PATHSPECS", "0").args(["ls-files", "--others", "-z", "--"]);
        let others = git.args(&self.pathspecs).run().await?;
        for path in files::nul_separated(&others.stdout).filter(|path| self.protected.covers(path)) {
            remove_with_empty_parents(top, files::path_of(path))?;
            restored.push(files::shown(path));
        }
        for entry in &self.entries {
            if !is_as(&top.join(&entry.path), entry) {
                put(top, entry)?;
                restored.push(entry.path.to_string_lossy().into_owned());
            }
        }
        Ok(restored)
    }
}

fn is_as(path: &Path, entry: &Entry) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    match entry.mode.as_str() {
        "120000" => fs::read_link(path).is_ok_and(|link| link.as_os_str().as_encoded_bytes() == entry.bytes),
        mode => {
            let is_program = metadata.permissions().mode() & 0o100 != 0;
            // The size first: a file that was replaced by a huge one is not read.
            metadata.is_file()
                && is_program == (mode == "100755")
                && metadata.len() == entry.bytes.len() as u64
                && has_no_link_above(path)
                && fs::read(path).is_ok_and(|bytes| bytes == entry.bytes)
        }
    }
}

/// Whether the directory of a file is where it seems to be.
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
            fs::create_dir(&dir).map_err(|error| files::failed("make the directory", &dir, &error))?;
        }
    }
    let path = top.join(&entry.path);
    files::remove(&path)?;
    let written = if entry.mode == "120000" {
        std::os::unix::fs::symlink(files::path_of(&entry.bytes), &path)
    } else {
        let mode = if entry.mode == "100755" { 0o755 } else { 0o644 };
        fs::write(&path, &entry.bytes).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
    };
    written.map_err(|error| files::failed("write", &path, &error))
}
