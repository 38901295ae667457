//! A session of a known agent: its conversation goes on after an interruption, and its end is
//! typed.

use std::time::{Duration, SystemTime};

use chrono::{TimeDelta, Utc};
use longhaul_engine::{Failure, Payload};
use longhaul_workflows::contracts::{
    AgentOutcome, AgentProgress, SessionEnding, SessionInput, SessionReport, Usage,
};
use uuid::Uuid;

use crate::prices::Prices;
use crate::process::{Finished, Spec, has_changed};

use super::driver::{self, AgentDriver, Conversation, End, Launch, Record, millis};
use super::files::OWN;
use super::{Job, SessionHandler, Start, report_of};

/// The first wait for a provider that names no time; each further one in a row doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_mins(15);
/// The most waits in a row; after that the session has failed.
const WAITS: u32 = 40;

/// How a conversation was left.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct KeptConversation {
    pub(super) progress: AgentProgress,
    /// Whether the agent has ended, and its tree is on stable storage as it left it.
    pub(super) is_paused: bool,
}

/// The prompt of a conversation that goes on.
pub(super) const RESUMED: &str = "\
# Session resumed\n\nThis session was interrupted, and it goes on here. The task and the rules are \
those of its first prompt. A command that was running has an unknown outcome: check before you \
repeat it. Continue until the feature is done.\n";

impl SessionHandler {
    /// Runs the agent until its session has ended, or until it must wait for its provider.
    pub(super) async fn drive(
        &self,
        job: &Job<'_>,
        driver: &'static dyn AgentDriver,
        kept: AgentProgress,
    ) -> Result<SessionReport, Failure> {
        let mut before = kept;
        loop {
            let is_resumed = !before.conversation.is_empty();
            let (spec, progress) = self.launch(job, driver, &before)?;
            before = progress;
            let limits = spec.limits;
            let begun = SystemTime::now();
            let save = |progress: &AgentProgress| {
                job.attempt.progress(Payload::of(progress));
                job.files.keep_conversation(progress, false);
            };
            job.files.keep_conversation(&before, false);
            if before != AgentProgress::default() {
                job.attempt.progress(Payload::of(&before));
            }
            let mut record = Record::new(driver, before.clone(), limits.silence, Box::new(save));
            let cancelled = job.attempt.cancelled();
            let runner = &self.setup.runner;
            let ran = runner.run_observed(&spec, job.attempt, cancelled, &mut record).await;
            let finished = ran?;
            let end = record.end(&finished);
            let is_unknown = matches!(end.outcome, AgentOutcome::Crashed | AgentOutcome::Protocol);
            if is_resumed && is_unknown && !record.has_worked() {
                tracing::info!(
                    run = %job.attempt.run,
                    conversation = before.conversation,
                    reason = end.message,
                    "the conversation cannot be resumed; a new one begins",
                );
                before = AgentProgress { conversation: String::new(), ..before };
                job.files.write_input(job.prompt).map_err(|error| job.files.unwritable(&error))?;
                continue;
            }
            if end.outcome.is_to_be_continued_later()
                && let Some(failure) = self.wait(job, driver, &end, record.progress()).await?
            {
                return Err(failure);
            }
            let version = driver::version(driver, &job.input.agent, job.root, &spec.env).await;
            let ended = Ended { end, record, begun, version };
            let mut report = judge(job, driver, &finished, ended);
            self.price(job, &mut report);
            return Ok(report);
        }
    }

    /// Adds the cost of an agent that states only its tokens.
    fn price(&self, job: &Job<'_>, report: &mut SessionReport) {
        let Some(facts) = report.agent.as_mut().filter(|facts| facts.cost_micros.is_none()) else {
            return;
        };
        facts.cost_micros = self.cost(job.input, facts.model.as_ref(), &facts.usage);
    }

    /// The cost of tokens in millionths of a US dollar, if their model has a price.
    pub(super) fn cost(
        &self,
        input: &SessionInput,
        model: Option<&String>,
        usage: &Usage,
    ) -> Option<u64> {
        let model = model.or(input.agent.model.as_ref())?;
        Prices::cost_in(self.setup.runner.data_dir(), model, usage)
    }

