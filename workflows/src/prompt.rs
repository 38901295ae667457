//! The prompt of an agent: its place, its task, its acceptance checks, and earlier failures.

use std::fmt::Write as _;

use crate::backlog::{Check, Feature};
use crate::contracts::{
    BeginInput, Evidence, Feedback, Handoff, HeldOut, LeftOut, Problem, PromptTexts, SessionInput,
    SessionReason,
};
use crate::text::short;

/// The remedy for a person who began the history of the target anew.
const UNRELATED: &str =
    " (with `--allow-unrelated-histories`, if git refuses to merge unrelated histories)";

/// The prompt of a session.
pub fn session(input: &SessionInput) -> String {
    let mut text = String::new();
    orientation(&mut text, &input.feature, input.number);
    task(&mut text, &input.feature, &input.gates);
    situation(&mut text, input.reason, &input.feedback);
    rules(&mut text);
    text
}

/// The texts for the model of the built-in agent.
pub fn texts(input: &BeginInput) -> PromptTexts {
    let prompt = match &input.task {
        Some(task) => format!("{task}\n"),
        None => hosted(&input.session, input.handoff.as_ref()),
    };
    PromptTexts {
        system: SYSTEM.into(),
        prompt,
        summarise: SUMMARISE.into(),
        resume: "The conversation so far was replaced by this summary. Continue from it.".into(),
        proceed: "Continue. Call `finish` when the feature is done, or `ask` if only a person can \
                  decide what to do."
            .into(),
        shorten: "The answer was cut at its length limit. Continue in smaller steps.".into(),
    }
}

/// The first message of a session of the built-in agent.
fn hosted(input: &SessionInput, handoff: Option<&Handoff>) -> String {
    let mut text = String::new();
    orientation(&mut text, &input.feature, input.number);
    task(&mut text, &input.feature, &input.gates);
    if let Some(handoff) = handoff {
        let _ = writeln!(
            text,
            "# What happened before\n\nYou continue the work of a session whose context was full. Review its \
             handoff, check the state of the files, and go on exactly where it stopped.\n\n{}\n",
            handoff.document()
        );
    } else {
        situation(&mut text, input.reason, &input.feedback);
    }
    text
}

/// The system prompt of the built-in agent.
const SYSTEM: &str = "\
You are a software engineer. You work alone on one feature of a project, in its work tree, with the tools you are given.

- Work in small steps: look, change, run, verify. Verify the behaviour as a user would see it before you call it done.
- Work on this feature only. Leave the project in a state that could be merged.
- Commands run in a sandbox. Paths are relative to the work tree.
- Record decisions, completed steps and approaches that failed with `note`: they survive when your context is full.
- Do not change the feature list, `longhaul.toml` or acceptance scripts: such changes are seen and put back.
- `init.sh` must install everything that git does not track: run it when you change its inputs.
- Your work is committed for you. You may commit too, with messages that say what and why.
- When the feature is done and verified, call `finish` with a summary. Its checks are then run; if they fail, you are told.
- If only a person can decide, call `ask`.
";

/// Asks the model of the built-in agent for a summary.
pub const SUMMARISE: &str = "\
The context window is nearly full. Call the tool `summary` now, and nothing else. Say everything that is needed to \
continue: the current objective, what is completed, what is in progress, blockers, next steps, key decisions, \
approaches that did not work, and open questions. Name files, functions, commands and errors exactly.";

fn orientation(text: &mut String, feature: &Feature, number: u32) {
    let _ = writeln!(
        text,
        "You are working on one feature of this project: `{}`, {}. This is session {number} of it.\n\n\
         # Get your bearings first\n\n\
         1. Run `pwd`: you may edit files in this directory only. It is a git work tree of its own.\n\
         2. Read `git log --oneline -20`, `claude-progress.txt` and `feature_list.json` if they are there.\n\
         3. Read `init.sh` if it is there: it has been run already, and shows how to run the project.\n\
         4. Check that what exists works before you add to it.\n",
        feature.id, feature.name
    );
}

