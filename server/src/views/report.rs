//! Activities in plain words: what was asked of the world, and what it answered.

use longhaul_engine::{Activity, Payload};
use longhaul_workflows::contracts::{
    CheckBase, ChecksInput, ChecksReport, CloseWorktree, Evidence, Follow, Land, LandInput, Landed, LoadBacklog,
    LoadedBacklog, MergeCandidate, Merged, OpenWorktree, OutsideChange, RunChecks, RunSession, RunSetup, Seal, Sealed,
    SessionEnding, SessionInput, SessionReport, SetupReport, Worktree,
};
use longhaul_workflows::feature::FeatureOutcome;

/// What an activity is to do.
pub(super) fn asked(name: &str, input: &Payload) -> String {
    let known = match name {
        RunSession::NAME => input
            .read::<SessionInput>()
            .ok()
            .map(|session| format!("session {} ({})", session.number, session.reason.as_str().replace('_', " "))),
        RunChecks::NAME => input.read::<ChecksInput>().ok().map(|checks| format!("checking {}", short(&checks.commit))),
        Land::NAME => input.read::<LandInput>().ok().map(|land| format!("landing {}", short(&land.commit))),
        _ => None,
    };
    known.unwrap_or_else(|| name.replace('_', " "))
}

/// What an activity gave.
pub(super) fn given(name: &str, input: &Payload, output: &Payload) -> String {
    let known = match name {
        OpenWorktree::NAME => {
            output.read::<Worktree>().ok().map(|tree| format!("work tree on {} at {}", tree.branch, short(&tree.head)))
        }
        RunSetup::NAME => output.read::<SetupReport>().ok().map(|report| match report.evidence {
            Some(evidence) => format!("set-up: {}", check(&evidence)),
            None => "no set-up script".into(),
        }),
        RunChecks::NAME => output.read::<ChecksReport>().ok().map(|report| checks(&report)),
        CheckBase::NAME => output.read::<ChecksReport>().ok().map(|report| on_base(&report)),
        RunSession::NAME => {
            output.read::<SessionReport>().ok().map(|report| format!("{} {}", asked(name, input), session(&report)))
        }
        Seal::NAME => output.read::<Sealed>().ok().map(|sealed| self::sealed(&sealed)),
        MergeCandidate::NAME => output.read::<Merged>().ok().map(|merged| self::merged(&merged)),
        Land::NAME | Follow::NAME => output.read::<Landed>().ok().map(|landed| self::landed(&landed)),
        CloseWorktree::NAME => Some("work tree closed".into()),
        LoadBacklog::NAME => output
            .read::<LoadedBacklog>()
            .ok()
            .map(|loaded| format!("read the list: {} features", loaded.features.len())),
        _ => None,
    };
    known.unwrap_or_else(|| format!("{} is done", name.replace('_', " ")))
}

/// What a run came to.
pub(super) fn outcome(output: &Payload) -> String {
    match output.read::<FeatureOutcome>() {
        Ok(FeatureOutcome::Passed { commit, waits_on_next: None, .. }) => format!("passed, as {}", short(&commit)),
        Ok(FeatureOutcome::Passed { commit, waits_on_next: Some(reason), .. }) => {
            format!("passed, as {}; waits on longhaul/next: {reason}", short(&commit))
        }
        Ok(FeatureOutcome::Blocked { reason, .. }) => format!("blocked: {}", brief(&reason)),
        Err(_) => format!("completed: {}", output.preview(80)),
    }
}

fn checks(report: &ChecksReport) -> String {
    match (report.failed(), report.evidence.len()) {
        (Some(failed), _) => format!("check failed: {}", check(failed)),
        (None, 0) => "no checks".into(),
        (None, 1) => format!("check passed: {}", check(&report.evidence[0])),
        (None, count) => {
            let all: u64 = report.evidence.iter().map(|evidence| evidence.duration_ms).sum();
            format!("{count} checks passed, {}", took(all))
        }
    }
}

fn on_base(report: &ChecksReport) -> String {
    let passed = report.evidence.iter().filter(|evidence| evidence.passed()).count();
    format!("before any work: {passed} of {} checks pass", report.evidence.len())
}

fn check(evidence: &Evidence) -> String {
    format!("`{}`, {}, {}", first_line(&evidence.command), evidence.ending(), took(evidence.duration_ms))
}

fn session(report: &SessionReport) -> String {
    let ending = match &report.ending {
        SessionEnding::ClaimsDone => "says that it is done",
        SessionEnding::ContextFull => "has filled its context",
        SessionEnding::Failed { reason, .. } => &format!("failed: {reason}"),
        SessionEnding::NotStarted { reason } => &format!("could not be started: {}", brief(reason)),
        SessionEnding::Landed { commit, .. } => {
            return format!("no agent was started: the work of this run had landed as {}", short(commit));
        }
    };
    format!("{ending}, {}{}", took(report.duration_ms), unread(report.unread_notes.as_deref()))
}

fn unread(reason: Option<&str>) -> String {
    reason.map(|reason| format!("; its notes were not read: {reason}")).unwrap_or_default()
}

fn sealed(sealed: &Sealed) -> String {
    let files = match sealed.files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let mut text = format!("sealed as {}, {files}", short(&sealed.commit));
    for tampering in &sealed.tampered {
        text += &format!("; put back: {}: {}", tampering.file, tampering.what);
    }
    text + &unread(sealed.unread_notes.as_deref()) + &outside(&sealed.outside)
}

fn merged(merged: &Merged) -> String {
    match merged {
        Merged::Candidate { commit, tip, put_back, outside: changes, .. } => {
            let mut text = format!("merges on {} as {}", short(tip), short(commit));
            if !put_back.is_empty() {
                text += &format!("; put back: {}", put_back.join(", "));
            }
            text + &outside(changes)
        }
        Merged::Conflict { tip, files, .. } => format!("does not merge on {}: {}", short(tip), files.join(", ")),
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

/// The beginning of a commit's hash.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// The first line of a text.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What a text says of an output that follows on it.
const OUTPUT: &str = "The end of its output:";

/// Why something was given up, in one line: of an output that it ends with the last line.
pub fn brief(reason: &str) -> String {
    let line = first_line(reason);
    let Some(line) = line.strip_suffix(OUTPUT) else { return line.to_owned() };
    let last = output(reason).pop().unwrap_or_default();
    let line = line.trim_end();
    if last.is_empty() { line.to_owned() } else { format!("{line} Its last words: {last}") }
}

/// The output that the first line of a text ends with.
pub(super) fn output(reason: &str) -> Vec<&str> {
    let mut lines = reason.lines();
    if !lines.next().is_some_and(|line| line.ends_with(OUTPUT)) {
        return Vec::new();
    }
    let fenced = lines.skip_while(|line| !line.starts_with("```")).skip(1);
    let mut output: Vec<&str> = fenced.collect();
    if output.last().is_some_and(|line| line.starts_with("```")) {
        output.pop();
    }
    while output.last().is_some_and(|line| line.trim().is_empty()) {
        output.pop();
    }
    output
}

/// The same without the words that lead to an output.
pub(super) fn without_output(line: &str) -> &str {
    line.strip_suffix(OUTPUT).unwrap_or(line).trim_end()
}

fn took(milliseconds: u64) -> String {
    format!("{:.1} s", super::facts::seconds(milliseconds))
}
