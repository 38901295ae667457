//! The file with a project's feature list, to be changed by a command.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use longhaul_activities::files::placed::{self, LONGEST, Links};
use longhaul_activities::files::{ListTurn, list_turn};
use longhaul_activities::project::{self, OTHER_LIST_FILE, TASKS_FILE};
use longhaul_backlog::FeatureList;

use crate::exit::usage;

/// How long others may take to change the list before we do it beside them.
const PATIENCE: Duration = Duration::from_mins(1);

/// A list, and where it is.
pub(super) struct ListFile {
    pub(super) path: PathBuf,
    pub(super) list: FeatureList,
    /// Whether it is in its file already.
    pub(super) is_written: bool,
    /// Nobody else changes it until we are done with it.
    turn: ListTurn,
}

impl ListFile {
    /// Reads the list of the project at `root`, or makes an empty one where there is none.
    ///
    /// A project that has its features in a checklist keeps them there, unless it is the checklist itself, `from`, that
    /// becomes a list now: a list beside it would hide it.
    pub(super) fn open(root: &Path, from: Option<&Path>) -> Result<Self> {
        let turn = list_turn(root, PATIENCE);
        let path = root.join(project::settings(root).map_err(usage)?.project.list);
        let other = root.join(OTHER_LIST_FILE);
        let path = if !path.exists() && other.exists() { other } else { path };
        if let Some(text) = placed::read_text(&path, Links::Within(root), LONGEST).map_err(usage)? {
            let list = FeatureList::parse(&text).map_err(|error| usage(format!("{}: {error}", path.display())))?;
            return Ok(Self { path, list, is_written: true, turn });
        }
        let tasks = root.join(TASKS_FILE);
        if tasks.exists() && !from.is_some_and(|from| is_same(from, &tasks)) {
            let tasks = tasks.display();
            let advice = format!("make a list of them first: `longhaul feature import {tasks}`");
            return Err(usage(format!("the features of this project are in {tasks}: {advice}")));
        }
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { path, list: FeatureList::create(&name, &[])?, is_written: false, turn })
    }

    /// Writes the list, if it is to be written, and lets others change it.
    pub(super) fn done(self, write_it: bool) -> Result<(PathBuf, FeatureList)> {
        if write_it {
            write(&self.path, &self.list.to_text())?;
        }
        drop(self.turn);
        Ok((self.path, self.list))
    }
}

/// Whether two names are of one file that is there.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Writes a file whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension(format!("tmp{}", std::process::id()));
    fs::write(&beside, text)
        .and_then(|()| fs::rename(&beside, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
