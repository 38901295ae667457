//! The session workflow: one context window of an agent, from its prompt to its claim.
//!
//! The loop of the built-in agent is workflow code: each model call and each tool call is an
//! activity whose result is in the log before the next one begins. After a crash the conversation
//! is rebuilt from the log, and nothing answered is requested again. A session of another agent is
//! one guarded activity.

mod act;
mod conversation;
mod handoff;
mod hook;
mod progress;
mod repeats;
pub mod tools;
mod window;

use async_trait::async_trait;
use longhaul_engine::{
    Context, ContextExt, Ending, Failure, Filter, Payload, Received, RequestedBy, RunId, Stop,
    Workflow,
};
use serde::{Deserialize, Serialize};

use crate::contracts::{
    AgentFacts, AgentOutcome, BeginInput, BeginSession, Block, CallModel, EndInput, EndSession,
    Handoff, ModelAnswer, ModelStop, OutsideChange, ReadUse, RunSession, SealInput, SealStep,
    SessionBegin, SessionEnding, SessionInput, SessionReport, Summary, Tampering, ToolCall,
};
use crate::note::Note;
use crate::resources::Resources;
use crate::settings::Driver;

pub use act::ANSWER;
pub(crate) use act::step;
pub(crate) use handoff::summary_of;
pub use handoff::{HandoffAcknowledged, HandoffDecision, HandoffPrepared, summary_tool};
pub use progress::{SessionPhase, SessionProgress};
pub use window::Window;

use conversation::Conversation;
use repeats::{Repeated, Repeats};
use tools::NoteKind;
use window::WindowAction;

/// The workflow `session`.
#[derive(Debug, Clone, Copy)]
pub struct SessionWorkflow;

impl SessionWorkflow {
    /// Its name in histories.
    pub const NAME: &'static str = "session";
}

/// Input of the session workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionStart {
    /// Its own id. A sub-agent's begins with that of its session.
    pub id: RunId,
    /// The facts.
    pub session: SessionInput,
    /// The input of its checkpoints, with their step left out.
    pub seal: SealInput,
    /// The work of the session before, which this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// The task of a sub-agent, instead of the whole feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The resources that it and its sub-agents may use.
    pub available: Resources,
}

impl SessionStart {
    /// The run of the feature, which decides about handoffs. Its id is not part of the input: a
    /// fork copies the input of a session, and has another id.
    pub fn feature_run(&self) -> Option<RunId> {
        self.id.above()
    }
}

/// How often a model may end its turn without a tool call and without `finish`.
const IDLE_TURNS: u32 = 3;

#[async_trait]
impl Workflow for SessionWorkflow {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let start: SessionStart = input.read()?;
        if start.session.agent.driver != Driver::Api {
            return run_program(context, start).await;
        }
        let mut session = Session::new(start);
        let ending = match session.run(context).await {
            Err(Stop::Failed(failure)) => session.failed(failure),
            Err(Stop::Cancelled) => {
                session.report_use(context).await?;
                session.end_servers(context).await?;
                return Err(Stop::Cancelled);
            }
            other => other?,
        };
        let report = session.end(context, ending).await?;
        if session.start.task.is_none() {
            session.report_use(context).await?;
        }
        Ok(Ending::Complete(Payload::of(&report)))
    }
}

/// A session of an agent that is a program.
async fn run_program(context: &mut dyn Context, start: SessionStart) -> Result<Ending, Stop> {
    let session = start.session;
    match context.call::<RunSession>(session.clone()).await {
        Ok(report) => Ok(Ending::Complete(Payload::of(&report))),
        Err(Stop::Cancelled) if session.agent.driver != Driver::Command => {
            let project = session.project.id.clone();
            let used = context.call::<ReadUse>(session).await?;
            report_use(context, project, used).await?;
            Err(Stop::Cancelled)
        }
        Err(stop) => Err(stop),
    }
}

