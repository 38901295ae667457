//! Why a project as a whole makes no progress.

use longhaul_engine::RunId;
use longhaul_workflows::project::Skipped;
use longhaul_workflows::projection::{ProjectState, ProjectView, State};

use super::reason::sentence;
use super::{Kind, Reason};
use crate::advice;
use crate::head::RunHead;
use crate::status::{Counts, FeatureLine, StatusDocument};

/// The obstacles of a project as a whole.
pub(super) fn obstacles(view: &ProjectView, project: &RunId) -> Vec<Reason> {
    let Some(summary) = &view.summary else { return Vec::new() };
    let back = view.rolled_back().map(|view| view.rollback.to.as_str());
    let halted = |request| Reason::halted(request, &summary.root, back);
    let mut reasons: Vec<Reason> = summary.halted.iter().map(halted).collect();
    if let Some(problem) = &summary.problem {
        let text =
            format!("The list or the settings are wrong; those before are in force: {problem}");
        reasons.push(Reason::of(Kind::List, text));
    }
    if let Some(Skipped { signal, from, reason }) = &view.skipped {
        let from = from.as_ref().map(|run| format!(" from {run}")).unwrap_or_default();
        reasons.push(Reason::of(
            Kind::Skipped,
            format!("It did not follow the signal `{signal}`{from}: {reason}."),
        ));
    }
    if let Some(reason) = &summary.waits_on_next {
        let text = format!("Finished work waits on longhaul/next: {reason}");
        let lands = format!("{} lands it after that", advice::run(&summary.root));
        reasons.push(Reason::of(Kind::Checkout, text).with_remedy(lands));
    }
    reasons.extend(summary.paused.iter().map(|paused| Reason::outage(paused, project)));
    if let Some(reason) = &summary.over_budget {
        reasons.push(Reason::of(Kind::Budget, format!("No further session begins: {reason}.")));
    }
    reasons
}

/// The most features of a kind that are explained.
const NAMED: usize = 5;

/// The obstacles of a project with its unread messages: a paused project does nothing when it runs.
pub(super) fn obstacles_now(view: &ProjectView, project: &RunId, head: &RunHead) -> Vec<Reason> {
    let mut reasons = obstacles(view, project);
    if head.is_held_by_pause() {
        let by_run =
            reasons.iter_mut().filter(|it| matches!(it.kind, Kind::Halted | Kind::Checkout));
        by_run.for_each(|reason| reason.remedy = None);
    }
    reasons
}

/// The progress of a project, and the features that need a person.
pub(super) fn progress(document: &StatusDocument, project: &RunId) -> Vec<Reason> {
    let held = document.features.iter().filter(|line| line.is_held() && !line.is_stopped());
    let held: Vec<&FeatureLine> = held.collect();
    let stopped: Vec<&FeatureLine> =
        document.features.iter().filter(|line| line.is_stopped()).collect();
    let mut reasons = vec![overall(document, &held, &stopped)];
    reasons.extend(held.iter().take(NAMED).map(|line| of_held(line)));
    reasons.extend(stopped.iter().take(NAMED).map(|line| of_stopped(line, project)));
    for (count, what) in [(held.len(), "need a person"), (stopped.len(), "are blocked")] {
        if count > NAMED {
            let status = advice::command(["status", &document.root]);
            let text = format!("{} more features {what}.", count - NAMED);
            reasons
                .push(Reason::of(Kind::Blocked, text).with_remedy(format!("{status} lists them")));
        }
    }
    reasons
}

fn names(lines: &[&FeatureLine]) -> Vec<String> {
    lines.iter().map(|line| line.id.clone()).collect()
}

fn overall(document: &StatusDocument, held: &[&FeatureLine], stopped: &[&FeatureLine]) -> Reason {
    let Counts { passed, total, .. } = document.counts;
    let count = format!("{passed} of {total} features passed");
    let in_state = |state| document.features.iter().filter(move |line| line.status == state);
    match document.status {
        ProjectState::NeedsAttention if held.is_empty() && stopped.is_empty() => {
            let kind = if document.over_budget.is_some() || document.counts.is_all_passed() {
                Kind::Blocked
            } else {
                Kind::NotRunning
            };
            Reason::of(kind, format!("It is not done: {count}."))
        }
        ProjectState::NeedsAttention => {
            let needed = [names(held), names(stopped)].concat();
            let first = needed.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = needed.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let is_all = passed + needed.len() >= total;
            let rest = if is_all { "; not passed:" } else { ", and the rest waits for" };
            let text = format!("It needs a person: {count}{rest} {first}{more}.");
            Reason::of(Kind::Blocked, text).with_features(needed)
        }
        ProjectState::Done => Reason::of(Kind::Done, format!("It is done: {count}.")),
        _ => {
            let running: Vec<&FeatureLine> = in_state(State::Running).collect();
            let waiting: Vec<&FeatureLine> =
                in_state(State::Waiting).filter(|line| !line.is_held()).collect();
            let mut text = count;
            for (what, lines) in [("running", &running), ("waiting", &waiting)] {
                if !lines.is_empty() {
                    text += &format!("; {what}: {}", names(lines).join(", "));
                }
            }
            Reason::of(Kind::Working, text + ".").with_features(names(&running))
        }
    }
}

/// A feature with an open run that needs a person.
fn of_held(line: &FeatureLine) -> Reason {
    let reason = line.reason.as_deref().unwrap_or("it needs a person");
    match &line.run {
        Some(run) if line.awaits_approval => {
            let text = format!("{} passed its checks and waits for approval.", line.id);
            Reason::of(Kind::Approval, text).with_remedy(advice::approve_or_deny(run))
        }
        _ => Reason::of(Kind::Message, format!("{}: {}", line.id, sentence(reason))),
    }
    .with_features(vec![line.id.clone()])
}

/// A blocked or cancelled feature.
fn of_stopped(line: &FeatureLine, project: &RunId) -> Reason {
    let reason = line.reason.as_deref().unwrap_or("no reason was given");
    let reason = reason.lines().next().unwrap_or_default();
    let text = match line.status {
        State::Cancelled => format!("{} was {}", line.id, sentence(reason)),
        status => format!("{} is {status}: {}", line.id, sentence(reason)),
    };
    let why = advice::command(["why", &format!("{project}/{}", line.id)]);
    Reason::of(Kind::Blocked, text)
        .with_remedy(format!("{why} says more"))
        .with_features(vec![line.id.clone()])
}
