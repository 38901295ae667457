//! The report of a session of a known agent, and the reason of its end.

use std::time::SystemTime;

use longhaul_workflows::contracts::{AgentOutcome, SessionEnding, SessionReport};

use crate::files::OWN_DIR;
use crate::process::{Finished, has_changed};

use super::driver::{self, AgentDriver, End, Record, millis};
use super::{SessionJob, report_of};

/// An agent that has ended.
pub(super) struct EndedAgent<'a> {
    pub(super) end: End,
    pub(super) record: Record<'a>,
    pub(super) begun: SystemTime,
    pub(super) version: Option<String>,
}

/// The report of a session whose agent has ended.
pub(super) fn judge(
    job: &SessionJob<'_>,
    driver: &dyn AgentDriver,
    finished: &Finished,
    ended: EndedAgent<'_>,
) -> SessionReport {
    let EndedAgent { mut end, record, begun, version } = ended;
    if end.outcome == AgentOutcome::Completed {
        let tree = job.tree.path();
        if job.files.says_context_full() {
            end.outcome = AgentOutcome::ContextFull;
        } else if !record.refused().is_empty() && !has_changed(tree, begun, &[OWN_DIR]) {
            end.outcome = AgentOutcome::ToolsRefused;
        }
    }
    let has_own_budget = driver::sets(&job.input.agent.args, &["--max-budget-usd"]);
    let ending = match end.outcome {
        AgentOutcome::Completed => SessionEnding::ClaimsDone,
        AgentOutcome::ContextFull | AgentOutcome::StoppedAtBoundary | AgentOutcome::TurnLimit => {
            SessionEnding::ContextFull
        }
        // Another session continues, if the limits of the feature and its project allow it.
        AgentOutcome::Budget if !has_own_budget => SessionEnding::ContextFull,
        _ => SessionEnding::Failed {
            reason: reason(driver, &end, record.refused()),
            lacks_command: false,
        },
    };
    let facts = record.facts(end.outcome, version, millis(finished.duration));
    let report = report_of(finished, job.files, job.level(), ending);
    SessionReport { output_tail: record.tail(), agent: Some(facts), ..report }
}

/// The reason of an end, equal for equal causes: the same sentence for each session of an outage.
pub(super) fn reason(driver: &dyn AgentDriver, end: &End, refused: &[String]) -> String {
    let name = driver.name();
    let message = end.message.lines().next().unwrap_or_default();
    let message: String = message.chars().take(300).collect();
    match end.outcome {
        AgentOutcome::Auth => format!("{name}: not logged in; {}", driver.login()),
        AgentOutcome::Billing => format!("{name}: the account has no credit"),
        AgentOutcome::Budget => format!("{name}: its own limit of money is reached"),
        AgentOutcome::RateLimited => {
            format!("{name}: the provider limits the rate of requests ({message})")
        }
        AgentOutcome::Overloaded => {
            format!("{name}: the provider is overloaded or not reachable ({message})")
        }
        AgentOutcome::Refused => format!("{name}: the model refused the task"),
        AgentOutcome::ToolsRefused => {
            let mut tools = refused.to_vec();
            tools.sort_unstable();
            tools.dedup();
            let count = refused.len();
            let calls = if count == 1 { "call was" } else { "calls were" };
            format!(
                "{name}: {count} tool {calls} refused ({}), and no file was changed; allow them \
                 in {}",
                tools.join(", "),
                driver.permissions(),
            )
        }
        AgentOutcome::Interrupted if message.is_empty() => format!("{name}: interrupted"),
        AgentOutcome::Crashed => format!("{name}: it ended without a final event, {message}"),
        AgentOutcome::Interrupted
        | AgentOutcome::Protocol
        | AgentOutcome::Completed
        | AgentOutcome::ContextFull
        | AgentOutcome::StoppedAtBoundary
        | AgentOutcome::TurnLimit => format!("{name}: {message}"),
    }
}
