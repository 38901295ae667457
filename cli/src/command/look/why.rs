//! `longhaul why`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chrono::Utc;
use longhaul_activities::{git, project};
use longhaul_workflows::backlog::Feature;

use super::terminal::{self, Terminal};
use crate::arguments::Output;
use crate::arguments::look::Named;
use crate::document;
use crate::exit::Exit;
use crate::place::Project;
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::why::{self, Reason};
use longhaul_server::views::{Why, WhyDocument};
use longhaul_workflows::projection::ProjectView;

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
    let name = super::name(&arguments.one.run, &arguments.one.within.dir).await?;
    let list = listed(arguments).await.map(|(_, features)| features);
    let why = Why { name, list };
    let (error, has_run) = match Client::reach(data_dir, term::notice).await? {
        None => (crate::command::no_log(data_dir), false),
        Some(access) => match super::call(&access, why).await {
            Ok(document) => return Ok(document),
            Err(error) => (error, true),
        },
    };
    match of_list(arguments, has_run).await {
        Some(document) if super::is_usage(&error) => Ok(document),
        _ => Err(error),
    }
}

/// The current list.
async fn listed(arguments: &Named) -> Option<(PathBuf, Vec<Feature>)> {
    let root = git::Checkout::containing(&arguments.one.within.dir).await.ok()?.top;
    let loaded = project::load(&root).await.ok()?;
    Some((root, loaded.features))
}

async fn of_list(arguments: &Named, has_run: bool) -> Option<WhyDocument> {
    let (root, features) = listed(arguments).await?;
    let feature = features.iter().find(|feature| feature.id.as_str() == arguments.one.run)?;
    let project = Project::at(&root).await.ok()?;
    let state = ProjectView::default().with_list(features.clone()).state(&feature.id);
    Some(why::of_list(feature.id.as_str(), &project.id, state, has_run))
}

/// The explanation as text for people.
pub(in crate::command) fn text(terminal: Terminal, document: &WhyDocument) -> String {
    let run =
        document.header.run.as_ref().map(ToString::to_string).filter(|run| *run != document.about);
    let run = run.map(|run| format!(" ({run})")).unwrap_or_default();
    let mut lines = vec![terminal.indented(
        0,
        &format!("{}{run}: {}", document.about, terminal.state(document.header.status.as_str())),
    )];
    for reason in &document.reasons {
        lines.push(self::reason(terminal, reason));
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
