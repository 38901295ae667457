//! A session of a known agent: its conversation goes on after an interruption, and its end is
//! typed.

use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

use chrono::{TimeDelta, Utc};
use longhaul_engine::{Attempt, Failure, Payload};
use longhaul_workflows::contracts::{
    AgentOutcome, AgentProgress, SessionInput, SessionReport, Usage,
};
use uuid::Uuid;

use crate::model::{QueuedRequest, RateLimits};
use crate::prices::Prices;
use crate::process::{Fifo, Finished, Spec};
use crate::providers::Providers;

use super::driver::{self, AgentDriver, Conversation, Dialogue, End, Launch, Record, write};
use super::judged::{EndedAgent, judge, reason};
use super::{SessionHandler, SessionJob, Start};

/// The first wait for a provider that names no time; each further one in a row doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_mins(15);
/// The most waits in a row; after that the session has failed.
const WAITS: u32 = 40;

/// The prompt of a conversation that goes on.
pub(super) const RESUMED: &str = "\
# Session resumed\n\nThis session was interrupted, and it goes on here. The task and the rules are \
those of its first prompt. A command that was running has an unknown outcome: check before you \
repeat it. Continue until the feature is done.\n";

impl SessionHandler {
    /// Runs the agent until its session has ended, or until it must wait for its provider.
    pub(super) async fn drive(
        &self,
        job: &SessionJob<'_>,
        driver: &'static dyn AgentDriver,
        kept: AgentProgress,
    ) -> Result<SessionReport, Failure> {
        let mut before = kept;
        loop {
            let is_resumed = !before.conversation.is_empty();
            let (spec, progress) = self.launch(job, driver, &before)?;
            let env = spec.env.clone();
            before = progress;
            let silence = spec.limits.silence;
            let begun = SystemTime::now();
            let mut counted = before.usage;
            let save = |progress: &AgentProgress| {
                self.count_request(job, &counted, &progress.usage);
                counted = progress.usage;
                job.attempt.record_progress(Payload::of(progress));
                job.files.keep_conversation(progress, false);
            };
            job.files.keep_conversation(&before, false);
            if before != AgentProgress::default() {
                job.attempt.record_progress(Payload::of(&before));
            }
            let mut record = Record::new(driver, before.clone(), silence, Box::new(save));
            let finished = self.run_known(job, spec, &before, &mut record).await?;
            let end = record.end(&finished);
            let is_unknown = matches!(end.outcome, AgentOutcome::Crashed | AgentOutcome::Protocol);
            if is_resumed && is_unknown && !record.has_worked() {
                tracing::info!(
                    run = %job.attempt.run,
                    conversation = before.conversation,
                    reason = end.message,
                    "the conversation cannot be resumed; a new one begins",
                );
                before = AgentProgress { conversation: String::new(), window: None, ..before };
                job.files.write_input(job.prompt).map_err(|error| job.files.unwritable(&error))?;
                continue;
            }
            if end.outcome.is_to_be_continued_later()
                && let Some(failure) = self.wait(job, driver, &end, record.progress()).await?
            {
                return Err(failure);
            }
            let version = driver::version(driver, &job.input.agent, job.root, &env).await;
            let ended = EndedAgent { end, record, begun, version };
            let mut report = judge(job, driver, &finished, ended);
            self.price(job, &mut report);
            return Ok(report);
        }
    }

    /// Runs one process of the agent, and speaks to it if its driver does.
    async fn run_known(
        &self,
        job: &SessionJob<'_>,
        mut spec: Spec,
        before: &AgentProgress,
        record: &mut Record<'_>,
    ) -> Result<Finished, Failure> {
        let runner = &self.setup.runner;
        let unread = |error: &io::Error| job.files.unwritable(error);
        let prompt = fs::read_to_string(job.files.input()).map_err(|error| unread(&error))?;
        let is_resumed = !before.conversation.is_empty();
        let dialogue = Dialogue {
            prompt,
            folder: job.tree.path().to_owned(),
            root: job.root.to_owned(),
            resumed: is_resumed.then(|| before.conversation.clone()),
            agent: job.input.agent.clone(),
            available: job.input.available,
        };
        let cancelled = job.attempt.cancelled();
        let Some(input) = record.speak(dialogue) else {
            return runner.run_observed(&spec, job.attempt, cancelled, record).await;
        };
        let fifo = Fifo::new(runner.data_dir()).map_err(|error| unread(&error))?;
        spec.input = Some(fifo.path());
        tokio::select! {
            finished = runner.run_observed(&spec, job.attempt, cancelled, record) => finished,
            () = async {
                write(fifo, input).await;
                std::future::pending::<()>().await;
            } => unreachable!("a pending future never ends"),
        }
    }

    /// Adds the cost of an agent that states only its tokens.
    fn price(&self, job: &SessionJob<'_>, report: &mut SessionReport) {
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
        job: &SessionJob<'_>,
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

    /// Fails until the limits of the provider admit another session.
    pub(super) fn wait_for_provider(
        &self,
        input: &SessionInput,
        attempt: &Attempt,
    ) -> Result<(), Failure> {
        let Some(provider) = &input.agent.provider else { return Ok(()) };
        let limits = Providers::limits_of(self.setup.runner.data_dir(), provider);
        let model = input.agent.model.as_deref().unwrap_or_default();
        let call = &attempt.key();
        self.limiter.admit(&QueuedRequest { provider, model, call, tokens: 0, limits }, Utc::now())
    }

    /// Counts the tokens of an answer towards the limits of the provider.
    fn count_request(&self, job: &SessionJob<'_>, before: &Usage, after: &Usage) {
        let tokens = after.fresh().saturating_sub(before.fresh());
        if let Some(provider) = job.input.agent.provider.as_ref().filter(|_| tokens > 0) {
            self.limiter.count(provider, &job.attempt.key(), tokens, Utc::now());
        }
    }

    /// Leaves the conversation for a later attempt; `None` after too many waits.
    async fn wait(
        &self,
        job: &SessionJob<'_>,
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
        if let (AgentOutcome::RateLimited, Some(provider)) =
            (end.outcome, &job.input.agent.provider)
        {
            RateLimits::new(self.setup.runner.data_dir()).close_all(provider, until);
        }
        let progress = AgentProgress { waits: progress.waits + 1, ..progress.clone() };
        job.attempt.record_progress(Payload::of(&progress));
        job.tree.settle().await?;
        job.files.keep_conversation(&progress, true);
        Ok(Some(Failure::rate_limited(until, reason(driver, end, &[]))))
    }
}
