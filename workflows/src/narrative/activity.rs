//! Text about activities: their inputs and outputs.

use longhaul_engine::payload::PayloadError;
use longhaul_engine::{Activity, Payload};

use super::{Entry, Kind};
use crate::contracts::{
    Block, CallModel, ChecksInput, ChecksReport, CloseWorktree, Evidence, Follow, Land, LandInput,
    Landed, LoadBacklog, LoadedBacklog, MergeCandidate, MergeInput, Merged, ModelAnswer,
    OpenWorktree, OutsideChange, Precheck, RunChecks, RunSession, RunSetup, Seal, Sealed,
    SessionEnding, SessionInput, SessionReason, SessionReport, SetupInput, SetupReport,
    ToolOutcome, ToolUse, Usage, UseTool, Worktree,
};
use crate::projection::{RunView, Step};
use crate::prompt;
use crate::session::step;
use crate::text::{counted, last_lines, short, some_of, took};

/// Whether an activity is the agent of a session.
pub(super) fn is_session(name: &str) -> bool {
    name == RunSession::NAME
}

/// The task of an activity.
pub(super) fn task(name: &str, input: &Payload) -> String {
    let known = match name {
        RunSession::NAME => {
            input.read::<SessionInput>().map(|input| session_name(input.number, input.reason))
        }
        RunChecks::NAME => {
            input.read::<ChecksInput>().map(|checks| format!("checking {}", short(&checks.commit)))
        }
        UseTool::NAME => input.read::<ToolUse>().map(|tool| step(&tool.call)),
        Land::NAME => {
            input.read::<LandInput>().map(|land| format!("landing {}", short(&land.commit)))
        }
        LoadBacklog::NAME => return "reading the feature list".into(),
        _ => return name.replace('_', " "),
    };
    known.unwrap_or_else(|_| name.replace('_', " "))
}

/// The result of an activity. `before` is the view of its run before it.
pub(super) fn completed(
    name: &str,
    input: &Payload,
    output: &Payload,
    before: &RunView,
) -> Vec<Entry> {
    let done = || Entry::new(Kind::Detail, format!("{} is done", name.replace('_', " ")));
    known(name, input, output, before).unwrap_or_else(|_| vec![done()])
}

fn known(
    name: &str,
    input: &Payload,
    output: &Payload,
    before: &RunView,
) -> Result<Vec<Entry>, PayloadError> {
    Ok(vec![match name {
        OpenWorktree::NAME => worktree(&output.read()?),
        RunSetup::NAME => setup(&input.read()?, &output.read()?),
        RunChecks::NAME => checks(&input.read()?, &output.read()?, before),
        Precheck::NAME => Entry::new(Kind::Detail, prechecked(&output.read()?)),
        RunSession::NAME => {
            let SessionInput { number, reason, .. } = input.read()?;
            Entry { kind: Kind::Detail, ..session(number, reason, &output.read()?) }
        }
        CallModel::NAME => answer(&output.read()?),
        UseTool::NAME => tool(&input.read()?, &output.read()?),
        Seal::NAME => return Ok(sealed(&output.read()?)),
        MergeCandidate::NAME => merged(&input.read()?, &output.read()?),
        Land::NAME => {
            let entry = Entry::new(Kind::Landed, landed(&output.read()?));
            entry.on(&input.read::<LandInput>()?.commit).completes(Step::Landing.name())
        }
        Follow::NAME => Entry::new(Kind::Detail, landed(&output.read()?)),
        CloseWorktree::NAME => {
            Entry::new(Kind::WorktreeClosed, "work tree closed").completes("clean-up")
        }
        LoadBacklog::NAME => {
            let count = counted(output.read::<LoadedBacklog>()?.features.len(), "feature");
            Entry::new(Kind::Detail, format!("read the list: {count}"))
        }
        _ => Entry::new(Kind::Detail, format!("{} is done", name.replace('_', " "))),
    }])
}

fn worktree(tree: &Worktree) -> Entry {
    let text = format!("work tree on {} at {}", tree.branch, short(&tree.head));
    let kept = tree
        .rescued
        .as_ref()
        .map(|kept| format!("Uncommitted work found in it is kept under {kept}."));
    let entry = Entry::new(Kind::WorktreeOpened, text).on(&tree.head).completes("work tree");
    entry.details(&[&kept.unwrap_or_default()])
}

