//! Tool calls: those of the workflow itself, and those that act on the work tree.

use longhaul_engine::{
    Child, Context, ContextExt, Filter, Outcome, Payload, Received, RunId, Stop,
};

use crate::contracts::{
    HookEvent, McpTool, SessionEnding, SessionReport, Summary, ToolCall, ToolOutcome, ToolUse,
    UseTool,
};
use crate::note::Note;

use super::tools::{NoteKind, ToolArgs};
use super::{Session, SessionPhase, SessionStart, SessionWorkflow};

/// The signal `answer`: the answer of a person to a question. Its content is a text.
pub const ANSWER: &str = "answer";

/// The longest step shown, in characters.
const SHOWN: usize = 80;

impl Session {
    /// Performs a tool call. `ending` is set if it ends the session.
    pub(super) async fn use_tool(
        &mut self,
        context: &mut dyn Context,
        call: &ToolCall,
        ending: &mut Option<SessionEnding>,
    ) -> Result<ToolOutcome, Stop> {
        self.progress.tool_calls += 1;
        if self.mcp_tool(call).is_some() {
            return self.act(context, call).await;
        }
        let args = match ToolArgs::parse(&call.name, &call.input) {
            Ok(args) => args,
            Err(error) => return Ok(refused(error)),
        };
        match args {
            ToolArgs::Finish { summary } => {
                self.summary.completed.push(summary);
                *ending = Some(SessionEnding::ClaimsDone);
                Ok(outcome_of("The session ends."))
            }
            ToolArgs::Note { kind, text } => {
                self.summary.note(kind, text);
                Ok(outcome_of("Noted."))
            }
            ToolArgs::Ask { question } => self.ask_person(context, question).await,
            ToolArgs::Delegate { task } => self.delegate(context, task).await,
            _ => self.act(context, call).await,
        }
    }

    /// Performs a call outside of the workflow, between its hooks.
    async fn act(
        &mut self,
        context: &mut dyn Context,
        call: &ToolCall,
    ) -> Result<ToolOutcome, Stop> {
        self.progress.step = step(call);
        self.publish(context).await?;
        let before = self.hook(context, HookEvent::BeforeTool, Some(call), None).await?;
        if let Some(refusal) = before {
            return Ok(refused(format!("A hook of the user refuses this call: {refusal}")));
        }
        let mut outcome = context.call::<UseTool>(self.tool_use(call)).await?;
        self.progress.active_ms += outcome.duration_ms;
        let after = self.hook(context, HookEvent::AfterTool, Some(call), Some(&outcome));
        if let Some(refusal) = after.await? {
            outcome.text.push_str(&format!("\nA hook of the user says: {refusal}"));
        }
        Ok(outcome)
    }

    /// The tool of an MCP server that a call names.
    fn mcp_tool(&self, call: &ToolCall) -> Option<&McpTool> {
        let tools = &self.begun.as_ref()?.tools;
        tools.iter().find(|tool| tool.name == call.name)?.mcp.as_ref()
    }

    pub(super) fn tool_use(&self, call: &ToolCall) -> ToolUse {
        let session = &self.start.session;
        ToolUse {
            project: session.project.clone(),
            feature: session.feature.id.clone(),
            agent: session.agent.clone(),
            held_out: session.held_out.clone(),
            call: call.clone(),
            mcp: self.mcp_tool(call).cloned(),
        }
    }

    /// Waits until a person answers, however long that takes.
    async fn ask_person(
        &mut self,
        context: &mut dyn Context,
        question: String,
    ) -> Result<ToolOutcome, Stop> {
        let before = std::mem::replace(&mut self.progress.phase, SessionPhase::Asking);
        self.progress.question = Some(question);
        self.publish(context).await?;
        let filter = Filter::signals(&[ANSWER, Note::SIGNAL]);
        let answer = loop {
            match context.receive(&filter, None).await? {
                Some(Received::Signal { name, payload, .. }) if name == ANSWER => {
                    if let Ok(text) = payload.read::<String>() {
                        break text;
                    }
                }
                Some(received) => {
                    self.apply_message(&received);
                    if let Some(text) = self.guidance.pop() {
                        break text;
                    }
                }
                None => {}
            }
        };
        self.progress.phase = before;
        self.progress.question = None;
        self.publish(context).await?;
        Ok(outcome_of(answer))
    }

