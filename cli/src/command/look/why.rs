//! `longhaul why`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chrono::Utc;
use longhaul_activities::{git, project};
use longhaul_engine::RunId;
use longhaul_workflows::backlog::Feature;

use super::terminal::{self, Terminal};
use crate::arguments::look::Named;
use crate::arguments::{Output, Target};
use crate::document;
use crate::exit::{Exit, usage};
use crate::place::Project;
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::why::{self, Reason};
use longhaul_server::views::{Why, WhyDocument};
use longhaul_workflows::projection::ProjectView;

/// How many reasons are shown.
const REASONS: usize = 20;

pub(super) async fn run(data_dir: &Path, arguments: &Named) -> Result<Exit> {
    let document = document(data_dir, arguments).await?;
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => term::print(text(Terminal::here(), &document)),
    }
    Ok(Exit::Ok)
}

/// The explanation by the log, or by the list for a feature that is not in the log.
async fn document(data_dir: &Path, arguments: &Named) -> Result<WhyDocument> {
    let Target { target, scope } = &arguments.target;
    let client = Client::reach(data_dir, term::notice).await?;
    let is_dir = target.as_ref().is_none_or(|target| Path::new(target).is_dir());
    if is_dir && let Some(client) = &client {
        // A feature without a run may have the name of a directory.
        let run = super::named::target(client, &arguments.target).await;
        if let Ok(run) = run {
            let why = Why { name: super::named::exact(&run), list: None };
            return super::call(client, why).await.map_err(|error| never_run(error, &run));
        }
    }
    let Some(target) = target else { return Err(crate::command::no_log(data_dir)) };
    let name = super::name(target, &scope.dir).await?;
    // A process that runs the project has read its list.
    let list = match &client {
        Some(Client::Remote(_)) => None,
        _ => listed(&scope.dir).await.map(|(_, features)| features),
    };
    let why = Why { name, list };
    let (error, has_run) = match client {
        None => (crate::command::no_log(data_dir), false),
        Some(access) => match super::call(&access, why).await {
            Ok(document) => return Ok(document),
            Err(error) => (error, true),
        },
    };
    match of_list(target, &scope.dir, has_run).await {
        Some(document) if super::is_usage(&error) => Ok(document),
        _ => Err(error),
    }
}

/// The error for a project that is not in the log.
fn never_run(error: anyhow::Error, run: &RunId) -> anyhow::Error {
    if super::is_usage(&error) {
        return usage(format!("project {run} has not run yet: `longhaul run` starts it"));
    }
    error
}

/// The current list.
async fn listed(dir: &Path) -> Option<(PathBuf, Vec<Feature>)> {
    let root = git::Checkout::containing(dir).await.ok()?.top;
    let loaded = project::load(&root).await.ok()?;
    Some((root, loaded.features))
}

async fn of_list(target: &str, dir: &Path, has_run: bool) -> Option<WhyDocument> {
    let (root, features) = listed(dir).await?;
    let feature = features.iter().find(|feature| feature.id.as_str() == target)?;
    let project = Project::at(&root).await.ok()?;
    let state = ProjectView::default().with_list(features.clone()).state(&feature.id);
    Some(why::of_list(feature.id.as_str(), &project.id, &root, state, has_run))
}

/// The explanation as text for people.
pub(in crate::command) fn text(terminal: Terminal, document: &WhyDocument) -> String {
    let run =
        document.header.run.as_ref().map(ToString::to_string).filter(|run| *run != document.about);
    let run = run.map(|run| format!(" ({run})")).unwrap_or_default();
    let mut lines = vec![terminal.indented(
        0,
        &format!("{}{run}: {}", document.about, terminal.state(document.header.status)),
    )];
    for reason in document.reasons.iter().take(REASONS) {
        lines.push(self::reason(terminal, reason));
    }
    let more = document.reasons.len().saturating_sub(REASONS);
    if more > 0 {
        lines.push(terminal.indented(2, &format!("and {more} more reasons (-o json names all)")));
    }
    lines.join("\n")
}

fn reason(terminal: Terminal, reason: &Reason) -> String {
    let now = Utc::now();
    let left = reason
        .until
        .filter(|until| *until > now)
        .map(|until| format!(" (in {})", terminal::span(until - now)));
    let text = format!("{}{}", terminal::safe(&reason.text), left.unwrap_or_default());
    let mut lines = vec![terminal.indented(2, &text)];
    let output = reason.output.iter().map(|line| {
        let room = terminal.width.map_or(usize::MAX, |width| width.saturating_sub(6));
        terminal.paint(
            terminal::Colour::Dim,
            format!("    | {}", terminal::short(&terminal::safe(line), room)).trim_end(),
        )
    });
    lines.extend(output);
    if let Some(remedy) = &reason.remedy {
        lines.push(terminal.indented(2, &format!("→ {remedy}")));
    }
    lines.join("\n")
}