/// Reports the use of a session to its project, whatever becomes of its feature run.
async fn report_use(
    context: &mut dyn Context,
    project: String,
    used: Resources,
) -> Result<(), Stop> {
    match RunId::new(project) {
        Ok(project) if used != Resources::default() => {
            context.signal(project, SessionUsed::SIGNAL, &SessionUsed { used }).await
        }
        _ => Ok(()),
    }
}

/// The signal `session_used` to the project: the use of a session, with its sub-agents that
/// ended. A session of the built-in agent sends it when it ends; a sub-agent, and a session of
/// another agent, only if it is cancelled: otherwise its report says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUsed {
    /// The resources used.
    pub used: Resources,
}

impl SessionUsed {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "session_used";
}

/// A session of the built-in agent at work.
struct Session {
    start: SessionStart,
    begun: Option<SessionBegin>,
    progress: SessionProgress,
    conversation: Conversation,
    /// Notes of people since the last model call.
    guidance: Vec<String>,
    /// The last summary, with the notes of the model since.
    summary: Summary,
    /// Turns without a tool call, in a row.
    idle: u32,
    /// Calls that lead to nothing new.
    repeats: Repeats,
    /// How often the provider refused the conversation as too long.
    overflows: u32,
    /// Sub-agents started.
    delegated: u32,
    /// Ends that a hook refused.
    refused_ends: u32,
    /// Successors that did not take the work.
    rejected: u32,
    /// The outcome, if the session fails.
    outcome: AgentOutcome,
    /// The files that checkpoints put back.
    tampered: Vec<Tampering>,
    /// The branches that other programs moved before them.
    outside: Vec<OutsideChange>,
}

/// How a turn of the loop continues.
enum Next {
    Turn,
    End(SessionEnding),
}

impl Session {
    fn new(start: SessionStart) -> Self {
        let summary = start.handoff.as_ref().map(|handoff| handoff.project_state.clone());
        Self {
            progress: SessionProgress::new(&start),
            conversation: Conversation::default(),
            guidance: Vec::new(),
            summary: summary.unwrap_or_default(),
            idle: 0,
            repeats: Repeats::default(),
            overflows: 0,
            delegated: 0,
            refused_ends: 0,
            rejected: 0,
            outcome: AgentOutcome::Protocol,
            tampered: Vec::new(),
            outside: Vec::new(),
            begun: None,
            start,
        }
    }

    async fn run(&mut self, context: &mut dyn Context) -> Result<SessionEnding, Stop> {
        let SessionStart { session, handoff, task, .. } = self.start.clone();
        let begin = BeginInput { session, handoff, task };
        let begun = context.call::<BeginSession>(begin).await?;
        if let Some(landed) = begun.landed {
            return Ok(landed);
        }
        if !self.acknowledge(context).await? {
            return Ok(SessionEnding::ContextFull);
        }
        self.progress.window.size = self.start.session.agent.context.window_of(begun.window);
        self.conversation =
            Conversation::begin(&begun.texts.system, &begun.tools, &begun.texts.prompt);
        self.begun = Some(begun);
        loop {
            self.take_notes(context).await?;
            let left = self.remaining();
            if left.lacks().is_some() {
                // Another session continues, if the limits of the feature and its project allow it.
                self.outcome = AgentOutcome::Budget;
                return Ok(SessionEnding::ContextFull);
            }
            if let Some(ending) = self.make_room(context).await? {
                return Ok(ending);
            }
            let answer = self.ask(context).await?;
            match self.take_answer(context, answer).await? {
                Next::Turn => {}
                Next::End(ending) => return Ok(ending),
            }
        }
    }

    /// Brings the conversation below the thresholds; returns the ending of a session whose work
    /// another one continues.
    async fn make_room(
        &mut self,
        context: &mut dyn Context,
    ) -> Result<Option<SessionEnding>, Stop> {
        let settings = self.start.session.agent.context.clone();
        match self.progress.window.need(&settings, self.conversation.unsent_tokens()) {
            WindowAction::Nothing => Ok(None),
            WindowAction::Checkpoint => {
                self.checkpoint(
                    context,
                    SealStep::Checkpoint { session: self.start.session.number },
                )
                .await?;
                Ok(None)
            }
            WindowAction::Compaction if self.progress.compactions < settings.compactions => {
                self.compact(context).await?;
                Ok(None)
            }
            WindowAction::Compaction | WindowAction::Handoff => self.hand_over(context).await,
        }
    }

