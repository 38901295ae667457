//! Checks of a checkout before a session is paid: changes that keep finished work from
//! landing, and files that agents and checks do not get.

use std::path::Path;

use longhaul_engine::Failure;
use longhaul_workflows::contracts::LoadedBacklog;

use crate::files::placed::{self, Links};
use crate::git::checkout::filters::filters_in_force;
use crate::git::checkout::{SET_ASIDE, named, uncommitted};
use crate::git::command::Git;
use crate::git::files;
use crate::git::names::{OWN_DIR, PROGRESS_FILE};
use crate::git::repository::branch_of;
use crate::obstacle::Obstacle;

/// The longest set-up script that is searched, in bytes.
const LONGEST_SCRIPT: u64 = 1 << 20;

/// The notes on the checkout of a project, each with its remedy.
pub async fn preflight(root: &Path, loaded: &LoadedBacklog) -> Result<Vec<Obstacle>, Failure> {
    let mut notes = filters_in_force(root).await?;
    notes.extend(changed(root, loaded).await?);
    let script = root.join(&loaded.settings.project.setup);
    let script = placed::read_text(&script, Links::Followed, LONGEST_SCRIPT);
    let script = script.ok().flatten().unwrap_or_default();
    notes.extend(submodules(root, &script).await?);
    notes.extend(large_files(root, &script).await?);
    Ok(notes)
}

async fn changed(root: &Path, loaded: &LoadedBacklog) -> Result<Option<Obstacle>, Failure> {
    if branch_of(root).await.ok().as_ref() != Some(&loaded.target) {
        return Ok(None);
    }
    let own_files = [loaded.list_file.as_str(), PROGRESS_FILE, OWN_DIR];
    let changed = uncommitted(root, &own_files).await?;
    Ok(changed.map(|changed| {
        let problem = format!(
            "{} has uncommitted changes in {changed}: agents do not see them, and finished work \
             waits on `longhaul/next`",
            root.display()
        );
        Obstacle::new(problem, SET_ASIDE)
    }))
}

/// Submodules that the set-up does not fetch.
async fn submodules(root: &Path, script: &str) -> Result<Option<Obstacle>, Failure> {
    if !root.join(".gitmodules").is_file() || script.contains("submodule") {
        return Ok(None);
    }
    let pattern = r"^submodule\..*\.path$";
    let args = ["config", "-z", "--file", ".gitmodules", "--get-regexp", pattern];
    let Some(found) = Git::at(root).args(args).find().await? else { return Ok(None) };
    let paths: Vec<Vec<u8>> = found
        .split('\0')
        .filter_map(|setting| Some(setting.split_once('\n')?.1.as_bytes().to_vec()))
        .collect();
    Ok((!paths.is_empty()).then(|| {
        let problem = format!(
            "the submodules of {} are empty where agents and checks work: {}",
            root.display(),
            named(&paths)
        );
        Obstacle::new(problem, "let the set-up script run `git submodule update --init`")
    }))
}

/// Files in Git LFS that the set-up does not fetch. A configured filter has its own note.
async fn large_files(root: &Path, script: &str) -> Result<Option<Obstacle>, Failure> {
    let attributes = root.join(".gitattributes");
    let attributes = placed::read_text(&attributes, Links::Followed, LONGEST_SCRIPT);
    let attributes = attributes.ok().flatten().unwrap_or_default();
    if !attributes.contains("filter=lfs") || script.contains("lfs") {
        return Ok(None);
    }
    let args = ["ls-files", "-z", "--", ":(top,attr:filter=lfs)"];
    let listed = Git::at(root).args(args).env("GIT_LITERAL_PATHSPECS", "0").finish().await?;
    let paths: Vec<Vec<u8>> = files::nul_separated(&listed.stdout).map(<[u8]>::to_vec).collect();
    Ok((!paths.is_empty()).then(|| {
        let problem = format!(
            "{} of {} is in Git LFS: agents and checks see the pointer, not the content",
            named(&paths),
            root.display()
        );
        Obstacle::new(problem, "let the set-up script run `git lfs pull`")
    }))
}
