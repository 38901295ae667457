//! Rollbacks of one project, of several named ones, or of all that a filter selects.

use longhaul_server::RunKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use longhaul_engine::{RequestedBy, RunId};

use super::documents::{RefusedRollback, RollbackDocument, RollbacksDocument};
use crate::arguments::{Filter, Output, Rollback};
use crate::command::selection::Reach;
use crate::command::steer::read_names;
use crate::command::terminal::counted;
use crate::command::{call, confirmed, named, owner, reach, selection};
use crate::document;
use crate::exit::{self, Exit, operational, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::{Client, Error, Gone, Limits, ProjectStatus, RollBack, RolledBack, advice};

/// A project that is rolled back.
struct Target {
    project: RunId,
    root: PathBuf,
}

/// The results by project.
type Results = Vec<(Target, Result<RolledBack>)>;

pub(in crate::command) async fn rollback(data_dir: &Path, arguments: Rollback) -> Result<Exit> {
    let selection = &arguments.selection;
    if !arguments.targets.is_empty() && !selection.filters.is_empty() {
        return Err(usage("give either projects or --filter, not both"));
    }
    let names = read_names(&arguments.targets)?;
    let is_single = selection.filters.is_empty() && names.len() == 1 && names == arguments.targets;
    // Fails without a log, because owning the log would create one.
    let client = reach(data_dir).await?;
    let mut targets = targets(&client, &arguments, &names).await?;
    targets.truncate(selection.limit.unwrap_or(usize::MAX));
    if targets.is_empty() {
        term::say("no project matches");
    }
    let request = arguments.request.request();
    let order = |target: &Target, dry_run: bool| RollBack {
        project: target.project.clone(),
        to: arguments.to.clone(),
        request: request.clone(),
        dry_run,
    };
    let mut results = Results::new();
    if selection.dry_run || !selection.yes {
        for target in targets {
            let preview = call(&client, order(&target, true)).await;
            results.push((target, preview));
        }
        drop(client);
        if is_single && let Some((_, Err(_))) = results.first() {
            return results.remove(0).1.map(|_| Exit::Ok);
        }
        if selection.dry_run {
            return show(&results, &arguments, is_single, &request);
        }
        confirm(&results)?;
        let (ready, refused): (Results, Results) =
            results.into_iter().partition(|(_, preview)| preview.is_ok());
        targets = ready.into_iter().map(|(target, _)| target).collect();
        results = refused;
    } else {
        drop(client);
    }
    for target in targets {
        match perform(data_dir, order(&target, false)).await {
            Ok(None) => return Ok(Exit::Suspended),
            Err(error) if is_single => return Err(error),
            Ok(Some(done)) => results.push((target, Ok(done))),
            Err(error) => results.push((target, Err(error))),
        }
    }
    show(&results, &arguments, is_single, &request)
}

/// The named projects, by directory or id, or those that the filters select.
async fn targets(client: &Client, arguments: &Rollback, names: &[String]) -> Result<Vec<Target>> {
    let mut found: Vec<Target> = Vec::new();
    for name in names {
        if Path::new(name).is_dir() {
            let Project { id, root } = Project::at(Path::new(name)).await?;
            found.push(Target { project: id, root });
        } else {
            let project = named::project(client, name)
                .await
                .map_err(|error| usage(format!("there is no directory {name}, and {error:#}")))?;
            found.push(known(client, project).await?);
        }
    }
    let mut filters = arguments.selection.filters.clone();
    if filters.is_empty() {
        return Ok(found);
    }
    if !filters.iter().any(|filter| matches!(filter, Filter::Kind(_) | Filter::Feature(_))) {
        filters.push(Filter::Kind(RunKind::Project));
    }
    let runs = selection::select(client, &filters, Reach::All).await?;
    let of_projects =
        runs.iter().filter(|run| matches!(run.workflow, RunKind::Project | RunKind::Feature));
    let mut projects: Vec<&String> =
        of_projects.filter_map(|run| run.header.project.as_ref()).collect();
    projects.dedup();
    for project in projects {
        found.push(known(client, RunId::new(project.clone())?).await?);
    }
    Ok(found)
}

async fn known(client: &Client, project: RunId) -> Result<Target> {
    let status = ProjectStatus { project: project.clone(), list: None };
    let root = call(client, status).await?.map(|status| status.root).unwrap_or_default();
    Ok(Target { project, root: PathBuf::from(root) })
}

/// Asks for confirmation, if several features would be done again.
fn confirm(previews: &Results) -> Result<()> {
    let previews =
        previews.iter().filter_map(|(target, preview)| Some((target, preview.as_ref().ok()?)));
    let previews: Vec<_> = previews.filter(|(_, preview)| !preview.undone.is_empty()).collect();
    let count: usize = previews.iter().map(|(_, preview)| preview.undone.len()).sum();
    if count <= 1 {
        return Ok(());
    }
    let of = |(target, preview): &(&Target, &RolledBack)| match previews.len() {
        1 => preview.undone.join(", "),
        _ => format!("{}: {}", target.project, preview.undone.join(", ")),
    };
    let features = previews.iter().map(of).collect::<Vec<_>>().join("; ");
    confirmed(
        &format!("undo {count} features ({features})"),
        &format!("{count} features would be done again: {features}"),
    )
}

/// Rolls a project back; `None` if interrupted.
async fn perform(data_dir: &Path, roll_back: RollBack) -> Result<Option<RolledBack>> {
    // The project is halted, so this process starts no agent when it owns the log.
    let limits = Limits { agents: 1, checks: 1 };
    owner::join_or_own(data_dir, limits, async |client, _| {
        call(client, roll_back.clone()).await.map_err(|error| match error.downcast_ref() {
            Some(Error::Gone(gone)) if !matches!(gone, Gone::NotSent) => operational(gone),
            _ => error,
        })
    })
    .await
}

fn show(
    results: &Results,
    arguments: &Rollback,
    is_single: bool,
    request: &RequestedBy,
) -> Result<Exit> {
    let dry_run = arguments.selection.dry_run;
    let RequestedBy { by, why } = request;
    let mut rollbacks = Vec::new();
    let mut refused = Vec::new();
    let mut exits = Vec::new();
    for (Target { project, root }, result) in results {
        match result {
            Ok(RolledBack { to, kept, undone }) => {
                let name = if is_single { String::new() } else { format!("{project}: ") };
                let shown =
                    if undone.is_empty() { "no feature".to_owned() } else { undone.join(", ") };
                term::say(if dry_run {
                    format!("{name}would be rolled back to {to}; to be done again: {shown}")
                } else {
                    let run = advice::run(root);
                    format!(
                        "{name}rolled back to {to}; to be done again: {shown}; the old tip is \
                         kept: {kept}; {run} continues from there"
                    )
                });
                rollbacks.push(RollbackDocument {
                    project: project.to_string(),
                    dry_run,
                    to: to.clone(),
                    kept: kept.clone(),
                    undone: undone.clone(),
                    by,
                    why,
                });
                exits.push(Exit::Ok);
            }
            Err(error) => {
                term::say(format!("{project}: not rolled back: {error:#}"));
                let project = project.to_string();
                let reason = format!("{error:#}");
                refused.push(RefusedRollback { project, reason });
                exits.push(exit::of(error));
            }
        }
    }
    if arguments.output == Output::Json {
        match rollbacks.pop() {
            Some(only) if is_single => document::print(only)?,
            last => {
                rollbacks.extend(last);
                document::print(RollbacksDocument { dry_run, rollbacks, refused })?;
            }
        }
    } else if !is_single {
        let projects = counted(rollbacks.len() as u64, "project");
        term::say(format!(
            "{projects} {}",
            if dry_run { "would be rolled back" } else { "rolled back" }
        ));
    }
    Ok(Exit::of_all(exits))
}
