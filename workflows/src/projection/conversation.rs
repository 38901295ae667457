//! The projection of a session run's history: its record for views and the ledger of its tokens.

use chrono::{DateTime, Utc};
use longhaul_engine::{Activity, Event, EventKind, Payload, Position};

use crate::contracts::{
    AgentProgress, BeginSession, Block, CallModel, EndInput, EndSession, Handoff, Message,
    ModelAnswer, ModelCall, ModelStop, RunSession, Seal, SealInput, SealStep, Sealed, SessionBegin,
    SessionReport, Summary, Usage, WindowUse,
};
use crate::session::tools::ToolArgs;
use crate::session::{SessionProgress, SessionStart, summary_of};
use crate::settings::Driver;

use super::transcript::{Transcript, TranscriptEntry};
use super::{SessionCondition, SessionState};

/// The use of a model: one answer of it, or all that another agent than the built-in one states.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUse {
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// The model, as the provider names it.
    pub model: String,
    /// The name of the provider.
    pub provider: String,
    /// Its tokens.
    pub usage: Usage,
    /// The recorded cost in millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// The turns of the session; a summary is none.
    pub turns: u32,
}

/// A commit of the work of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealing {
    /// The position of its event.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// Its cause.
    pub step: SealStep,
    /// The commit.
    pub commit: String,
}

/// The projection of a session run.
#[derive(Debug, Clone, Default)]
pub struct SessionView {
    /// The input of its last segment.
    pub start: Option<SessionStart>,
    /// The last published progress.
    pub progress: SessionProgress,
    /// The time of the last event.
    pub last_at: Option<DateTime<Utc>>,
    /// The uses of models, in order.
    pub uses: Vec<ModelUse>,
    /// The state of its work: the last summary, with the notes of the model since.
    pub summary: Summary,
    /// Its checkpoints, in order.
    pub checkpoints: Vec<Sealing>,
    /// The last package that it prepared for a successor.
    pub package: Option<Handoff>,
    /// Its report, once it is over.
    pub report: Option<SessionReport>,
    /// The reason of a failure or an interruption of its run.
    pub failure: Option<String>,
    /// The text that asks for a summary.
    summarise: Option<String>,
    is_over: bool,
    /// The failure after which its agent is tried again.
    interrupted: Option<String>,
    /// The calls for which another agent than the built-in one asked and got permission.
    pub granted: u32,
    /// The index in `uses` of its agent's own report.
    stated: Option<usize>,
    transcript: Transcript,
}

impl SessionView {
    /// The view of a history.
    pub fn of(events: &[Event]) -> Self {
        let mut view = Self::default();
        for event in events {
            view.apply(event);
        }
        view
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        self.last_at = Some(event.at);
        self.transcript.apply(event);
        match &event.kind {
            EventKind::RunStarted { input, .. } => self.begin(input),
            EventKind::StatusPublished { key, value, .. } if key == SessionProgress::KEY => {
                // An unreadable value changes nothing.
                self.progress = value.read().unwrap_or_else(|_| std::mem::take(&mut self.progress));
            }
            EventKind::ActivityStarted { name, .. } if name == RunSession::NAME => {
                self.interrupted = None;
                self.stated(event);
            }
            EventKind::ActivityProgressed { details, .. } => {
                if let Ok(progress) = details.read() {
                    self.progressed(event, progress);
                }
            }
            EventKind::ActivityFailed { name, failure, .. } if name == RunSession::NAME => {
                self.interrupted = Some(failure.message.clone());
            }
            EventKind::ActivityCompleted { name, input, output, .. } => {
                self.complete(event, name, input, output);
            }
            EventKind::RunCompleted { output } => {
                self.is_over = true;
                self.report = output.read().ok();
            }
            EventKind::RunFailed { failure } => {
                self.is_over = true;
                self.failure = Some(failure.message.clone());
            }
            EventKind::RunCancelled | EventKind::RunTerminated(_) => self.is_over = true,
            _ => {}
        }
    }

    /// Its state, and why it failed.
    pub fn condition(&self) -> SessionCondition {
        match (&self.report, &self.failure) {
            (Some(report), _) => SessionCondition::of(&report.ending),
            (None, Some(failure)) => SessionCondition::failed(failure),
            (None, None) if self.is_over || self.interrupted.is_some() => {
                let failure = self.interrupted.clone().filter(|_| !self.is_over);
                SessionCondition { state: SessionState::Interrupted, failure }
            }
            (None, None) => SessionState::Working.without_failure(),
        }
    }

    /// Its conversation.
    pub fn transcript(&self) -> &[TranscriptEntry] {
        &self.transcript.entries
    }

