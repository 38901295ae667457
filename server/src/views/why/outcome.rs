//! What a run that is over came to.

use longhaul_engine::Status;
use longhaul_workflows::feature::FeatureOutcome;
use longhaul_workflows::project::ProjectWorkflow;

use super::super::facts::Facts;
use super::super::list::RunLine;
use super::super::report;
use super::{Kind, Reason};

/// What a run that is over came to.
pub(super) fn over(line: &RunLine, status: &Status, facts: &Facts) -> Vec<Reason> {
    let outcome = facts.output.as_ref().and_then(|output| output.read::<FeatureOutcome>().ok());
    match (status, outcome) {
        (Status::Failed(message), _) => vec![Reason::of(Kind::Failed, format!("It failed: {message}"))],
        (Status::Cancelled, _) => vec![ended(line, facts)],
        (_, Some(FeatureOutcome::Passed { commit, waits_on_next, .. })) => {
            let done = Reason::of(Kind::Done, format!("It is done: its gates passed on {}.", report::short(&commit)));
            let waits = |reason| Reason::of(Kind::Checkout, format!("It waits on longhaul/next: {reason}"));
            std::iter::once(done).chain(waits_on_next.map(waits)).collect()
        }
        (_, Some(FeatureOutcome::Blocked { reason, .. })) => blocked(line.feature.as_deref(), &reason, facts),
        _ => vec![Reason::of(Kind::Done, "It is done.")],
    }
}

fn ended(line: &RunLine, facts: &Facts) -> Reason {
    let reason = match &facts.terminated_by {
        Some(request) => Reason::ended("terminated", Some(request)),
        None => Reason::ended("cancelled", facts.cancelled_by.as_ref()),
    };
    if line.workflow == ProjectWorkflow::NAME {
        return reason.with_remedy("`longhaul run` goes on with it");
    }
    if line.feature.is_none() {
        return reason;
    }
    let run = &line.run;
    reason.with_remedy(format!("`longhaul resume {run}` tries it again, `longhaul restart {run}` from nothing"))
}

fn blocked(feature: Option<&str>, reason: &str, facts: &Facts) -> Vec<Reason> {
    let text = format!("It was given up: {}", sentence(given_up(reason)));
    let again = feature.map(|id| {
        format!(
            "`longhaul feature unblock {id}` tries it again; `longhaul fork {id} --from STEP --note TEXT` goes on with a \
             word to its agent (`longhaul checkpoints {id}` lists the steps)"
        )
    });
    let blocked = Reason { remedy: again, ..Reason::of(Kind::Blocked, text) }.with_output(&report::output(reason));
    std::iter::once(blocked).chain(facts.failed_check().map(Reason::gate)).collect()
}

/// Why a feature was given up, without the check that failed last: that is a reason of its own, told in full.
pub(super) fn given_up(reason: &str) -> &str {
    let line = report::first_line(reason);
    report::without_output(line.find(". The check `").map_or(line, |end| &line[..end]))
}

/// A text with one full stop at its end.
pub(super) fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches(['.', ':']))
}
