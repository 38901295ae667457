//! Warns before a run about differences between the log and the repository of a project.

use std::path::Path;

use longhaul_activities::git;
use longhaul_activities::project::settings;

use crate::place::Project;
use crate::term;
use longhaul_server::status::StatusDocument;
use longhaul_server::{Client, ProjectStatus};

/// How many lost features are listed.
const SHOWN: usize = 10;

/// Prints the differences of a project before it runs.
pub(super) async fn say(access: &Client, project: &Project) {
    let status = ProjectStatus { project: project.id.clone(), list: None };
    if let Ok(Some(status)) = access.call(status).await
        && !status.root.is_empty()
        && !status.target.is_empty()
    {
        let other = other_branch(project, &status).await;
        for text in other.into_iter().chain(lost(&project.root, &status).await) {
            term::say(text);
        }
    }
}

/// The target branch is set by the first run, independent of later checkouts.
async fn other_branch(project: &Project, status: &StatusDocument) -> Option<String> {
    let is_chosen = settings(&project.root).is_ok_and(|settings| settings.project.target.is_some());
    let branch =
        git::branch_of(&project.root).await.ok().filter(|branch| *branch != status.target)?;
    let root = project.root.display();
    let target = &status.target;
    let text = format!(
        "{root}: finished work goes to `{target}` as before, not to `{branch}`, which is checked \
         out"
    );
    (!is_chosen).then(|| format!("{text}; `target` under [project] in longhaul.toml changes that"))
}

/// The passed features with commits that were removed from the target branch.
pub(in crate::command) async fn lost(root: &Path, status: &StatusDocument) -> Vec<String> {
    let landed = status
        .features
        .iter()
        .filter(|line| line.passes)
        .filter_map(|line| Some((line, line.commit.clone()?)));
    let landed: Vec<_> = landed.collect();
    let commits: Vec<&str> = landed.iter().map(|(_, commit)| commit.as_str()).collect();
    let missing = git::commits_not_in(root, &commits, &status.target).await.unwrap_or_default();
    let lost = landed.iter().filter(|(_, commit)| missing.contains(commit));
    let lines = lost.map(|(line, commit)| {
        let short = commit.chars().take(10).collect::<String>();
        format!(
            "{}: it passed as {short}, which is missing in `{}`: its checks run again there",
            line.id, status.target
        )
    });
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}
