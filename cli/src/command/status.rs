//! `longhaul status`.

use std::path::Path;

use anyhow::Result;
use longhaul_activities::project::NO_SETTINGS;
use longhaul_activities::{confine, git};
use longhaul_engine::Failure;
use longhaul_workflows::project::SessionsPaused;
use longhaul_workflows::projection::ProjectState;

use super::overview;
use super::run::lost;
use super::terminal::{self, Terminal};
use crate::arguments::{Output, Show};
use crate::document;
use crate::exit::{Exit, failed};
use crate::place::Project;
use crate::term;
use longhaul_server::status::{self, FeatureLine, StatusDocument};
use longhaul_server::views::OverviewDocument;
use longhaul_server::{Client, ProjectStatus, advice};

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

/// The status of a project in a few lines.
pub(super) fn headline(document: &StatusDocument) -> String {
    let counts = document.counts;
    let hint = match document.status {
        ProjectState::Waiting if document.is_new() => ", never run".to_owned(),
        ProjectState::Waiting if document.is_running => ": other projects come first".to_owned(),
        // A process that takes the order pauses it.
        ProjectState::Waiting if document.is_to_pause() => String::new(),
        ProjectState::Waiting => format!(": {} continues it", advice::run(&document.root)),
        _ => String::new(),
    };
    let project = &document.project;
    let state = document.status.as_str();
    let mut text =
        format!("{project} ({state}{hint}): {} of {} features passed", counts.passed, counts.total);
    if counts.blocked > 0 {
        text += &format!(", {} blocked", counts.blocked);
    }
    if counts.cancelled > 0 {
        text += &format!(", {} cancelled", counts.cancelled);
    }
    if let Some(reason) = document.reason.as_ref().filter(|_| document.stopped_by.is_some()) {
        text += &format!("\n{}", terminal::safe(reason));
    }
    for entry in &document.pending {
        text += &format!("\npending: {}", entry.action);
    }
    if let Some(cause) = document.machine_wait() {
        text += &format!("\nwaiting: {cause}");
    }
    if let Some(reason) = &document.waits_on_next {
        text += &format!("\nfinished work waits on longhaul/next: {reason}");
    }
    if let Some(paused) = &document.sessions_paused {
        text += &format!("\n{}", sessions_paused(paused));
    }
    if let Some(reason) = &document.over_budget {
        text += &format!("\nno further session: {reason}");
    }
    if let Some(sandbox) = &document.sandbox {
        text += &format!("\nsandbox: {sandbox}");
    }
    for finding in &document.findings {
        text += &format!("\nnoticed: {}", terminal::safe(finding));
    }
    let findings = document.features.iter().flat_map(|line| {
        line.findings.iter().map(|finding| format!("{}: {}", line.id, terminal::safe(finding)))
    });
    for finding in findings.clone().take(ROWS) {
        text += &format!("\nnoticed on {finding}");
    }
    let more = findings.skip(ROWS).count();
    if more > 0 {
        text += &format!("\nnoticed: {more} more findings (-o json shows all)");
    }
    for stuck in &document.stuck {
        text += &format!("\nrun {} cannot go on: {}", stuck.run, stuck.reason);
    }
    if let Some(problem) = &document.problem {
        text += &format!("\nproblem: {problem}");
    }
    text
}

/// Why no session starts.
pub(crate) fn sessions_paused(paused: &SessionsPaused) -> String {
    let reason = first_line(&paused.reason);
    match paused.until {
        Some(until) => {
            format!("sessions paused until {}: {reason}", until.format("%Y-%m-%d %H:%M:%S UTC"))
        }
        None => format!("sessions paused: {reason}"),
    }
}

/// How many features are shown.
pub(super) const ROWS: usize = 100;

/// The feature table.
pub(super) fn table(document: &StatusDocument, most: usize) -> String {
    let terminal = Terminal::here();
    let row = |line: &FeatureLine| {
        let sessions = if line.sessions == 0 { String::new() } else { line.sessions.to_string() };
        vec![
            line.id.clone(),
            terminal.state(line.status.as_str()),
            sessions,
            terminal::safe(&remark(line)),
        ]
    };
    // Of many features, those that are in progress or need a person.
    let all = &document.features;
    let is_open = |line: &&FeatureLine| line.is_in_progress() || line.is_blocked();
    let shown: Vec<&FeatureLine> = if all.len() <= most {
        all.iter().collect()
    } else {
        let others = all.iter().filter(|line| !is_open(line));
        all.iter().filter(is_open).chain(others).take(most).collect()
    };
    let rows: Vec<_> = shown.iter().map(|line| row(line)).collect();
    let table = terminal.table(&["FEATURE", "STATUS", "SESSIONS", ""], &rows);
    match all.len() - shown.len() {
        0 => table,
        more => format!("{table}\nand {more} more features (-o json shows all)"),
    }
}

fn remark(line: &FeatureLine) -> String {
    if let Some(remark) = line.remark() {
        return first_line(&remark);
    }
    if let Some(step) = &line.step {
        return step.clone();
    }
    if let Some(feature) = &line.invalidated {
        return format!("invalidated: {feature} was taken back");
    }
    if !line.waiting_for.is_empty() && !line.passes {
        return format!("for {}", line.waiting_for.join(", "));
    }
    line.commit.as_ref().map(|commit| commit.chars().take(10).collect()).unwrap_or_default()
}

/// The beginning of a longer string; `feature show` and JSON have all of it.
pub(super) fn first_line(text: &str) -> String {
    const ENOUGH: usize = 160;
    terminal::short(text.lines().next().unwrap_or_default(), ENOUGH)
}
