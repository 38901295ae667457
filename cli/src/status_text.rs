//! The status of a project as text for people.

use longhaul_server::advice;
use longhaul_server::status::{FeatureLine, StatusDocument};
use longhaul_workflows::project::SessionsPaused;
use longhaul_workflows::projection::ProjectState;

use crate::terminal::{self, Terminal};

/// The status of a project in a few lines.
pub(crate) fn headline(document: &StatusDocument) -> String {
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
pub(crate) const ROWS: usize = 100;

/// The feature table.
pub(crate) fn table(document: &StatusDocument, most: usize) -> String {
    let terminal = Terminal::here();
    let row = |line: &FeatureLine| {
        let sessions = if line.sessions == 0 { String::new() } else { line.sessions.to_string() };
        vec![line.id.clone(), terminal.state(line.status), sessions, terminal::safe(&remark(line))]
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
pub(crate) fn first_line(text: &str) -> String {
    const ENOUGH: usize = 160;
    terminal::short(text.lines().next().unwrap_or_default(), ENOUGH)
}
