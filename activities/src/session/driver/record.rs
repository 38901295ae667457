//! The record of one process of an agent, built from its events while it runs.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use longhaul_workflows::contracts::{AgentFacts, AgentOutcome, AgentProgress, Usage};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::process::{Finished, Observer, Stopped, readable_end};

use super::boundary::Boundary;
use super::transcript::{Lines, Printer};
use super::{AgentDriver, AgentEvent, Dialogue, End, Line, Reader};

/// How long an agent may repeat a failed request before Longhaul waits instead, with a durable
/// timer.
const RETRIES: Duration = Duration::from_mins(1);
/// The time in which an agent has to end once its turn has ended, or was cancelled.
const GRACE: Duration = Duration::from_secs(5);
/// The size of the end of the transcript in a report, in bytes.
const TAIL: usize = 8 * 1024;

/// Receives the progress of a conversation when it changes.
pub(in crate::session) type ProgressListener<'a> = Box<dyn FnMut(&AgentProgress) + Send + 'a>;

/// The record of one process of an agent.
pub(in crate::session) struct Record<'a> {
    driver: &'static dyn AgentDriver,
    reader: Box<dyn Reader>,
    save: ProgressListener<'a>,
    /// The longest wait for an answer of the model.
    silence: Option<Duration>,
    /// The progress before this process.
    before: AgentProgress,
    progress: AgentProgress,
    version: Option<String>,
    refused: Vec<String>,
    /// The tools at work.
    open: BTreeSet<String>,
    is_answering: bool,
    /// Whether the model has answered.
    has_worked: bool,
    is_stopped_by_refusal: bool,
    end: Option<End>,
    /// The failed request that is repeated, and since when.
    retrying: Option<(End, Instant)>,
    begun_at: Instant,
    progressed_at: Instant,
    lines: Lines,
    printer: Printer,
    tail: String,
    last_note: String,
    /// Where lines for the agent go, until its turn has ended.
    input: Option<UnboundedSender<Line>>,
    /// When its turn ends between two actions.
    boundary: Option<Boundary>,
    leaving: DialogueEnd,
}

/// Whether an agent with a dialogue is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialogueEnd {
    No,
    /// Its turn had ended by itself then, and its input with it.
    TurnEnded(Instant),
    /// Its turn was cancelled, because the process is to end.
    Asked,
}

impl<'a> Record<'a> {
    /// The record of a process that continues a conversation, or begins one.
    pub(in crate::session) fn new(
        driver: &'static dyn AgentDriver,
        before: AgentProgress,
        silence: Option<Duration>,
        save: ProgressListener<'a>,
    ) -> Self {
        Self {
            driver,
            reader: driver.reader(),
            save,
            silence,
            progress: before.clone(),
            before,
            version: None,
            refused: Vec::new(),
            open: BTreeSet::new(),
            is_answering: false,
            has_worked: false,
            is_stopped_by_refusal: false,
            end: None,
            retrying: None,
            begun_at: Instant::now(),
            progressed_at: Instant::now(),
            lines: Lines::default(),
            printer: Printer::default(),
            tail: String::new(),
            last_note: String::new(),
            input: None,
            boundary: None,
            leaving: DialogueEnd::No,
        }
    }

    /// Begins a dialogue, if the driver has one; returns the lines for the agent.
    pub(in crate::session) fn speak(
        &mut self,
        dialogue: Dialogue,
    ) -> Option<UnboundedReceiver<Line>> {
        let boundary = Boundary::new(dialogue.agent.context.handoff_at, dialogue.available);
        self.reader = self.driver.speaker(dialogue)?;
        self.boundary = Some(boundary);
        let (input, lines) = unbounded_channel();
        self.input = Some(input);
        self.reply();
        Some(lines)
    }

    /// Writes the pending lines of its reader.
    fn reply(&mut self) {
        for line in self.reader.replies() {
            // The agent may have ended.
            let _ = self.input.as_ref().map(|input| input.send(line));
        }
    }

    /// Whether the model has answered.
    pub(in crate::session) fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// The progress of the conversation.
    pub(in crate::session) fn progress(&self) -> &AgentProgress {
        &self.progress
    }

