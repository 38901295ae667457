//! The transcript of a session of the built-in agent: its conversation, folded from its history.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use longhaul_engine::{Activity, Event, EventKind, Failure, Position, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contracts::{
    Block, CallModel, Message, ModelAnswer, ModelCall, ModelStop, Seal, Sealed, ToolOutcome,
    ToolUse, Usage, UseTool,
};
use crate::session::SessionWorkflow;

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptEntry {
    /// The position of its event in the history of the session.
    pub position: Position,
    /// The time of its recording.
    pub at: DateTime<Utc>,
    /// Its content.
    #[serde(flatten)]
    pub said: TranscriptContent,
}

/// The content of an entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TranscriptContent {
    /// A text for the model: the prompt, a reminder, a note of a person.
    Prompt {
        /// The text.
        text: String,
    },
    /// A text of the model.
    Text {
        /// The text.
        text: String,
    },
    /// The model calls a tool.
    ToolCall {
        /// The tool.
        tool: String,
        /// Its arguments: JSON as text, as the model wrote it.
        arguments: String,
    },
    /// The result of a tool call.
    ToolResult {
        /// The tool, if the call is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The result, as the model reads it.
        text: String,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// The end of an answer of the model.
    Answer {
        /// The model, as the provider names it.
        model: String,
        /// The tokens of the request and its answer.
        usage: Usage,
        /// Why the answer ended, if not for the results of tools or the end of a turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop: Option<String>,
        /// The duration.
        duration_ms: u64,
    },
    /// A model call or a tool failed.
    Failed {
        /// The failure.
        reason: String,
        /// The time of the next attempt; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<DateTime<Utc>>,
    },
    /// The work was committed.
    Checkpoint {
        /// The commit.
        commit: String,
    },
    /// The conversation begins anew, with a summary.
    Summarised,
    /// A sub-agent begins.
    SubAgent {
        /// Its session.
        session: String,
    },
}

/// The state of a fold over the events of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Transcript {
    pub(super) entries: Vec<TranscriptEntry>,
    /// The model calls whose request is in the entries.
    requested: BTreeSet<Slot>,
    /// The tool calls of the last answer: id and tool.
    calls: Vec<(String, String)>,
    /// The results of these calls in the entries, by id.
    results: BTreeSet<String>,
    /// The texts for the model since the last answer.
    texts: BTreeSet<String>,
    /// The first prompt.
    prompt: Option<String>,
}