fn setup(input: &SetupInput, report: &SetupReport) -> Entry {
    let merged = on_merged(input.commit.is_some());
    match &report.evidence {
        None => Entry::new(Kind::Detail, "no set-up script"),
        Some(evidence) if !evidence.passed() => {
            Entry::new(Kind::SetupFailed, format!("set-up{merged}: {}", check(evidence)))
                .details(&[&output(evidence)])
        }
        Some(evidence) => {
            let entry =
                Entry::new(Kind::SetupPassed, format!("set-up{merged}: {}", check(evidence)));
            if input.commit.is_some() { entry } else { entry.completes("set-up") }
        }
    }
}

fn checks(input: &ChecksInput, report: &ChecksReport, before: &RunView) -> Entry {
    let is_merged = before.is_candidate(&input.commit);
    let is_baseline = before.expects_baseline;
    let merged = on_merged(is_merged);
    if let Some(failed) = report.failed() {
        let kind = if is_baseline { Kind::BaselineFailed } else { Kind::GatesFailed };
        let entry = Entry::new(kind, format!("check failed{merged}: {}", check(failed)));
        return entry.details(&[&output(failed)]).on(&input.commit);
    }
    let reused = report.evidence.iter().filter(|evidence| evidence.reused).count();
    let text = match &report.evidence[..] {
        [] => format!("no checks{merged}"),
        [known, ..] if reused == report.evidence.len() => {
            let count = counted(reused, "check");
            let on = short(&known.commit);
            format!("{count}{merged} not repeated: passed on {on}, with the same content")
        }
        [only] => format!("check passed{merged}: {}", check(only)),
        all => {
            let milliseconds = all.iter().map(|evidence| evidence.duration_ms).sum();
            let known =
                if reused == 0 { String::new() } else { format!(" ({reused} not repeated)") };
            format!("{} checks passed{merged}{known}, {}", all.len(), took(milliseconds))
        }
    };
    let names: Vec<String> = report.evidence.iter().map(|evidence| evidence.name.clone()).collect();
    let (kind, step) = match (is_baseline, is_merged) {
        (true, _) if report.evidence.is_empty() => (Kind::Detail, "baseline check"),
        (true, _) => (Kind::BaselinePassed, "baseline check"),
        (false, true) => (Kind::GatesPassed, Step::MergedGates.name()),
        (false, false) => (Kind::GatesPassed, Step::Gates.name()),
    };
    Entry::new(kind, text).details(&[&listed("checks", &names)]).on(&input.commit).completes(step)
}

fn listed(title: &str, items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("{title}: {}", some_of(items)) }
}

fn on_merged(is_merged: bool) -> &'static str {
    if is_merged { " on the merged result" } else { "" }
}

fn prechecked(report: &ChecksReport) -> String {
    let passed = report.evidence.iter().filter(|evidence| evidence.passed()).count();
    format!("before any work: {passed} of {} checks pass", report.evidence.len())
}

/// A check. Agents can read the files with these entries, so a held-out check shows neither its
/// command nor its output.
fn check(evidence: &Evidence) -> String {
    let what = match &evidence.held_out {
        Some(_) => format!("held-out `{}`", evidence.name),
        None => format!("`{}`", evidence.command.lines().next().unwrap_or_default()),
    };
    format!("{what}, {}, {}", evidence.ending(), took(evidence.duration_ms))
}

fn output(evidence: &Evidence) -> String {
    match &evidence.held_out {
        Some(held_out) => held_out.message.clone().unwrap_or_default(),
        None => last_lines(&evidence.output_tail),
    }
}

/// The name of a session, with its reason.
pub(super) fn session_name(number: u32, reason: SessionReason) -> String {
    format!("session {number} ({})", reason.as_str().replace('_', " "))
}