    /// The end of the transcript.
    pub(in crate::session) fn tail(&self) -> String {
        readable_end(self.tail.as_bytes(), TAIL)
    }

    /// The tools of refused calls.
    pub(in crate::session) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// The facts for the report.
    pub(in crate::session) fn facts(
        &self,
        outcome: AgentOutcome,
        version: Option<String>,
        duration_ms: u64,
    ) -> AgentFacts {
        let conversation = self.progress.conversation.clone();
        AgentFacts {
            driver: self.driver.name().into(),
            version: self.version.clone().or(version),
            model: Some(self.progress.model.clone()).filter(|model| !model.is_empty()),
            conversation: Some(conversation).filter(|id| !id.is_empty()),
            outcome,
            usage: self.progress.usage,
            cost_micros: self.progress.cost_micros,
            turns: self.progress.turns,
            active_ms: (self.before.active_ms > 0).then_some(self.before.active_ms + duration_ms),
            refused: self.refused.clone(),
            granted: self.progress.granted,
            window: self.progress.window,
        }
    }

    /// How the process ended.
    pub(in crate::session) fn end(&mut self, finished: &Finished) -> End {
        let rest = self.lines.rest();
        if let Some(line) = rest {
            self.line(&line);
        }
        let lingered = matches!(self.leaving, DialogueEnd::TurnEnded(_));
        if finished.stopped == Some(Stopped::GivenUp) && !lingered {
            return self.given_up();
        }
        match (self.end.take(), &finished.ended_by) {
            (_, Some(limit)) if finished.stopped == Some(Stopped::Limit) => {
                End::new(AgentOutcome::Interrupted, limit.clone())
            }
            (Some(end), _) => end,
            (None, None) if self.is_stopped_by_refusal => {
                End::new(AgentOutcome::ToolsRefused, "it ended at a refused tool call")
            }
            (None, _) => {
                let ending = finished.ending();
                let note = mem::take(&mut self.last_note);
                let message = if note.is_empty() { ending } else { format!("{ending}, `{note}`") };
                End::new(AgentOutcome::Crashed, message)
            }
        }
    }

    /// The end of an agent that waited in vain.
    fn given_up(&mut self) -> End {
        let Some((end, since)) = self.retrying.take() else {
            let waited = self.silence.unwrap_or_default().as_secs_f64();
            let message = format!("the model gave no answer for {waited} s");
            return End::new(AgentOutcome::Overloaded, message);
        };
        let delay = end.delay.map(|delay| delay.saturating_sub(since.elapsed()));
        let outcome = match end.outcome {
            AgentOutcome::Protocol => AgentOutcome::Overloaded,
            outcome => outcome,
        };
        End { outcome, delay, ..end }
    }

    fn line(&mut self, line: &str) {
        let mut is_to_be_saved = false;
        let mut is_measured = false;
        for event in self.reader.line(line) {
            self.tail.push_str(&self.printer.print(&event));
            is_measured |= matches!(event, AgentEvent::Usage { .. } | AgentEvent::Window(_));
            is_to_be_saved |= self.apply(event);
        }
        if is_to_be_saved {
            (self.save)(&self.progress);
        }
        let progress = &self.progress;
        let boundary = self.boundary.as_mut().filter(|_| is_measured);
        if boundary.is_some_and(|boundary| boundary.is_reached_by(progress)) {
            self.reader.stop_at_boundary();
        }
        self.reply();
        if self.tail.len() > 8 * TAIL {
            self.tail = self.tail();
        }
    }