fn task(text: &mut String, feature: &Feature, gates: &[Check]) {
    let _ = writeln!(
        text,
        "# The feature\n\n{}\n",
        if feature.description.is_empty() { &feature.name } else { &feature.description }
    );
    if !feature.acceptance_criteria.is_empty() {
        let _ = writeln!(text, "It is done when:\n");
        for criterion in &feature.acceptance_criteria {
            let _ = writeln!(text, "- {criterion}");
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "These commands decide whether it is done. They are run after you say so, not by you alone:\n"
    );
    for check in gates {
        let how = if check.hidden {
            "held out; you learn only whether it passes".into()
        } else {
            format!("`{}`", check.run)
        };
        let _ = writeln!(text, "- {}: {how}", check.name);
    }
    text.push('\n');
}

fn situation(text: &mut String, reason: SessionReason, feedback: &Feedback) {
    let heading = match reason {
        SessionReason::Start => "",
        SessionReason::Continue => {
            "The session before you filled its context. Its work is committed; continue from there."
        }
        SessionReason::Retry => "The session before you failed. Its commits are here.",
        SessionReason::Repair => {
            "The project does not pass its own set-up or basic check at this commit. Repair that first, then do the feature."
        }
        SessionReason::GatesFailed => "The work was checked and did not pass. Fix it.",
        SessionReason::Conflict => {
            "The work does not merge with what others have finished since. Merge that and fix it."
        }
    };
    if !heading.is_empty() {
        let _ = writeln!(text, "# What happened before\n\n{heading}\n");
    }
    if let Some(problem) = &feedback.problem {
        let _ = writeln!(text, "{}\n", problem_text(problem));
    }
    if let Some(behind) = &feedback.behind {
        let _ = writeln!(
            text,
            "The target has moved, and this work conflicts with it in {}. Run `git merge {}` \
             first{UNRELATED}, resolve the conflicts and commit: the landed work may fix the \
             failure.\n",
            behind.files.join(", "),
            behind.tip
        );
    }
    if !feedback.notes.is_empty() {
        let _ = writeln!(text, "Notes of the session before you:\n\n{}\n", feedback.notes);
    }
    for tampering in &feedback.tampered {
        let _ = writeln!(
            text,
            "- Put back, because an agent may not change it: {} ({})",
            tampering.file, tampering.what
        );
    }
    for file in &feedback.left_out {
        let _ = writeln!(text, "- {}", left_out(file));
    }
    for reference in &feedback.rescued {
        let _ = writeln!(
            text,
            "- Uncommitted work of a session that died is kept: `git show {reference}`"
        );
    }
    for guidance in &feedback.guidance {
        let _ = writeln!(text, "- From a person: {guidance}");
    }
}

/// A line for the agent about a file that is too large.
pub fn left_out(file: &LeftOut) -> String {
    format!(
        "{file} is too large for a commit and was left out. Delete it, or list it in .gitignore."
    )
}

/// A line that notes of a session were not read.
pub fn unread_notes(reason: &str) -> String {
    format!("Notes of that session were not read: {reason}.")
}

fn rules(text: &mut String) {
    text.push_str(
        "\n# Rules\n\n\
         - Work on this feature only. Leave the project in a state that could be merged.\n\
         - Commit your work with messages that say what and why.\n\
         - `init.sh` must install everything that git does not track (packages, generated files): run it when you \
         change its inputs. It runs again where your work is merged and checked, and must succeed there.\n\
         - Do not change the feature list, `longhaul.toml` or acceptance scripts: such changes are seen and put back.\n\
         - Write what the next session should know into the file named by LONGHAUL_NOTES_FILE.\n\
         - When your context is nearly full, commit, write your notes, make the file named by LONGHAUL_CONTEXT_FULL_FILE \
         (`touch \"$LONGHAUL_CONTEXT_FULL_FILE\"`) and end: a fresh session continues. A program can exit with 75 instead. \
         Otherwise, ending says that the feature is done.\n",
    );
}

/// The problem in one line, for a person.
pub fn summary(problem: &Problem) -> String {
    match problem {
        Problem::CheckFailed { evidence, .. } if evidence.held_out.is_some() => {
            check_summary(evidence)
        }
        Problem::CheckFailed { evidence, .. } => {
            let command = evidence.command.lines().next().unwrap_or_default();
            format!("{} Command: {command}", check_summary(evidence))
        }
        Problem::Conflict { files, .. } => format!("In conflict: {}.", files.join(", ")),
        Problem::SessionFailed { reason, output_tail } => match last_words(output_tail) {
            words if words.is_empty() => format!("It ended: {reason}."),
            words => format!("It ended: {reason}. Its last words: {words}"),
        },
        Problem::Denied { by, why } => {
            format!("The checks passed, but {by} does not want it merged: {}", why.trim())
        }
    }
}

/// The problem, for an agent.
pub(crate) fn problem_text(problem: &Problem) -> String {
    match problem {
        Problem::CheckFailed { evidence, merged_with: None } => failed_check(evidence),
        Problem::CheckFailed { evidence, merged_with: Some(tip) } if evidence.is_setup => format!(
            "Merged with {tip}, the tree cannot be set up. Run `git merge {tip}`, then correct the script or what it \
             needs.\n\n{}",
            failed_check(evidence)
        ),
        Problem::CheckFailed { evidence, merged_with: Some(tip) } => format!(
            "It passed here, but it fails when merged with work that landed since. Run `git merge {tip}`, \
             then fix it.\n\n{}",
            failed_check(evidence)
        ),
        Problem::Conflict { tip, files, output } => format!(
            "Run `git merge {tip}`{UNRELATED}, resolve the conflicts in {}, and commit.\n\n\
             ```\n{}\n```",
            files.join(", "),
            output.trim_end()
        ),
        Problem::SessionFailed { reason, output_tail } => {
            format!("It ended: {reason}.{}", output(" ", output_tail))
        }
        Problem::Denied { by, why } => {
            format!(
                "The checks passed, but {by} looked at it and does not want it merged as it is:\n\n{}",
                why.trim()
            )
        }
    }
}

/// A failed check: command, commit, result, and the end of its output.
fn failed_check(evidence: &Evidence) -> String {
    if let Some(HeldOut { message, .. }) = &evidence.held_out {
        let message = message.as_deref().map(|message| format!(" {message}")).unwrap_or_default();
        return format!("{}{message}", check_summary(evidence));
    }
    let output = output("\n\n", &evidence.output_tail);
    format!("{}\n\n    {}{output}", check_summary(evidence), evidence.command)
}

fn check_summary(evidence: &Evidence) -> String {
    let Evidence { name, held_out, .. } = evidence;
    let commit = short(&evidence.commit);
    match held_out {
        _ if evidence.is_setup => {
            format!("The set-up script failed on commit {commit}: {}.", evidence.ending())
        }
        Some(_) => format!("The held-out check `{name}` failed on commit {commit}."),
        None => format!("The check `{name}` failed on commit {commit}: {}.", evidence.ending()),
    }
}

/// The last line of an output; if that is JSON, as agents print it, the message in it.
pub(crate) fn last_words(output: &str) -> String {
    let line =
        output.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let document: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let message = MESSAGES.iter().find_map(|place| document.pointer(place)?.as_str());
    message.unwrap_or(line).lines().next().unwrap_or_default().chars().take(LAST_WORDS).collect()
}

/// The JSON pointers of error messages: claude; codex; opencode.
const MESSAGES: [&str; 5] =
    ["/result", "/error/message", "/message", "/error/data/message", "/error"];

/// The most characters kept of the last line.
const LAST_WORDS: usize = 200;

/// The end of an output, after an introduction; empty if there is none.
fn output(lead: &str, tail: &str) -> String {
    match tail.trim_end() {
        "" => String::new(),
        tail => format!("{lead}The end of its output:\n\n```\n{tail}\n```"),
    }
}
