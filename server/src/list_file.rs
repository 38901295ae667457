//! Changes the feature list of a project. The list is a file of the project, so this needs no log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_activities::files::placed::{self, LONGEST, Links};
use longhaul_activities::files::{ListLock, create, lock_list, swap};
use longhaul_activities::project::{self, OTHER_LIST_FILE, TASKS_FILE};
use longhaul_backlog::FeatureList;
use longhaul_backlog::import::{self, Imported, Merged, Options};
use longhaul_workflows::backlog::{Backlog, Feature};

use crate::advice;
use crate::error::{Error, Result};

/// Lock timeout for the list.
const LOCK_TIMEOUT: Duration = Duration::from_mins(1);

/// Attempts to change a list that is being edited.
const TRIES: u32 = 20;

/// A list and its file.
pub struct ListFile {
    path: PathBuf,
    /// The list.
    pub list: FeatureList,
    /// The content of the file; `None` if it does not exist.
    content: Option<Vec<u8>>,
    /// Lock on the list, held until this is dropped.
    _lock: ListLock,
}

/// A backlog to import.
#[derive(Debug, Clone, Copy)]
pub struct ImportSource<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// Its file, if it comes from one.
    pub file: Option<&'a Path>,
    /// Its content.
    pub bytes: &'a [u8],
    /// How to read it; the features of the list are added to `known`.
    pub options: Options<'a>,
    /// Take over the fields of known entries that differ.
    pub update: bool,
    /// Only report.
    pub dry_run: bool,
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportOutcome {
    /// The file of the project's list.
    pub list: PathBuf,
    /// The report of the reader.
    pub imported: Imported,
    /// The entries that were added, or would be with a dry run.
    pub merged: Merged,
    /// How many added features have no check: neither their own nor a gate of the project.
    pub unchecked: usize,
}

impl ListFile {
    /// Reads the list of the project at `root`; an empty one if it has none.
    ///
    /// A project with a checklist is refused, because a list would hide the checklist, unless
    /// `from` is that checklist, which is then converted to a list.
    pub fn open(root: &Path, from: Option<&Path>) -> Result<Self> {
        let lock = lock_list(root, LOCK_TIMEOUT);
        let path = root.join(project::settings(root).map_err(Error::usage)?.project.list);
        let other = root.join(OTHER_LIST_FILE);
        let path = if !path.exists() && other.exists() { other } else { path };
        if let Some(content) =
            placed::read(&path, Links::Within(root), LONGEST).map_err(Error::usage)?
        {
            let list = FeatureList::from_bytes(&content)
                .map_err(|error| Error::usage(format!("{}: {error}", path.display())))?;
            // A link within the project is followed.
            let path = path.canonicalize().unwrap_or(path);
            return Ok(Self { path, list, content: Some(content), _lock: lock });
        }
        let tasks = root.join(TASKS_FILE);
        if tasks.exists() && !from.is_some_and(|from| is_same(from, &tasks)) {
            let tasks = tasks.to_string_lossy();
            let root = root.to_string_lossy();
            let import = advice::command(["feature", "import", &*tasks, "--dir", &*root]);
            let advice = format!("make a list of them first: {import}");
            return Err(Error::usage(format!(
                "the features of this project are in {tasks}: {advice}"
            )));
        }
        let name =
            root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let list = FeatureList::create(&name, &[]).map_err(Error::usage)?;
        Ok(Self { path, list, content: None, _lock: lock })
    }

    /// Writes the list; `false`: the file has changed since it was read, and stays as it is.
    fn write(&self, text: &str) -> Result<bool> {
        let written = match &self.content {
            Some(read) => swap(&self.path, read, text.as_bytes()).map(|done| done.is_some()),
            None => create(&self.path, text.as_bytes()).map(|done| done.is_some()),
        };
        written.map_err(Error::io(format!("cannot write {}", self.path.display())))
    }
}

/// Adds a feature to the list of the project at `root` and returns the file of the list.
pub fn add_feature(root: &Path, feature: &Feature) -> Result<PathBuf> {
    change(root, None, |file| {
        let path = file.path.display().to_string();
        let wrong = |error: &dyn std::fmt::Display| {
            let error = error.to_string();
            let error = error.replacen("the feature list has", "the feature list would have", 1);
            Error::usage(format!("{path}: nothing was added: {error}"))
        };
        if file.list.feature(&feature.id).is_some() {
            let id = &feature.id;
            let reason = format!("there is a feature `{id}` already: choose another id");
            return Err(wrong(&reason));
        }
        let text = file.list.add(feature).map_err(|error| wrong(&error))?;
        Backlog::new(file.list.features().to_vec()).map_err(|error| wrong(&error))?;
        Ok((Some(text), file.path.clone()))
    })
}

/// Reads and writes the list at `root`, again if the user edits it at the same moment. `change`
/// returns the new text, if there is one, and the result.
fn change<T>(
    root: &Path,
    from: Option<&Path>,
    mut change: impl FnMut(&mut ListFile) -> Result<(Option<String>, T)>,
) -> Result<T> {
    for _ in 0..TRIES {
        let mut file = ListFile::open(root, from)?;
        let (text, result) = change(&mut file)?;
        let is_written = text.map_or(Ok(true), |text| file.write(&text))?;
        if is_written {
            return Ok(result);
        }
    }
    let root = root.display();
    Err(Error::usage(format!("the feature list of {root} is being edited all the time; try again")))
}

/// Adds the features with new ids from a backlog of another tool to the list of the project at
/// `root`.
pub fn import_features(root: &Path, source: &ImportSource<'_>) -> Result<ImportOutcome> {
    let wrong = |error| Error::usage(format!("{}: {error}", source.name));
    let text = import::decode(source.bytes).map_err(wrong)?;
    let (list, imported, merged) = change(root, source.file, |file| {
        let options = Options { known: file.list.features(), ..source.options };
        let imported = import::read(&text, &options).map_err(wrong)?;
        let before = file.list.clone();
        let merged = import::merge(&mut file.list, &imported, source.update).map_err(wrong)?;
        let has_changed = file.list != before || file.content.is_none() && !merged.added.is_empty();
        let new = (has_changed && !source.dry_run).then(|| file.list.to_text());
        Ok((new, (file.path.clone(), imported, merged)))
    })?;
    let unchecked = merged
        .added
        .iter()
        .filter(|index| imported.items[**index].feature.checks.is_empty())
        .count();
    let has_gates =
        unchecked > 0 && !project::settings(root).map_err(Error::usage)?.gates.is_empty();
    Ok(ImportOutcome { list, imported, merged, unchecked: if has_gates { 0 } else { unchecked } })
}

/// Whether both names refer to one existing file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Writes a file atomically.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(Error::io(format!("cannot write {}", path.display())))
}