impl Transcript {
    /// Applies the next event.
    pub(super) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { .. } => {
                let entries = std::mem::take(&mut self.entries);
                *self = Self { entries, ..Self::default() };
            }
            EventKind::ActivityStarted { slot, name, input, .. } if name == CallModel::NAME => {
                if let Ok(call) = input.read() {
                    self.request(event, *slot, &call);
                }
            }
            EventKind::ActivityCompleted { slot, name, input, output, .. } => match name.as_str() {
                CallModel::NAME => {
                    if let (Ok(call), Ok(answer)) = (input.read(), output.read()) {
                        self.request(event, *slot, &call);
                        self.answer(event, &answer);
                    }
                }
                UseTool::NAME => {
                    if let (Ok(input), Ok(outcome)) =
                        (input.read::<ToolUse>(), output.read::<ToolOutcome>())
                    {
                        self.result(event, &input.call.id, &outcome.text, outcome.is_error);
                    }
                }
                Seal::NAME => {
                    if let Ok(Sealed { commit, .. }) = output.read() {
                        self.push(event, TranscriptContent::Checkpoint { commit });
                    }
                }
                _ => {}
            },
            EventKind::ActivityFailed { name, failure, retry_at, .. } => {
                self.fail(event, name, failure, *retry_at);
            }
            EventKind::ChildStarted { run, workflow, .. } if workflow == SessionWorkflow::NAME => {
                self.push(event, TranscriptContent::SubAgent { session: run.to_string() });
            }
            _ => {}
        }
    }

    fn push(&mut self, event: &Event, said: TranscriptContent) {
        self.entries.push(TranscriptEntry { position: event.position, at: event.at, said });
    }

    /// Adds the new parts of a request. A conversation that is sent again repeats earlier ones.
    fn request(&mut self, event: &Event, slot: Slot, call: &ModelCall) {
        if !self.requested.insert(slot) {
            return;
        }
        let last = call.new.iter().rposition(|message| matches!(message, Message::Model { .. }));
        let is_new = call.head.is_none() && last.is_none();
        if is_new && self.prompt.is_some() {
            self.texts.clear();
            self.push(event, TranscriptContent::Summarised);
        }
        let unanswered = &call.new[last.map_or(0, |last| last + 1)..];
        for message in unanswered {
            let Message::User { blocks } = message else { continue };
            for block in blocks {
                match block {
                    Block::Text { text } => self.prompt(event, text),
                    Block::ToolResult { id, text, is_error } => {
                        self.result(event, id, text, *is_error);
                    }
                    Block::Opaque { .. } | Block::ToolUse(_) => {}
                }
            }
        }
    }

    fn prompt(&mut self, event: &Event, text: &str) {
        let is_first = self.prompt.get_or_insert_with(|| text.to_owned()) == text;
        let is_known = is_first && self.entries.iter().any(|entry| entry.said.is_prompt(text));
        if !is_known && self.texts.insert(text.to_owned()) {
            self.push(event, TranscriptContent::Prompt { text: text.to_owned() });
        }
    }

    fn result(&mut self, event: &Event, id: &str, text: &str, is_error: bool) {
        if self.results.insert(id.to_owned()) {
            let tool = self.calls.iter().find(|(call, _)| call == id).map(|(_, tool)| tool.clone());
            self.push(
                event,
                TranscriptContent::ToolResult { tool, text: text.to_owned(), is_error },
            );
        }
    }

    fn answer(&mut self, event: &Event, answer: &ModelAnswer) {
        if answer.stop != ModelStop::ContextFull {
            self.calls.clear();
            self.results.clear();
            self.texts.clear();
        }
        for block in &answer.blocks {
            match block {
                Block::Text { text } => {
                    self.push(event, TranscriptContent::Text { text: text.clone() });
                }
                Block::ToolUse(call) => {
                    self.calls.push((call.id.clone(), call.name.clone()));
                    let tool = call.name.clone();
                    let arguments = call.input.clone();
                    self.push(event, TranscriptContent::ToolCall { tool, arguments });
                }
                Block::Opaque { .. } | Block::ToolResult { .. } => {}
            }
        }
        let said = TranscriptContent::Answer {
            model: answer.model.clone(),
            usage: answer.usage,
            stop: stop(&answer.stop),
            duration_ms: answer.duration_ms,
        };
        self.push(event, said);
    }

    fn fail(
        &mut self,
        event: &Event,
        name: &str,
        failure: &Failure,
        retry_at: Option<DateTime<Utc>>,
    ) {
        // The workflow sends the whole conversation again; that is not a failure for people.
        if failure.code.as_deref() != Some(CallModel::UNKNOWN_HEAD) {
            let reason = format!("{}: {failure}", name.replace('_', " "));
            self.push(event, TranscriptContent::Failed { reason, retry_at });
        }
    }
}

impl TranscriptContent {
    fn is_prompt(&self, other: &str) -> bool {
        matches!(self, Self::Prompt { text } if text == other)
    }
}

/// An unusual end of an answer.
fn stop(stop: &ModelStop) -> Option<String> {
    match stop {
        ModelStop::EndTurn | ModelStop::ToolUse => None,
        ModelStop::MaxTokens => Some("the limit of its length".into()),
        ModelStop::ContextFull => Some("the window is full".into()),
        ModelStop::Refusal => Some("the model refused".into()),
        ModelStop::Other(other) => Some(other.clone()),
    }
}
