//! `longhaul status`.

use std::path::Path;

use anyhow::Result;
use longhaul_activities::project::NO_SETTINGS;
use longhaul_activities::{confine, git};
use longhaul_engine::Failure;

use super::overview;
use super::run::lost;
use super::terminal;
use crate::arguments::{Output, Show};
use crate::document;
use crate::exit::{Exit, failed};
use crate::place::Project;
use crate::status_text::{ROWS, headline, table};
use crate::term;
use longhaul_server::status::{self, StatusDocument};
use longhaul_server::views::OverviewDocument;
use longhaul_server::{Client, ProjectStatus};

pub(super) async fn run(data_dir: &Path, arguments: &Show) -> Result<Exit> {
    let here = Path::new(".");
    let dir = arguments.dir.as_deref().unwrap_or(here);
    if arguments.all || (arguments.dir.is_none() && !is_project(here).await) {
        return all(data_dir, arguments.output).await;
    }
    let project = Project::at(dir).await?;
    let mut document = document(data_dir, &project).await?;
    document.sandbox = sandbox(&project);
    document.findings.extend(lost(&project.root, &document).await);
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => {
            terminal::print(headline(&document));
            term::print(table(&document, ROWS));
        }
    }
    Ok(Exit::Ok)
}

/// Whether a directory belongs to a project: a repository that has run, or has settings.
async fn is_project(dir: &Path) -> bool {
    let Ok(checkout) = git::Checkout::containing(dir).await else { return false };
    let settings = longhaul_activities::project::settings(&checkout.top);
    let is_missing = |failure: &Failure| failure.code.as_deref() == Some(NO_SETTINGS);
    !settings.is_err_and(|failure| is_missing(&failure)) || Project::known_at(dir).await.is_some()
}

/// The table of all projects.
async fn all(data_dir: &Path, output: Output) -> Result<Exit> {
    let document = match Client::reach(data_dir, term::notice).await? {
        Some(client) => overview::all(&client).await?,
        None => OverviewDocument::default(),
    };
    match output {
        Output::Json => document::print(&document)?,
        Output::Table if document.projects.is_empty() => {
            term::say(format!(
                "no project has run in {}: `longhaul run DIR` begins one",
                data_dir.display()
            ));
        }
        Output::Table => term::print(overview::table(&document)),
    }
    Ok(Exit::Ok)
}

/// The sandbox of the project's programs on this machine; `None` if its settings are unreadable.
fn sandbox(project: &Project) -> Option<String> {
    let settings = longhaul_activities::project::settings(&project.root).ok()?;
    Some(confine::in_force(settings.agent.sandbox).unwrap_or_else(|failure| failure.message))
}

/// The status of a project by the log, or by its files if it is not in the log. The current list
/// counts at rest.
pub(super) async fn document(data_dir: &Path, project: &Project) -> Result<StatusDocument> {
    let client = Client::reach(data_dir, term::notice).await?;
    let of_log = async |list| match &client {
        Some(client) => {
            let status = ProjectStatus { project: project.id.clone(), list };
            Box::pin(super::call(client, status)).await
        }
        None => Ok(None),
    };
    // A process that runs the project has read its list.
    if let Some(Client::Remote(_)) = client
        && let Some(document) = of_log(None).await?
        && document.is_running
        && !document.root.is_empty()
    {
        return Ok(document);
    }
    let loaded = longhaul_activities::project::load(&project.root).await;
    let status = of_log(loaded.as_ref().ok().cloned()).await?;
    let mut document = match status.filter(|status| !status.root.is_empty()) {
        Some(document) if document.is_running => return Ok(document),
        Some(document) => document,
        None => {
            let loaded = loaded.clone().map_err(failed)?;
            status::of_files(&project.id, &project.root.to_string_lossy(), Some(loaded))
        }
    };
    document.problem = match loaded {
        Ok(loaded) => {
            let list = project.root.join(&loaded.list_file);
            let problem = longhaul_workflows::backlog::Backlog::new(loaded.features).err();
            problem.map(|error| format!("{}: {error}", list.display())).or(document.problem)
        }
        Err(failure) => Some(failure.message),
    };
    Ok(document)
}
