//! `longhaul feature`: reading and changing the features of a project.

mod documents;
mod export;
mod import;

use std::path::Path;

use anyhow::Result;
use longhaul_activities::project;
use longhaul_engine::RunId;
use longhaul_workflows::backlog::{Backlog, Block, BlockCause, Check, Feature, FeatureId};
use longhaul_workflows::project::signal;
use longhaul_workflows::projection::State;
use serde_json::{Value, json};

use crate::arguments::{
    self, FeatureAdd, FeatureAll, FeatureChange, FeatureCommand, FeatureName, Output,
    RequestArguments,
};
use crate::document;
use crate::exit::{Exit, failed, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::status::StatusDocument;
use longhaul_server::{Client, SendSignal, advice};

use super::status;
use super::terminal::{self, safe};
use crate::status_text;
pub(super) use documents::{FeatureDocument, FeaturesDocument, NextDocument};
pub(super) use import::ImportDocument;
use longhaul_server::refuse_within_session;

pub(super) async fn run(data_dir: &Path, arguments: arguments::Feature) -> Result<Exit> {
    let dir = &arguments.dir;
    match arguments.command {
        FeatureCommand::Add(add) => {
            refuse_within_session("feature add", data_dir)?;
            add_feature(dir, &add).await
        }
        FeatureCommand::Import(import) => {
            refuse_within_session("feature import", data_dir)?;
            import::run(import.place.as_ref().unwrap_or(dir), &import).await
        }
        FeatureCommand::Export(export) => {
            export::run(export.place.as_ref().unwrap_or(dir), &export).await
        }
        FeatureCommand::List(FeatureAll { list, all }) => {
            let most = if all { usize::MAX } else { terminal::rows() };
            list_features(data_dir, list.place.as_ref().unwrap_or(dir), list.output, most).await
        }
        FeatureCommand::Show(name) => Box::pin(show(data_dir, dir, &name)).await,
        FeatureCommand::Next(list) => {
            let dir = list.place.as_ref().unwrap_or(dir);
            Box::pin(next(data_dir, dir, list.output)).await
        }
        FeatureCommand::Block(block) => block_feature(data_dir, dir, &block).await,
        FeatureCommand::Unblock(unblock) => unblock_feature(data_dir, dir, &unblock).await,
    }
}

async fn add_feature(dir: &Path, arguments: &FeatureAdd) -> Result<Exit> {
    let project = Project::at(dir).await?;
    let path = longhaul_server::add_feature(&project.root, &feature(arguments)?)?;
    term::say(format!(
        "added {} to {}; a running Longhaul reads it at once",
        arguments.id,
        path.display()
    ));
    Ok(Exit::Ok)
}

fn feature(arguments: &FeatureAdd) -> Result<Feature> {
    let id = |text: &String| FeatureId::new(text.clone()).map_err(usage);
    let checks = arguments.check.iter().enumerate().map(|(index, run)| Check {
        name: if index == 0 { "check".into() } else { format!("check {}", index + 1) },
        run: run.clone(),
        ..Check::default()
    });
    Ok(Feature {
        description: arguments.description.clone(),
        acceptance_criteria: arguments.criterion.clone(),
        depends_on: arguments.depends_on.iter().map(id).collect::<Result<_>>()?,
        checks: checks.collect(),
        priority: arguments.priority,
        ..Feature::new(id(&arguments.id)?, arguments.name.clone())
    })
}

/// `most`: how many features are shown; the rest is counted.
async fn list_features(data_dir: &Path, dir: &Path, output: Output, most: usize) -> Result<Exit> {
    let project = Project::at(dir).await?;
    let mut document = status::document(data_dir, &project).await?;
    if let Some(problem) = &document.problem {
        term::say(format!("longhaul: these are the features as they last were: {problem}"));
    }
    match output {
        Output::Table => {
            let total = document.features.len();
            if total > most {
                // Those that run or need a person first, else in the order of the list.
                document.features.sort_by_key(|line| urgency(line.status));
                document.features.truncate(most);
            }
            term::print(status_text::table(&document, usize::MAX));
            if total > most {
                term::print(format!("and {} more; --all shows all {total}", total - most));
            }
        }
        Output::Json => {
            let StatusDocument { project, features, problem, .. } = document;
            document::print(FeaturesDocument { project, problem, features })?;
        }
    }
    Ok(Exit::Ok)
}

/// The place of a state in a shortened list.
fn urgency(state: State) -> u8 {
    match state {
        State::Blocked | State::Failed | State::Parked | State::NeedsAttention => 0,
        State::Running | State::Paused => 1,
        State::Pending => 2,
        State::Waiting => 3,
        State::Passed | State::Cancelled | State::Done => 4,
    }
}

async fn show(data_dir: &Path, dir: &Path, arguments: &FeatureName) -> Result<Exit> {
    let project = Project::at(dir).await?;
    let loaded = project::load(&project.root).await.map_err(failed)?;
    let feature = known(&arguments.id, &loaded.features, &project.root)?;
    let document = status::document(data_dir, &project).await?;
    let line = document.features.iter().find(|line| line.id == feature.id.as_str());
    match arguments.output {
        Output::Json => {
            document::print(FeatureDocument {
                project: &document.project,
                entry: feature,
                state: line,
            })?;
        }
        Output::Table => {
            terminal::print(described(feature));
            if let Some(line) = line {
                terminal::print(format!("status:       {}", line.status));
                for (name, text) in [
                    ("run", line.run.as_ref().map(RunId::to_string)),
                    ("step", line.step.clone()),
                    ("reason", line.reason.clone()),
                    ("commit", line.commit.clone()),
                ] {
                    if let Some(text) = text {
                        let lines: Vec<String> = text.lines().map(safe).collect();
                        terminal::print(format!("{:<14}{}", format!("{name}:"), lines.join("\n")));
                    }
                }
            }
        }
    }
    Ok(Exit::Ok)
}

fn described(feature: &Feature) -> String {
    let mut text = format!("{}: {}\n", feature.id, safe(&feature.name));
    if !feature.description.is_empty() {
        let lines: Vec<String> = feature.description.lines().map(safe).collect();
        text += &format!("\n{}\n", lines.join("\n"));
    }
    for criterion in &feature.acceptance_criteria {
        text += &format!("  - {}\n", safe(criterion));
    }
    for check in &feature.checks {
        text += &format!("check:        {} ({})\n", safe(&check.run), safe(&check.name));
    }
    let depends: Vec<_> = feature.depends_on.iter().map(FeatureId::as_str).collect();
    text += &format!(
        "depends on:   {}\n",
        if depends.is_empty() { "nothing".into() } else { depends.join(", ") }
    );
    text += &format!("priority:     {}", feature.priority);
    if feature.approval {
        text += "\napproval:     a person has to agree before it is merged";
    }
    text
}

/// How many of the next features are shown.
const NEXT: usize = 100;

async fn next(data_dir: &Path, dir: &Path, output: Output) -> Result<Exit> {
    let project = Project::at(dir).await?;
    let loaded = project::load(&project.root).await.map_err(failed)?;
    let document = status::document(data_dir, &project).await?;
    let backlog = backlog(loaded.features, &document)?;
    let workable: Vec<&FeatureId> = backlog.workable().collect();
    match output {
        Output::Json => {
            let workable = workable.iter().map(ToString::to_string).collect();
            document::print(NextDocument { project: document.project, workable })?;
        }
        Output::Table => {
            for id in workable.iter().take(NEXT) {
                let name =
                    backlog.feature(id).map(|feature| feature.name.as_str()).unwrap_or_default();
                terminal::print(format!("{id}  {}", safe(name)));
            }
            let more = workable.len().saturating_sub(NEXT);
            if more > 0 {
                terminal::print(format!("and {more} more (-o json names all)"));
            }
        }
    }
    if workable.is_empty() {
        let status = advice::command(["status", document.root.as_str()]);
        term::say(format!("nothing can be worked on now: {status} says why"));
    }
    Ok(Exit::Ok)
}

/// The backlog with the states of the log.
fn backlog(features: Vec<Feature>, document: &StatusDocument) -> Result<Backlog> {
    let mut backlog = Backlog::new(features).map_err(usage)?;
    for line in &document.features {
        let Ok(id) = FeatureId::new(line.id.clone()) else { continue };
        // A feature that was removed from the list has no state to set.
        let _ = match line.status {
            State::Passed => backlog.mark_passed(&id),
            _ if line.is_in_progress() => backlog.mark_in_progress(&id),
            State::Blocked => {
                let reason = line.reason.clone().unwrap_or_default();
                backlog.mark_blocked(&id, Block { cause: BlockCause::Request, reason })
            }
            _ => Ok(()),
        };
    }
    Ok(backlog)
}

async fn block_feature(data_dir: &Path, dir: &Path, arguments: &FeatureChange) -> Result<Exit> {
    let (project, id) = in_list(dir, &arguments.id).await?;
    let requested = &arguments.request;
    let reason = if requested.why.is_empty() { "blocked by a person" } else { &requested.why };
    let waits = signal_project(
        data_dir,
        &project,
        signal::BLOCK,
        json!({ "feature": id, "reason": reason }),
        requested,
    )
    .await?;
    term::say(if waits {
        format!("{id}: will be blocked at the next {}", advice::run(&project.root))
    } else {
        format!("{id}: blocked")
    });
    Ok(Exit::Ok)
}

async fn unblock_feature(data_dir: &Path, dir: &Path, arguments: &FeatureChange) -> Result<Exit> {
    let (project, id) = in_list(dir, &arguments.id).await?;
    let known = status::document(data_dir, &project).await?;
    let line = known.features.iter().find(|line| line.id == id.as_str());
    if let Some(line) = line.filter(|line| !known.is_new() && !line.is_blocked()) {
        return Err(usage(format!("{id} is not blocked: it is {}", line.status)));
    }
    signal_project(data_dir, &project, signal::UNBLOCK, json!(id), &arguments.request).await?;
    let run = advice::run(&project.root);
    term::say(format!("{id}: unblocked; {run} tries it again if no process runs this project"));
    Ok(Exit::Ok)
}

async fn in_list(dir: &Path, id: &str) -> Result<(Project, FeatureId)> {
    let project = Project::at(dir).await?;
    let loaded = project::load(&project.root).await.map_err(failed)?;
    let id = known(id, &loaded.features, &project.root)?.id.clone();
    Ok((project, id))
}

fn known<'a>(id: &str, features: &'a [Feature], root: &Path) -> Result<&'a Feature> {
    let list = advice::command(["feature", "list", &root.to_string_lossy()]);
    let unknown = || usage(format!("there is no feature `{id}`; {list} shows the ids"));
    features.iter().find(|feature| feature.id.as_str() == id).ok_or_else(unknown)
}

/// Returns whether the signal waits for a process that runs the project.
async fn signal_project(
    data_dir: &Path,
    project: &Project,
    name: &str,
    payload: Value,
    requested: &RequestArguments,
) -> Result<bool> {
    let never = || usage(format!("project {} has never run: edit its list instead", project.id));
    let access = Client::reach(data_dir, term::notice).await?.ok_or_else(never)?;
    let request = requested.request();
    let run = project.id.clone();
    let send = SendSignal { run, name: name.into(), payload, request };
    Ok(super::call(&access, send).await?.waits())
}