    /// Applies an answer: runs its tools, or reminds the model of the task.
    async fn take_answer(
        &mut self,
        context: &mut dyn Context,
        answer: ModelAnswer,
    ) -> Result<Next, Stop> {
        let calls: Vec<ToolCall> = answer.blocks.iter().filter_map(tool_call).cloned().collect();
        let texts = &self.begun.as_ref().expect("a session has begun").texts;
        match answer.stop {
            ModelStop::ContextFull => return self.overflow(context).await,
            ModelStop::Refusal => {
                self.outcome = AgentOutcome::Refused;
                return Ok(Next::End(failed("the model refused the task")));
            }
            ModelStop::MaxTokens if calls.is_empty() => {
                let shorten = texts.shorten.clone();
                return Ok(self.remind(shorten));
            }
            _ if calls.is_empty() => {
                let proceed = texts.proceed.clone();
                return Ok(self.remind(proceed));
            }
            _ => {}
        }
        self.idle = 0;
        match self.use_tools(context, calls).await? {
            Some(ending) => self.end_or_go_on(context, ending).await,
            None => Ok(Next::Turn),
        }
    }

    /// Performs the calls of an answer, and adds their results to the conversation.
    async fn use_tools(
        &mut self,
        context: &mut dyn Context,
        calls: Vec<ToolCall>,
    ) -> Result<Option<SessionEnding>, Stop> {
        let mut results = Vec::new();
        let mut ending = None;
        let mut repeated = Repeated::No;
        for call in calls {
            let result = match ending {
                Some(_) => act::skipped(),
                None => self.use_tool(context, &call, &mut ending).await?,
            };
            let id = call.id.clone();
            let result = Block::ToolResult { id, text: result.text, is_error: result.is_error };
            repeated = repeated.max(self.repeats.take(&call, &result));
            results.push(result);
        }
        self.conversation.push_results(results);
        match repeated {
            Repeated::No => {}
            Repeated::Notice => self.conversation.push_text(Repeated::notice()),
            Repeated::TooOften => {
                self.summary.note(NoteKind::Avoid, Repeated::note(&self.progress.step));
                self.outcome = AgentOutcome::TurnLimit;
                ending = ending.or(Some(SessionEnding::ContextFull));
            }
        }
        Ok(ending)
    }

    async fn report_use(&self, context: &mut dyn Context) -> Result<(), Stop> {
        report_use(context, self.start.session.project.id.clone(), self.progress.used()).await
    }

    /// The resources that it may still use.
    fn remaining(&self) -> Resources {
        self.start.available.minus(self.progress.used())
    }

    fn remind(&mut self, text: String) -> Next {
        self.idle += 1;
        if self.idle > IDLE_TURNS {
            return Next::End(failed("the model ended its turns without a tool call"));
        }
        self.conversation.push_text(text);
        Next::Turn
    }

    /// Takes the notes of people since the last turn.
    async fn take_notes(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        while let Some(received) = context.try_receive(&Filter::signals(&[Note::SIGNAL])).await? {
            self.apply_message(&received);
        }
        for note in std::mem::take(&mut self.guidance) {
            self.conversation.push_text(format!("A person says: {note}"));
        }
        Ok(())
    }

    fn apply_message(&mut self, received: &Received) {
        if let Received::Signal { name, payload, .. } = received
            && name == Note::SIGNAL
            && let Ok(Note(text)) = payload.read()
        {
            self.guidance.push(text);
        }
    }

