//! Names on the command line: one rule for every verb, on a log at rest and on one in use.

use std::path::Path;

use anyhow::Result;
use longhaul_activities::git;
use longhaul_engine::RunId;

use crate::arguments::Target;
use crate::exit::{failed, usage};
use crate::place::{self, Project};
use longhaul_server::advice;
use longhaul_server::views::{FindProject, FindRun, Name, Unknown, Unresolved};
use longhaul_server::{Client, Error, RequestError};

/// A run or a feature as the user names it. Outside of a project only runs can be named.
pub(super) async fn name(text: &str, dir: &Path) -> Result<Name> {
    place::is_there(dir)?;
    let project = Project::known_at(dir).await.map(|project| project.id);
    Ok(Name { text: text.to_owned(), project, whole: false })
}

/// Resolves a name to a run; a feature means its last run.
pub(super) async fn run(access: &Client, text: &str, dir: &Path) -> Result<RunId> {
    super::call(access, FindRun(name(text, dir).await?)).await
}

/// The result of looking a name up.
pub(super) enum Lookup {
    /// The run.
    Found(RunId),
    /// The name matches no run, or several.
    Unknown(Unknown),
}

/// Resolves a name to a run, or a directory to its project. A feature takes precedence over a
/// directory with the same name.
pub(super) async fn run_or_dir(access: &Client, text: &str, dir: &Path) -> Result<Lookup> {
    let path = Path::new(text);
    let is_dir = path.is_dir();
    if !is_dir || (!text.contains('/') && !matches!(text, "." | "..")) {
        let name = Name { whole: is_dir, ..name(text, dir).await? };
        match access.call(FindRun(name)).await {
            Err(Error::Request(RequestError::UnknownName(unknown)))
                if is_dir && unknown.why == Unresolved::Nothing => {}
            Err(Error::Request(RequestError::UnknownName(unknown))) => {
                return Ok(Lookup::Unknown(unknown));
            }
            found => return Ok(Lookup::Found(found?)),
        }
    }
    Ok(Lookup::Found(Project::at(path).await?.id))
}

/// Resolves a run, a feature or the directory of a project; without a name, the project in the
/// directory.
pub(super) async fn target(access: &Client, target: &Target) -> Result<RunId> {
    let dir = &target.scope.dir;
    let Some(text) = &target.target else {
        git::Checkout::containing(dir)
            .await
            .map_err(|failure| failed(advice::with_remedy(failure, dir)))?;
        let never = || usage(format!("no project in {} has ever run", dir.display()));
        return Project::known_at(dir).await.map(|project| project.id).ok_or_else(never);
    };
    match run_or_dir(access, text, dir).await? {
        Lookup::Found(run) => Ok(run),
        Lookup::Unknown(unknown) => Err(refusal(&unknown)),
    }
}

/// The name of a known run.
pub(super) fn exact(run: &RunId) -> Name {
    Name { text: run.to_string(), project: None, whole: true }
}

/// The name of a scope: a project by its directory, else a run or a feature.
pub(super) async fn scope(text: &str, dir: &Path) -> Result<Name> {
    let path = Path::new(text);
    if path.is_dir()
        && let Some(project) = Project::known_at(path).await
    {
        return Ok(Name { text: project.id.to_string(), project: None, whole: true });
    }
    name(text, dir).await
}

/// Resolves a project by its directory, its id, or a prefix of the id.
pub(super) async fn project(access: &Client, text: &str) -> Result<RunId> {
    if Path::new(text).is_dir() {
        return Ok(Project::at(Path::new(text)).await?.id);
    }
    super::call(access, FindProject(text.to_owned())).await
}

/// An unresolved name as a usage error.
pub(super) fn refusal(unknown: &Unknown) -> anyhow::Error {
    usage(sentence(unknown))
}

/// Why a name does not resolve.
pub(super) fn sentence(unknown: &Unknown) -> String {
    let Unknown { name, why, meant } = unknown;
    let (what, list) = match why {
        Unresolved::NoRun => {
            return format!(
                "the feature `{name}` has had no run yet: {} says why",
                advice::command(["why", meant.first().unwrap_or(name)])
            );
        }
        Unresolved::Several => {
            return format!(
                "`{name}` is the name of several runs; write more of one of these: {}",
                meant.join(", ")
            );
        }
        Unresolved::Nothing => ("run or feature", "`longhaul list` shows the runs"),
        Unresolved::NoProject => ("project", "`longhaul list --kind project` shows the projects"),
    };
    if meant.is_empty() {
        return format!("the log knows no {what} `{name}`; {list}");
    }
    format!("the log knows no {what} `{name}`; did you mean one of these? {}", meant.join(", "))
}