/// The end of a session.
pub(super) fn session(number: u32, reason: SessionReason, report: &SessionReport) -> Entry {
    let (kind, ending) = match &report.ending {
        SessionEnding::ClaimsDone => (Kind::SessionEnded, "says that it is done".to_owned()),
        SessionEnding::ContextFull => (Kind::Handoff, "has filled its context".into()),
        SessionEnding::Failed { reason, .. } => (Kind::SessionFailed, format!("failed: {reason}")),
        SessionEnding::NotStarted { reason } => {
            (Kind::SessionFailed, format!("could not be started: {reason}"))
        }
        SessionEnding::Landed { commit, .. } => {
            let landed =
                format!("was not needed: the work of this run had landed as {}", short(commit));
            (Kind::SessionEnded, landed)
        }
    };
    let text = format!("{} {ending}, {}", session_name(number, reason), took(report.duration_ms));
    let output =
        if kind == Kind::SessionFailed { last_lines(&report.output_tail) } else { String::new() };
    let entry = Entry::new(kind, text).details(&[
        &output,
        &report.notes,
        &unread(report.unread_notes.as_deref()),
    ]);
    if kind == Kind::SessionFailed { entry } else { entry.completes(format!("session {number}")) }
}

/// An answer of a model: its text, its tool calls, its tokens.
fn answer(answer: &ModelAnswer) -> Entry {
    let mut details = Vec::new();
    for block in &answer.blocks {
        match block {
            Block::Text { text } => details.push(text.trim().to_owned()),
            Block::ToolUse(call) => details.push(format!("→ {}", step(call))),
            _ => {}
        }
    }
    let Usage { input, output, cache_read, cache_write } = answer.usage;
    let text = format!(
        "{} answered, {}: {} tokens in, {output} out",
        answer.model,
        took(answer.duration_ms),
        input + cache_read + cache_write,
    );
    Entry::new(Kind::Detail, text).details(&[&details.join("\n")])
}

fn tool(input: &ToolUse, outcome: &ToolOutcome) -> Entry {
    let failed = if outcome.is_error { " failed" } else { "" };
    let text = format!("{}{failed}, {}", step(&input.call), took(outcome.duration_ms));
    Entry::new(Kind::Detail, text).details(&[&last_lines(&outcome.text)])
}

fn unread(reason: Option<&str>) -> String {
    reason.map(prompt::unread_notes).unwrap_or_default()
}

fn sealed(sealed: &Sealed) -> Vec<Entry> {
    let files = &sealed.files;
    let text = format!("sealed as {}, {}", short(&sealed.commit), counted(files.len(), "file"));
    let text = text + &outside(&sealed.outside);
    let checkpoint =
        Entry::new(Kind::Checkpoint, text).on(&sealed.commit).completes(Step::Checkpoint.name());
    let notes = unread(sealed.unread_notes.as_deref());
    let mut entries = vec![checkpoint.details(&[&listed("files", files), &sealed.notes, &notes])];
    if !sealed.tampered.is_empty() {
        let changes: Vec<String> = sealed
            .tampered
            .iter()
            .map(|tampering| format!("{}: {}", tampering.file, tampering.what))
            .collect();
        let kept = sealed
            .rescued
            .as_ref()
            .map(|kept| format!("The earlier content is kept under {kept}."));
        let tampering = Entry::new(Kind::Tampering, format!("put back: {}", changes.join("; ")));
        entries.push(tampering.details(&[&kept.unwrap_or_default()]));
    }
    entries
}

fn merged(input: &MergeInput, merged: &Merged) -> Entry {
    match merged {
        Merged::Candidate { commit, tip, put_back, outside: changes, .. } => {
            let mut text = format!("merges on {} as {}", short(tip), short(commit));
            if !put_back.is_empty() {
                text += &format!("; put back: {}", put_back.join(", "));
            }
            Entry::new(Kind::Merged, text + &outside(changes))
                .on(commit)
                .completes(Step::Merge.name())
        }
        Merged::Conflict { tip, files, output } => {
            let text = format!("does not merge on {}: {}", short(tip), some_of(files));
            Entry::new(Kind::MergeConflict, text).details(&[&last_lines(output)]).on(&input.commit)
        }
    }
}

fn outside(changes: &[OutsideChange]) -> String {
    changes.iter().flat_map(|change| ["; ".to_owned(), change.to_string()]).collect()
}

fn landed(landed: &Landed) -> String {
    let text = match &landed.waits_on_next {
        None => format!("landed: the target is at {}", short(&landed.target_commit)),
        Some(reason) => format!("waits on longhaul/next: {reason}"),
    };
    text + &outside(&landed.outside)
}