    /// Ends the session: its files are durable before its outcome is recorded.
    async fn end(
        &mut self,
        context: &mut dyn Context,
        ending: SessionEnding,
    ) -> Result<SessionReport, Stop> {
        self.progress.phase = SessionPhase::Shutdown;
        self.progress.ending = Some(ending.clone());
        self.publish(context).await?;
        let mut notes = self.summary.document();
        if self.begun.is_some() {
            let end = EndInput { session: self.start.session.clone(), handoff: None };
            let ended = context.call::<EndSession>(end).await?;
            notes.push_str(&ended.notes);
        }
        let now = context.now().await?;
        let duration = self.progress.begun_at.map_or(0, |begun| (now - begun).num_milliseconds());
        let begun = self.begun.as_ref();
        let facts = self.facts(&ending);
        Ok(SessionReport {
            ending,
            tampered: std::mem::take(&mut self.tampered),
            outside: std::mem::take(&mut self.outside),
            agent: Some(facts),
            notes,
            unread_notes: None,
            duration_ms: u64::try_from(duration).unwrap_or(0),
            output_digest: String::new(),
            output_tail: self.conversation.last_text().to_owned(),
            log: String::new(),
            sandbox: begun.map_or_else(String::new, |begun| begun.sandbox.clone()),
        })
    }

    /// Ends the servers of a cancelled session.
    async fn end_servers(&self, context: &mut dyn Context) -> Result<(), Stop> {
        let session = &self.start.session;
        if self.begun.is_none() || session.agent.mcp.is_empty() {
            return Ok(());
        }
        let end = EndInput { session: session.clone(), handoff: None };
        match context.call::<EndSession>(end).await {
            Err(Stop::Failed(_)) => Ok(()),
            ended => ended.map(drop),
        }
    }

    fn facts(&self, ending: &SessionEnding) -> AgentFacts {
        let outcome = match ending {
            SessionEnding::ClaimsDone | SessionEnding::Landed { .. } => AgentOutcome::Completed,
            SessionEnding::ContextFull if self.outcome == AgentOutcome::Protocol => {
                AgentOutcome::ContextFull
            }
            _ => self.outcome,
        };
        AgentFacts {
            driver: Driver::Api.as_str().to_owned(),
            version: None,
            model: Some(self.progress.model.clone()).filter(|model| !model.is_empty()),
            conversation: None,
            outcome,
            usage: self.progress.usage,
            turns: Some(self.progress.turns),
            cost_micros: self.progress.cost_micros,
            active_ms: Some(self.progress.active_ms),
            refused: Vec::new(),
            granted: 0,
            window: None,
        }
    }

    /// The ending after a failed activity.
    fn failed(&mut self, failure: Failure) -> SessionEnding {
        self.outcome = match failure.code.as_deref() {
            Some(CallModel::AUTH) => AgentOutcome::Auth,
            Some(CallModel::BILLING) => AgentOutcome::Billing,
            _ => AgentOutcome::Protocol,
        };
        if self.begun.is_none() || self.progress.turns == 0 {
            return SessionEnding::NotStarted { reason: failure.message };
        }
        failed(&failure.message)
    }

    async fn publish(&self, context: &mut dyn Context) -> Result<(), Stop> {
        context.set(SessionProgress::KEY, &self.progress).await
    }
}

fn failed(reason: &str) -> SessionEnding {
    SessionEnding::Failed { reason: reason.to_owned(), lacks_command: false }
}

fn tool_call(block: &Block) -> Option<&ToolCall> {
    match block {
        Block::ToolUse(call) => Some(call),
        _ => None,
    }
}

/// The id of the session after another one, of which some before `rejected` the work.
fn successor(session: &RunId, rejected: u32) -> Option<RunId> {
    session.with_number(session.number()?.checked_add(rejected)?.checked_add(1)?)
}

/// Asks a child to cancel; the parent then waits for its end.
pub(crate) async fn cancel_child(
    context: &mut dyn Context,
    child: &RunId,
    why: &str,
) -> Result<(), Stop> {
    let request = RequestedBy::longhaul(why);
    context.cancel(child.clone(), request).await
}