    /// Runs a sub-agent with a context of its own in the same work tree; only its answer returns.
    async fn delegate(
        &mut self,
        context: &mut dyn Context,
        task: String,
    ) -> Result<ToolOutcome, Stop> {
        if self.start.task.is_some() {
            return Ok(refused("A sub-agent cannot delegate.".into()));
        }
        self.delegated += 1;
        let Ok(id) = RunId::new(format!("{}/{}", self.start.id, self.delegated)) else {
            return Ok(refused("The id of the sub-agent is not valid.".into()));
        };
        let start = SessionStart {
            id: id.clone(),
            task: Some(task),
            handoff: None,
            available: self.remaining(),
            ..self.start.clone()
        };
        context
            .start(Child {
                run: id.clone(),
                workflow: SessionWorkflow::NAME,
                input: Payload::of(&start),
                labels: [].into(),
            })
            .await?;
        let outcome = self.outcome_of(context, &id).await?;
        self.count_sub_agent(&outcome)?;
        self.publish(context).await?;
        Ok(match outcome {
            Outcome::Completed(report) => match report.read::<SessionReport>()? {
                SessionReport { ending: SessionEnding::ClaimsDone, notes, .. } => outcome_of(notes),
                SessionReport { ending, notes, .. } => {
                    refused(format!("The sub-agent did not finish ({}). {notes}", ending.text()))
                }
            },
            Outcome::Failed(failure) => refused(format!("The sub-agent failed: {failure}")),
            Outcome::Cancelled => refused("The sub-agent was cancelled.".into()),
        })
    }

    /// Counts the turns and tokens of a sub-agent.
    fn count_sub_agent(&mut self, outcome: &Outcome) -> Result<(), Stop> {
        if let Outcome::Completed(report) = outcome
            && let Some(facts) = report.read::<SessionReport>()?.agent
        {
            self.progress.turns += facts.turns.unwrap_or_default();
            self.progress.usage += facts.usage;
            self.progress.add_cost(facts.cost_micros);
            self.progress.active_ms += facts.active_ms.unwrap_or_default();
        }
        Ok(())
    }

    async fn outcome_of(
        &mut self,
        context: &mut dyn Context,
        child: &RunId,
    ) -> Result<Outcome, Stop> {
        let mut is_cancelled = false;
        loop {
            match context.receive(&Filter::any(), None).await {
                Ok(Some(Received::ChildEnded { run, outcome })) if run == *child => {
                    return if is_cancelled { Err(Stop::Cancelled) } else { Ok(outcome) };
                }
                Ok(Some(received)) => self.apply_message(&received),
                Ok(None) => {}
                Err(Stop::Cancelled) => {
                    super::cancel_child(context, child, "its parent is cancelled").await?;
                    is_cancelled = true;
                }
                Err(stop) => return Err(stop),
            }
        }
    }
}

impl Summary {
    /// Adds a note of the model.
    pub(crate) fn note(&mut self, kind: NoteKind, text: String) {
        let notes = match kind {
            NoteKind::Progress => &mut self.completed,
            NoteKind::Decision => &mut self.decisions,
            NoteKind::Avoid => &mut self.avoid,
        };
        notes.push(text);
    }
}

/// The outcome of a call after the one that ended the session.
pub(super) fn skipped() -> ToolOutcome {
    refused("Not performed: the session has ended.".into())
}

fn outcome_of(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { text: text.into(), is_error: false, duration_ms: 0 }
}

fn refused(text: String) -> ToolOutcome {
    ToolOutcome { text, is_error: true, duration_ms: 0 }
}

/// A tool call in one line.
pub(crate) fn step(call: &ToolCall) -> String {
    let value: serde_json::Value = serde_json::from_str(&call.input).unwrap_or_default();
    let main = ["command", "path", "pattern", "glob", "task", "question", "text", "summary"]
        .iter()
        .find_map(|field| value.get(field)?.as_str());
    let line = format!("{} {}", call.name, main.unwrap_or_default());
    let line = line.lines().next().unwrap_or_default().trim().to_owned();
    if line.chars().count() <= SHOWN {
        return line;
    }
    line.chars().take(SHOWN - 1).chain(['…']).collect()
}
