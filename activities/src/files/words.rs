//! What is told of an event, in sentences.

use longhaul_engine::RequestedBy;
use longhaul_workflows::contracts::{
    ChecksReport, Evidence, Landed, Sealed, SessionEnding, SessionInput, SessionReason, SessionReport,
};
use longhaul_workflows::feature::FeatureProgress;
use longhaul_workflows::prompt;

use super::text::{counted, last_lines, length_of, some_of};

/// Paragraphs, without those that are empty.
pub(super) fn paragraphs(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

pub(super) fn session_started(input: &SessionInput, attempt: u32) -> String {
    let why = match input.reason {
        SessionReason::Start => "the first of this run.",
        SessionReason::Continue => "it goes on from the one before, whose context was full.",
        SessionReason::Retry => "the one before failed.",
        SessionReason::Repair => "the project fails its own set-up or baseline check, and that is repaired first.",
        SessionReason::GatesFailed => "the gates failed.",
        SessionReason::Conflict => "the work does not merge with what was finished since.",
    };
    let again = if attempt > 1 { format!(" Attempt {attempt}: the one before was cut off.") } else { String::new() };
    format!("Session {}: {why}{again}", input.number)
}

pub(super) fn session_ended(report: &SessionReport) -> String {
    let took = length_of(report.duration_ms);
    let ending = match &report.ending {
        SessionEnding::ClaimsDone => format!("The agent says that the feature is done, after {took}."),
        SessionEnding::ContextFull => format!("The context is full after {took}; a fresh session goes on."),
        SessionEnding::NotStarted { reason } => format!("The agent could not be started: {reason}"),
        SessionEnding::Landed { commit, .. } => {
            format!("No agent was started: the work of this run had landed as {commit}.")
        }
        SessionEnding::Failed { reason, .. } => {
            let output = last_lines(&report.output_tail);
            let ending = format!("It ended after {took}: {reason}.");
            return paragraphs(&[&ending, &output, &report.notes, &unread(report.unread_notes.as_deref())]);
        }
    };
    paragraphs(&[&ending, &report.notes, &unread(report.unread_notes.as_deref())])
}

fn unread(reason: Option<&str>) -> String {
    reason.map(prompt::unread_notes).unwrap_or_default()
}

pub(super) fn retried(message: &str, retry_at: Option<String>) -> String {
    match retry_at {
        Some(at) => format!("{message}\nIt is tried again at {at}."),
        None => message.to_owned(),
    }
}

pub(super) fn checkpoint(sealed: &Sealed) -> String {
    let files = &sealed.files;
    let work = if files.is_empty() {
        "The branch holds no work yet.".to_owned()
    } else {
        format!("The work is committed. The branch changes {}: {}.", counted(files.len(), "file"), some_of(files))
    };
    paragraphs(&[&work, &sealed.notes, &unread(sealed.unread_notes.as_deref())])
}

pub(super) fn tampering(sealed: &Sealed) -> String {
    let changes: Vec<String> =
        sealed.tampered.iter().map(|tampering| format!("- {}: {}", tampering.file, tampering.what)).collect();
    let kept =
        sealed.rescued.as_ref().map_or_else(String::new, |kept| format!("What was there before is kept under {kept}."));
    paragraphs(&["The agent changed what it may not. This was put back:", &changes.join("\n"), &kept])
}

pub(super) fn passed_checks(report: &ChecksReport, merged: bool) -> String {
    let names: Vec<String> = report.evidence.iter().map(|evidence| evidence.name.clone()).collect();
    let place = if merged { " on the merged result" } else { "" };
    format!("{} passed{place}: {}.", counted(names.len(), "check"), some_of(&names))
}

pub(super) fn failed_check(failed: &Evidence, merged: bool) -> String {
    let place = if merged { " on the merged result" } else { "" };
    // Agents read this file.
    if let Some(held_out) = &failed.held_out {
        let ending = format!("The held-out check `{}` failed{place}.", failed.name);
        return paragraphs(&[&ending, held_out.message.as_deref().unwrap_or_default()]);
    }
    let ending = format!("`{}` failed{place}: {}.\nCommand: {}", failed.name, failed.ending(), failed.command);
    paragraphs(&[&ending, &last_lines(&failed.output_tail)])
}

pub(super) fn conflict(tip: &str, files: &[String], output: &str) -> String {
    let what = format!("The work does not merge with {tip}. In conflict: {}.", some_of(files));
    paragraphs(&[&what, &last_lines(output)])
}

pub(super) fn landed(landed: &Landed) -> String {
    landed.waits_on_next.as_ref().map_or_else(
        || format!("The target branch stands on {}.", landed.target_commit),
        |why| format!("It waits on longhaul/next: {why}"),
    )
}

pub(super) fn completed(progress: &FeatureProgress, files: &[String], waits_on_next: Option<&str>) -> String {
    let sessions = counted(progress.sessions as usize, "session");
    let files = if files.is_empty() { String::new() } else { format!(", {} changed", counted(files.len(), "file")) };
    let waits = waits_on_next.map_or_else(String::new, |why| format!("It waits on longhaul/next: {why}"));
    paragraphs(&[&format!("Its gates passed: {sessions}{files}."), &waits])
}

/// Who asked for something, and why.
pub(super) fn asked(what: &str, request: &RequestedBy) -> String {
    let by = if request.by.is_empty() { String::new() } else { format!(" by {}", request.by) };
    let why = if request.why.is_empty() { String::new() } else { format!(": {}", request.why) };
    format!("{what}{by}{why}")
}