    /// Applies an event; returns whether the progress is to be saved.
    fn apply(&mut self, event: AgentEvent) -> bool {
        let mut is_to_be_saved = false;
        match event {
            AgentEvent::Note(text) => {
                if !text.trim().is_empty() {
                    self.last_note = text.trim().chars().take(200).collect();
                }
                return false;
            }
            AgentEvent::Retrying(end) => {
                let since = self.retrying.take().map_or_else(Instant::now, |(_, since)| since);
                self.retrying = Some((end, since));
                return false;
            }
            AgentEvent::Ended(end) => {
                self.is_answering = false;
                self.end = Some(Boundary::typed(self.boundary.as_ref(), end));
                self.progressed();
                if self.input.take().is_some() && self.leaving == DialogueEnd::No {
                    self.leaving = DialogueEnd::TurnEnded(Instant::now());
                }
                return false;
            }
            AgentEvent::Began { conversation, version, model } => {
                return self.begun(conversation, version, model);
            }
            AgentEvent::Usage { usage, cost_micros, turns } => {
                return self.take_usage(usage, cost_micros, turns);
            }
            AgentEvent::Window(window) => {
                return self.progress.window.replace(window) != Some(window);
            }
            AgentEvent::Text(_) => {
                self.has_worked = true;
                self.progress.messages += 1;
            }
            AgentEvent::Answering => self.has_worked = true,
            AgentEvent::ToolBegan { id, .. } => {
                self.has_worked = true;
                self.progress.tools += 1;
                self.open.insert(id);
            }
            AgentEvent::ToolGranted { .. } => self.progress.granted += 1,
            AgentEvent::ToolEnded { id, .. } => {
                self.open.remove(&id);
                self.is_stopped_by_refusal = false;
                is_to_be_saved = true;
            }
            AgentEvent::ToolRefused { id, name, .. } => {
                self.open.remove(&id);
                self.refused.push(name);
                self.is_stopped_by_refusal = true;
            }
            AgentEvent::AnswerBegan => self.is_answering = true,
            AgentEvent::AnswerEnded => self.is_answering = false,
            AgentEvent::Compacted { .. } => {}
        }
        // The turn goes on, or another one begins.
        self.end = None;
        if matches!(self.leaving, DialogueEnd::TurnEnded(_)) {
            self.leaving = DialogueEnd::No;
        }
        self.progressed();
        is_to_be_saved
    }

    /// The conversation is known.
    fn begun(
        &mut self,
        conversation: String,
        version: Option<String>,
        model: Option<String>,
    ) -> bool {
        self.version = version.or(self.version.take());
        let model = model.unwrap_or_else(|| self.progress.model.clone());
        // Not a sign of the model.
        self.progressed_at = Instant::now();
        let is_new = (&self.progress.conversation, &self.progress.model) != (&conversation, &model);
        self.progress.conversation = conversation;
        self.progress.model = model;
        is_new
    }

    fn progressed(&mut self) {
        if self.leaving != DialogueEnd::Asked {
            self.retrying = None;
        }
        self.progressed_at = Instant::now();
    }

    fn take_usage(&mut self, usage: Usage, cost_micros: Option<u64>, turns: Option<u32>) -> bool {
        let mut whole = usage;
        if !self.driver.abilities().reports_whole_usage {
            whole += self.before.usage;
        }
        let cost = match (self.before.cost_micros, cost_micros) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or_default() + now.unwrap_or_default()),
        };
        let is_new = (whole, cost) != (self.progress.usage, self.progress.cost_micros);
        if is_new {
            self.progress.usage = whole;
            self.progress.cost_micros = cost;
            self.progress.turns = turns.map(|turns| self.before.turns.unwrap_or_default() + turns);
            self.progress.active_ms = self.before.active_ms + millis(self.begun_at.elapsed());
            // The model answered: earlier waits are over.
            self.progress.waits = 0;
        }
        is_new
    }
}

/// A duration in milliseconds.
pub(in crate::session) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Observer for Record<'_> {
    fn take(&mut self, chunk: &[u8]) {
        for line in self.lines.take(chunk) {
            self.line(&line);
        }
    }

    fn gives_up_at(&self) -> Option<Instant> {
        let silence = self.silence.unwrap_or(RETRIES);
        let retries = self.retrying.as_ref().map(|(_, since)| *since + RETRIES.min(silence));
        let waits_for_model = self.open.is_empty() && !self.is_answering;
        let silent =
            self.silence.filter(|_| waits_for_model).map(|limit| self.progressed_at + limit);
        let lingers = match self.leaving {
            DialogueEnd::TurnEnded(at) if !self.reader.has_background_work() => Some(at + GRACE),
            _ => None,
        };
        retries.into_iter().chain(silent).chain(lingers).min()
    }

    fn ask_to_end(&mut self) -> Option<Duration> {
        let cancel = self.reader.cancel()?;
        self.input.as_ref()?.send(cancel).ok()?;
        self.leaving = DialogueEnd::Asked;
        Some(GRACE)
    }
}