    /// The specification of the next process, and the progress with the id of its conversation.
    fn launch(
        &self,
        job: &Job<'_>,
        driver: &'static dyn AgentDriver,
        before: &AgentProgress,
    ) -> Result<(Spec, AgentProgress), Failure> {
        let agent = &job.input.agent;
        let (program, mut args) = driver::program(driver, agent, job.root)?;
        let mut progress = before.clone();
        let chosen;
        let conversation = if before.conversation.is_empty() {
            chosen = Uuid::new_v4().to_string();
            if driver.abilities().chooses_conversation {
                progress.conversation.clone_from(&chosen);
            }
            Conversation::New(&chosen)
        } else {
            Conversation::Resumed(&before.conversation)
        };
        let spent = before.cost_micros.unwrap_or_default();
        let available = job.input.available.map(|left| left.cost_micros.saturating_sub(spent));
        let launch = Launch {
            model: agent.model.as_deref(),
            args: &agent.args,
            conversation,
            cost_micros: available,
        };
        args.extend(driver.args(&launch).into_iter().map(Into::into));
        let env = driver::environment(driver, agent);
        let name = format!("session-{}", driver.name());
        let spec = self.spec(job, Start { name, program, args, env })?;
        Ok((spec, progress))
    }

    /// Leaves the conversation for a later attempt; `None` after too many waits.
    async fn wait(
        &self,
        job: &Job<'_>,
        driver: &dyn AgentDriver,
        end: &End,
        progress: &AgentProgress,
    ) -> Result<Option<Failure>, Failure> {
        if progress.waits >= WAITS {
            return Ok(None);
        }
        let doubled = FIRST_WAIT.saturating_mul(1 << progress.waits.min(10));
        let delay = end.delay.unwrap_or(doubled.min(LONGEST_WAIT));
        let until = Utc::now() + TimeDelta::from_std(delay).unwrap_or(TimeDelta::days(1));
        let progress = AgentProgress { waits: progress.waits + 1, ..progress.clone() };
        job.attempt.progress(Payload::of(&progress));
        job.tree.settle().await?;
        job.files.keep_conversation(&progress, true);
        Ok(Some(Failure::rate_limited(until, reason(driver, end, &[]))))
    }
}

/// An agent that has ended.
struct Ended<'a> {
    end: End,
    record: Record<'a>,
    begun: SystemTime,
    version: Option<String>,
}

fn judge(
    job: &Job<'_>,
    driver: &dyn AgentDriver,
    finished: &Finished,
    ended: Ended<'_>,
) -> SessionReport {
    let Ended { mut end, record, begun, version } = ended;
    if end.outcome == AgentOutcome::Completed {
        let tree = job.tree.path();
        if job.files.says_context_full() {
            end.outcome = AgentOutcome::ContextFull;
        } else if !record.refused().is_empty() && !has_changed(tree, begun, &[OWN]) {
            end.outcome = AgentOutcome::ToolsRefused;
        }
    }
    let has_own_budget = driver::sets(&job.input.agent.args, &["--max-budget-usd"]);
    let ending = match end.outcome {
        AgentOutcome::Completed => SessionEnding::ClaimsDone,
        AgentOutcome::ContextFull | AgentOutcome::TurnLimit => SessionEnding::ContextFull,
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
fn reason(driver: &dyn AgentDriver, end: &End, refused: &[String]) -> String {
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
                 in [agent] args",
                tools.join(", ")
            )
        }
        AgentOutcome::Interrupted if message.is_empty() => format!("{name}: interrupted"),
        AgentOutcome::Crashed => format!("{name}: it ended without a final event, {message}"),
        AgentOutcome::Interrupted
        | AgentOutcome::Protocol
        | AgentOutcome::Completed
        | AgentOutcome::ContextFull
        | AgentOutcome::TurnLimit => format!("{name}: {message}"),
    }
}
