//! Why a project as a whole makes no progress.

use longhaul_engine::RunId;
use longhaul_workflows::project::{Phase, ProjectSummary, Skipped};
use longhaul_workflows::projection::{ProjectView, State};

use super::{Kind, Reason};
use crate::advice;

/// The obstacles of a project as a whole, and its progress.
pub(super) fn reasons(view: &ProjectView, project: &RunId) -> Vec<Reason> {
    let Some(summary) = &view.summary else { return Vec::new() };
    let halted = |request| Reason::halted(request, &summary.root);
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
    if summary.halted.is_none() {
        reasons.push(progress(summary, view, project));
    }
    reasons.extend(Reason::noticed(&view.findings));
    reasons
}

/// The progress of a project.
fn progress(summary: &ProjectSummary, view: &ProjectView, project: &RunId) -> Reason {
    let count = format!("{} of {} features passed", summary.passed, summary.features);
    let at_work = view.in_state(State::Running);
    let blocked = view.in_state(State::Blocked);
    if summary.phase == Phase::Working {
        let text = match &at_work[..] {
            [] => format!("{count}."),
            at_work => format!("{count}; running: {}.", at_work.join(", ")),
        };
        return Reason::of(Kind::Working, text).with_features(at_work);
    }
    if summary.passed == summary.features {
        return Reason::of(Kind::Done, format!("It is done: {count}."));
    }
    if blocked.is_empty() && summary.over_budget.is_some() {
        return Reason::of(Kind::Blocked, format!("It needs a person: {count}."));
    }
    if blocked.is_empty() {
        return Reason::of(Kind::NotRunning, format!("It is not done: {count}."));
    }
    let is_all = summary.passed + blocked.len() >= summary.features;
    let waits = if is_all { "blocked:" } else { "and the rest waits for" };
    let text = format!("It needs a person: {count}, {waits} {}.", blocked.join(", "));
    let why = blocked.first().map(|first| advice::command(["why", &format!("{project}/{first}")]));
    let remedy = format!("{} says more", why.unwrap_or_default());
    Reason::of(Kind::Blocked, text).with_remedy(remedy).with_features(blocked)
}
