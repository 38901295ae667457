//! `longhaul run`: runs projects until all have settled.

mod drift;
mod progress;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::{overview, owner};
use crate::arguments::{Output, Run};
use crate::document::{self, Titled};
use crate::exit::{self, Exit};
use crate::place::Project;
use crate::{status_text, term};
use longhaul_server::status::{LimitedWait, ProjectState, StatusDocument};
use longhaul_server::views::OverviewDocument;
use longhaul_server::{Due, refuse_out_of_reach, restore_checkouts, settled};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::projection::State;

pub(super) use drift::lost;
pub(super) use progress::Progress;
pub(super) use watch::{LOOK, OwnerWork};
use watch::{StopCondition, WatchEnd, begin, watch};

/// The states of the settled projects.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunDocument<'a> {
    /// The projects in the order of the command line.
    projects: Vec<Titled<&'a StatusDocument>>,
    /// Whether it ended before the projects had settled: `--once`, `--max-time`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_unsettled: bool,
    /// The earliest time at which such a project continues by itself; absent: when a person acts,
    /// or at once after `--max-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_due: Option<DateTime<Utc>>,
}

/// Runs projects until all have settled; with a feature, only that one and its dependencies, until
/// it has settled.
pub(super) async fn run(
    data_dir: &Path,
    arguments: &Run,
    feature: Option<&FeatureId>,
) -> Result<Exit> {
    restore_checkouts(data_dir, &arguments.dirs).await;
    let (projects, refused) = projects(&arguments.dirs).await;
    if !refused.is_empty() {
        refuse_out_of_reach(data_dir)?;
    }
    let mut exits: Vec<Exit> = refused.iter().map(exit::of).collect();
    for refusal in &refused {
        term::say(format!("longhaul: {refusal:#}"));
    }
    if projects.is_empty() {
        return Ok(Exit::of_all(exits));
    }
    let limits = arguments.limits.limits();
    let deadline = arguments.max_time.map(|time| Instant::now() + time.duration());
    let until = StopCondition { once: arguments.once, deadline, feature };
    let seen = owner::join_or_own(data_dir, limits, async |client, service| {
        // A process that runs all features already goes on with all.
        let only = feature.filter(|_| service.is_some());
        let watched = begin(client, &projects, arguments.take_over, only).await?;
        if service.is_none() {
            term::say("another Longhaul runs this log: joined it");
            owner::change_limits(client, &arguments.limits).await?;
        }
        let seen = watch(client, watched, service, until).await?;
        let mut at_end = seen.documents.clone();
        if service.is_some() {
            at_end.iter_mut().for_each(leave);
        }
        let overview = overview::of(client, &at_end).await;
        Ok((seen, at_end, overview))
    });
    let Some((WatchEnd { documents, due }, at_end, overview)) = seen.await? else {
        term::say("stopped; nothing is lost: the same command continues");
        return Ok(Exit::Suspended);
    };
    if due.is_some() {
        exits.push(Exit::Suspended);
    } else {
        let verdict = |document| {
            let of_feature = feature.and_then(|it| settled::verdict_of(document, it.as_str()));
            Exit::from(of_feature.unwrap_or_else(|| settled::verdict(document)))
        };
        exits.extend(documents.iter().map(verdict));
    }
    for document in &documents {
        if let Some(wait) = document.limited_wait() {
            say_wait(&document.project, wait, due.is_some());
        }
    }
    report(arguments.output, &at_end, &overview, due)?;
    Ok(Exit::of_all(exits))
}

/// The cause of a project's wait. `is_cut`: the command ended before the limit of the wait.
fn say_wait(project: &str, wait: LimitedWait<'_>, is_cut: bool) {
    let LimitedWait { of: what, cause } = wait;
    let cause = super::terminal::safe(&status_text::first_line(cause));
    if is_cut {
        return term::say(format!("{project}: waits for the {what}: {cause}"));
    }
    let waited = settled::machine_wait().as_secs();
    let advice = "fix that and repeat the command; LONGHAUL_MACHINE_WAIT=SECONDS waits longer";
    term::say(format!(
        "{project}: stopped after waiting {waited} s for the {what}: {cause}; {advice}"
    ));
}

/// The state of a project after the process that ran it.
fn leave(document: &mut StatusDocument) {
    document.is_running = false;
    if document.status == ProjectState::Running {
        document.status = ProjectState::Waiting;
    }
    for line in document.features.iter_mut().filter(|line| line.status == State::Running) {
        line.status = State::Waiting;
    }
}

/// The projects on the command line without duplicates, and the errors of the others.
async fn projects(dirs: &[PathBuf]) -> (Vec<Project>, Vec<anyhow::Error>) {
    let mut projects: Vec<Project> = Vec::new();
    let mut refused = Vec::new();
    for dir in dirs {
        match checked(dir).await {
            Ok(project) if projects.iter().all(|known| known.root != project.root) => {
                projects.push(project);
            }
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    (projects, refused)
}

/// A project that can run.
pub(super) async fn checked(dir: &Path) -> Result<Project> {
    let project = Project::at(dir).await?;
    for note in
        longhaul_server::check_project(&project.root).await.map_err(longhaul_server::Error::from)?
    {
        term::say(note);
    }
    Ok(project)
}

fn report(
    output: Output,
    documents: &[StatusDocument],
    overview: &OverviewDocument,
    due: Option<Due>,
) -> Result<()> {
    let next_due = due.filter(|due| !due.is_now).and_then(|due| due.at);
    match output {
        Output::Json => {
            let projects = documents.iter().map(Titled::of).collect();
            document::print(RunDocument { projects, is_unsettled: due.is_some(), next_due })?;
        }
        Output::Table => {
            if let [document] = documents {
                super::terminal::print(status_text::headline(document));
                term::print(status_text::table(document, status_text::ROWS));
            } else {
                term::print(overview::table(overview));
            }
            if let Some(at) = next_due {
                term::say(format!("nothing more can be done before {}", at.format("%F %T UTC")));
            }
        }
    }
    Ok(())
}
