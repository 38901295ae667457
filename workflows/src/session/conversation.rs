//! The conversation with a model, and the calls that extend it.

use longhaul_engine::{Context, ContextExt, Failure, Stop};

use crate::contracts::{Block, CallModel, Message, ModelAnswer, ModelCall, ModelStop, ToolSpec};

use super::window::tokens;
use super::{Session, SessionPhase};

/// A conversation: all its messages, and how many of them the chain of the handler has.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// The head of the chain, and the number of messages in it.
    sent: Option<(String, usize)>,
}

impl Conversation {
    pub(super) fn begin(system: &str, tools: &[ToolSpec], prompt: &str) -> Self {
        let start = Message::Start { system: system.into(), tools: tools.to_vec() };
        let mut conversation = Self { messages: vec![start], sent: None };
        conversation.push_text(prompt.into());
        conversation
    }

    /// Adds a text to the open message of the harness.
    pub(super) fn push_text(&mut self, text: String) {
        self.open().push(Block::Text { text });
    }

    /// Adds results of tools; they precede texts.
    pub(super) fn push_results(&mut self, results: Vec<Block>) {
        self.open().splice(0..0, results);
    }

    /// The blocks of the last message, which is not sent yet.
    fn open(&mut self) -> &mut Vec<Block> {
        let sent = self.sent.as_ref().map_or(0, |(_, count)| *count);
        if self.messages.len() == sent
            || !matches!(self.messages.last(), Some(Message::User { .. }))
        {
            self.messages.push(Message::User { blocks: Vec::new() });
        }
        match self.messages.last_mut() {
            Some(Message::User { blocks }) => blocks,
            _ => unreachable!("the last message was pushed above"),
        }
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Replaces all messages; the next call sends them anew.
    pub(super) fn replace(&mut self, messages: Vec<Message>) {
        *self = Self { messages, sent: None };
    }

    pub(super) fn tokens_of(messages: &[Message]) -> u64 {
        tokens(messages.iter().map(size).sum())
    }

    fn unsent(&self) -> &[Message] {
        &self.messages[self.sent.as_ref().map_or(0, |(_, count)| *count)..]
    }

    /// The estimated tokens of the messages that the next call adds.
    pub(super) fn unsent_tokens(&self) -> u64 {
        Self::tokens_of(self.unsent())
    }

    fn take_answer(&mut self, answer: &ModelAnswer) {
        if answer.stop == ModelStop::ContextFull {
            return;
        }
        self.messages.push(Message::Model { blocks: answer.blocks.clone() });
        self.sent = Some((answer.head.clone(), self.messages.len()));
    }

    /// The last text of the model.
    pub(super) fn last_text(&self) -> &str {
        let texts = self.messages.iter().rev().filter_map(|message| match message {
            Message::Model { blocks } => blocks.iter().rev().find_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            }),
            _ => None,
        });
        texts.into_iter().next().unwrap_or_default()
    }
}

fn size(message: &Message) -> usize {
    let block = |block: &Block| match block {
        Block::Text { text } | Block::ToolResult { text, .. } => text.len(),
        Block::Opaque { json } => json.len(),
        Block::ToolUse(call) => call.input.len() + call.name.len(),
    };
    match message {
        Message::Start { system, tools } => {
            let tool = |tool: &ToolSpec| tool.description.len() + tool.schema.len();
            system.len() + tools.iter().map(tool).sum::<usize>()
        }
        Message::User { blocks } | Message::Model { blocks } => blocks.iter().map(block).sum(),
    }
}

impl Session {
    /// The next answer of the model.
    pub(super) async fn ask(&mut self, context: &mut dyn Context) -> Result<ModelAnswer, Stop> {
        if self.progress.begun_at.is_none() {
            self.progress.begun_at = Some(context.now().await?);
        }
        self.progress.phase = SessionPhase::Working;
        self.publish(context).await?;
        let model = self.start.session.agent.model.clone().unwrap_or_default();
        let mut conversation = std::mem::take(&mut self.conversation);
        let answer = self.call(context, &mut conversation, model).await;
        self.conversation = conversation;
        let answer = answer?;
        self.progress.turns += 1;
        if answer.stop != ModelStop::ContextFull {
            self.progress.window.take(&answer.usage);
            self.progress.model.clone_from(&answer.model);
        }
        Ok(answer)
    }

    /// Extends a conversation by an answer. If the handler has lost the chain, the whole
    /// conversation is sent again; the log has it.
    pub(super) async fn call(
        &mut self,
        context: &mut dyn Context,
        conversation: &mut Conversation,
        model: String,
    ) -> Result<ModelAnswer, Stop> {
        let mut call = self.model_call(conversation, model);
        let answer = match context.call::<CallModel>(call.clone()).await {
            Err(Stop::Failed(Failure { code: Some(code), .. }))
                if code == CallModel::UNKNOWN_HEAD && call.head.is_some() =>
            {
                call.head = None;
                call.new.clone_from(&conversation.messages);
                context.call::<CallModel>(call).await?
            }
            other => other?,
        };
        conversation.take_answer(&answer);
        self.progress.usage += answer.usage;
        self.progress.add_cost(answer.cost_micros);
        self.progress.active_ms += answer.duration_ms;
        Ok(answer)
    }

    fn model_call(&self, conversation: &Conversation, model: String) -> ModelCall {
        let session = &self.start.session;
        let agent = &session.agent;
        let key = agent.env.get(agent.api.key_name());
        ModelCall {
            project: session.project.clone(),
            api: agent.api.clone(),
            key: key.cloned(),
            model,
            window: self.progress.window.size,
            head: conversation.sent.as_ref().map(|(head, _)| head.clone()),
            new: conversation.unsent().to_vec(),
        }
    }
}