    /// A segment begins: a restarted session has a new conversation; its tokens are paid for.
    fn begin(&mut self, input: &Payload) {
        let uses = std::mem::take(&mut self.uses);
        let transcript = std::mem::take(&mut self.transcript);
        let last_at = self.last_at;
        let start: Option<SessionStart> = input.read().ok();
        let package = start.as_ref().and_then(|start| start.handoff.as_ref());
        let summary = package.map(|package| package.project_state.clone()).unwrap_or_default();
        *self = Self { start, last_at, uses, summary, transcript, ..Self::default() };
    }

    /// Whether another agent than the built-in one has begun to work.
    pub fn has_begun(&self) -> bool {
        self.stated.is_some()
    }

    /// The driver that runs it.
    pub fn driver(&self) -> Driver {
        self.start.as_ref().map_or(Driver::Api, |start| start.session.agent.driver)
    }

    /// The use of models that its agent has reported so far.
    fn stated(&mut self, event: &Event) -> &mut ModelUse {
        let place = *self.stated.get_or_insert(self.uses.len());
        if place == self.uses.len() {
            let agent = self.start.as_ref().map(|start| &start.session.agent);
            self.uses.push(ModelUse {
                at: event.at,
                model: agent.and_then(|agent| agent.model.clone()).unwrap_or_default(),
                provider: self.driver().as_str().to_owned(),
                usage: Usage::default(),
                cost_micros: None,
                turns: 0,
            });
        }
        let stated = &mut self.uses[place];
        stated.at = event.at;
        stated
    }

    /// The agent has come so far.
    fn progressed(&mut self, event: &Event, agent: AgentProgress) {
        let stated = self.stated(event);
        stated.usage = agent.usage;
        stated.cost_micros = agent.cost_micros;
        stated.turns = agent.turns.unwrap_or_default();
        if !agent.model.is_empty() {
            stated.model = agent.model;
        }
        self.progress.tool_calls = agent.tools;
        self.granted = agent.granted;
        self.filled(agent.window);
    }

    /// The agent states the filled part of its window.
    fn filled(&mut self, window: Option<WindowUse>) {
        if let Some(window) = window {
            self.progress.window.used = window.used;
            self.progress.window.size = window.size;
        }
    }

    fn complete(&mut self, event: &Event, name: &str, input: &Payload, output: &Payload) {
        match name {
            RunSession::NAME => {
                let Ok(SessionReport { agent: Some(facts), .. }) = output.read() else { return };
                let stated = self.stated(event);
                stated.turns = facts.turns.unwrap_or_default();
                stated.usage = facts.usage;
                stated.cost_micros = facts.cost_micros;
                if let Some(model) = facts.model {
                    stated.model = model;
                }
                self.filled(facts.window);
            }
            BeginSession::NAME => {
                let begun = output.read::<SessionBegin>().ok();
                self.summarise = begun.map(|begun| begun.texts.summarise);
            }
            CallModel::NAME => {
                if let (Ok(call), Ok(answer)) = (input.read(), output.read()) {
                    self.answer(event, &call, &answer);
                }
            }
            Seal::NAME => {
                if let (Ok(SealInput { step, .. }), Ok(Sealed { commit, .. })) =
                    (input.read(), output.read())
                {
                    let position = event.position;
                    let at = event.at;
                    self.checkpoints.push(Sealing { position, at, step, commit });
                }
            }
            EndSession::NAME => {
                let handoff = input.read::<EndInput>().ok().and_then(|input| input.handoff);
                self.package = handoff.or_else(|| self.package.take());
            }
            _ => {}
        }
    }

    fn answer(&mut self, event: &Event, call: &ModelCall, answer: &ModelAnswer) {
        let asks_for_summary = self.summarise.is_some() && last_text(call) == self.summarise;
        self.uses.push(ModelUse {
            at: event.at,
            model: answer.model.clone(),
            provider: call.api.provider_name(),
            usage: answer.usage,
            cost_micros: answer.cost_micros,
            turns: u32::from(!asks_for_summary),
        });
        if asks_for_summary {
            if answer.stop != ModelStop::ContextFull {
                self.summary.replace(summary_of(&answer.blocks));
            }
            return;
        }
        for block in &answer.blocks {
            let Block::ToolUse(call) = block else { continue };
            match ToolArgs::parse(&call.name, &call.input) {
                Ok(ToolArgs::Note { kind, text }) => self.summary.note(kind, text),
                Ok(ToolArgs::Finish { summary }) => {
                    self.summary.completed.push(summary);
                    return;
                }
                _ => {}
            }
        }
    }
}

/// The last text of a request.
fn last_text(call: &ModelCall) -> Option<String> {
    match call.new.last()? {
        Message::User { blocks } => match blocks.last()? {
            Block::Text { text } => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}
