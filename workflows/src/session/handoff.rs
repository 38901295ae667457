//! Summaries and handoffs: how work outlives a context window.
//!
//! A handoff has two phases, and both are recorded. The session seals its work and sends its
//! feature run the package; that starts the successor, which acknowledges the digest of the
//! package. Then the feature run gives the work to the successor, and shuts the predecessor down.
//! Until that decision neither of them acts. Without an acknowledgement the predecessor resumes.

use longhaul_engine::{Context, ContextExt, Filter, Received, Stop};
use serde::{Deserialize, Serialize};

use crate::contracts::{
    Block, EndInput, EndSession, Handoff, HookEvent, Message, ModelStop, Seal, SealInput, SealStep,
    SessionEnding, Summary, ToolSpec,
};

use crate::resources::Resources;

use super::conversation::Conversation;
use super::{Next, Session, SessionPhase, successor, tool_call};

/// The signal `handoff_prepared`: a session offers its work to a successor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandoffPrepared {
    /// The package.
    pub package: Handoff,
    /// The resources that the successor may use.
    pub left: Resources,
}

/// The signal `handoff_acknowledged`: a successor has loaded its package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffAcknowledged {
    /// The digest of the package.
    pub digest: String,
}

/// The signal `handoff_decision`: the feature run decides which session owns the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffDecision {
    /// The receiver owns the work.
    Own,
    /// Another session owns the work; the receiver ends.
    Shutdown,
}

impl HandoffPrepared {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "handoff_prepared";
}

impl HandoffAcknowledged {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "handoff_acknowledged";
}

impl HandoffDecision {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "handoff_decision";
}

impl Session {
    /// Acknowledges the package of the predecessor and waits for the work; false if it stays with
    /// the predecessor. A session without a predecessor owns the work from the start.
    pub(super) async fn acknowledge(&mut self, context: &mut dyn Context) -> Result<bool, Stop> {
        let Some(package) = &self.start.handoff else { return Ok(true) };
        let acknowledged = HandoffAcknowledged { digest: package.digest() };
        let Some(feature) = self.start.feature_run() else { return Ok(false) };
        context.signal(feature, HandoffAcknowledged::SIGNAL, &acknowledged).await?;
        self.publish(context).await?;
        Ok(self.decision(context).await? == HandoffDecision::Own)
    }

    async fn decision(&mut self, context: &mut dyn Context) -> Result<HandoffDecision, Stop> {
        let filter = Filter::signals(&[HandoffDecision::SIGNAL]);
        loop {
            if let Some(Received::Signal { payload, from: Some(from), .. }) =
                context.receive(&filter, None).await?
                && Some(from) == self.start.feature_run()
            {
                return Ok(payload.read()?);
            }
        }
    }

    /// Commits the work so far.
    pub(super) async fn checkpoint(
        &mut self,
        context: &mut dyn Context,
        step: SealStep,
    ) -> Result<crate::contracts::Sealed, Stop> {
        let sealed = context.call::<Seal>(SealInput { step, ..self.start.seal.clone() }).await?;
        self.progress.checkpoints += 1;
        for tampering in &sealed.tampered {
            let file = &tampering.file;
            let what = &tampering.what;
            self.conversation
                .push_text(format!("Put back, because you may not change it: {file} ({what})"));
        }
        for file in &sealed.left_out {
            self.conversation.push_text(crate::prompt::left_out(file));
        }
        self.tampered.extend(sealed.tampered.iter().cloned());
        self.outside.extend(sealed.outside.iter().cloned());
        Ok(sealed)
    }

    /// Replaces the conversation by a summary of it.
    pub(super) async fn compact(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        let session = self.start.session.number;
        self.checkpoint(context, SealStep::PreOverflow { session }).await?;
        self.hook_before_overflow(context).await?;
        self.summarise(context).await?;
        self.shrink();
        Ok(())
    }

    /// Begins the conversation anew, with the summary.
    fn shrink(&mut self) {
        let begun = self.begun.as_ref().expect("a session has begun");
        self.conversation =
            Conversation::begin(&begun.texts.system, &begun.tools, &begun.texts.prompt);
        self.conversation.push_text(begun.texts.resume.clone());
        self.conversation.push_text(self.summary.document());
        self.progress.compactions += 1;
        self.progress.window.empty();
        self.repeats.forget();
    }

    /// The provider refused the conversation as too long: the same as a threshold, except that the
    /// oldest part is left out of the conversation to summarise.
    pub(super) async fn overflow(&mut self, context: &mut dyn Context) -> Result<Next, Stop> {
        self.overflows += 1;
        if self.overflows > MOST_OVERFLOWS {
            return Ok(Next::End(SessionEnding::ContextFull));
        }
        self.conversation.shorten(self.progress.window.size / 2);
        if self.progress.compactions < self.start.session.agent.context.compactions {
            self.compact(context).await?;
            return Ok(Next::Turn);
        }
        Ok(self.hand_over(context).await?.map_or(Next::Turn, Next::End))
    }

    /// Asks the model for a summary of the conversation. Decisions and approaches to avoid are
    /// kept, whether the model repeats them or not.
    async fn summarise(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        let agent = &self.start.session.agent;
        let model = agent.api.summary_model.clone().or_else(|| agent.model.clone());
        let texts = &self.begun.as_ref().expect("a session has begun").texts;
        let mut conversation = self.conversation.clone();
        conversation.push_text(texts.summarise.clone());
        let answer = self.call(context, &mut conversation, model.unwrap_or_default()).await?;
        if answer.stop == ModelStop::ContextFull {
            // The notes of the session remain.
            return Ok(());
        }
        self.summary.replace(summary_of(&answer.blocks));
        Ok(())
    }

    /// Hands the work over to a fresh session; `None` if this one goes on.
    pub(super) async fn hand_over(
        &mut self,
        context: &mut dyn Context,
    ) -> Result<Option<SessionEnding>, Stop> {
        let next = successor(&self.start.id, self.rejected).filter(|_| self.start.task.is_none());
        let (Some(next), Some(feature)) = (next, self.start.feature_run()) else {
            // A sub-agent has no successor.
            self.compact(context).await?;
            return Ok(None);
        };
        if let Some(refusal) = self.hook(context, HookEvent::Handoff, None, None).await? {
            self.conversation.push_text(format!("A hook of the user refuses a handoff: {refusal}"));
            self.compact(context).await?;
            return Ok(None);
        }
        let sealed = self
            .checkpoint(context, SealStep::Handoff { session: self.start.session.number })
            .await?;
        self.hook_before_overflow(context).await?;
        self.summarise(context).await?;
        let package = Handoff {
            previous_session_id: self.start.id.clone(),
            new_session_id: next.clone(),
            project_name: self.start.session.project.id.clone(),
            feature: self.start.session.feature.id.to_string(),
            created_at: context.now().await?,
            commit: sealed.commit,
            artifacts: sealed.files,
            project_state: self.summary.clone(),
        };
        let session = self.start.session.clone();
        let end = EndInput { session, handoff: Some(package.clone()) };
        context.call::<EndSession>(end).await?;
        self.progress.phase = SessionPhase::HandingOver;
        self.progress.successor = Some(next);
        self.publish(context).await?;
        let prepared = HandoffPrepared { package, left: self.remaining() };
        context.signal(feature, HandoffPrepared::SIGNAL, &prepared).await?;
        match self.decision(context).await? {
            HandoffDecision::Shutdown => Ok(Some(SessionEnding::ContextFull)),
            HandoffDecision::Own => {
                self.rejected += 1;
                self.progress.successor = None;
                self.shrink();
                Ok(None)
            }
        }
    }
}

/// How often a provider may refuse the conversation of one session as too long.
const MOST_OVERFLOWS: u32 = 5;

/// The summary in an answer: the call of its tool, else the text.
pub(crate) fn summary_of(blocks: &[Block]) -> Summary {
    blocks.iter().find_map(summary_in).unwrap_or_else(|| text_of(blocks))
}

fn summary_in(block: &Block) -> Option<Summary> {
    let call = tool_call(block).filter(|call| call.name == SUMMARY)?;
    serde_json::from_str(&call.input).ok()
}

/// The tool with which a model gives a summary.
const SUMMARY: &str = "summary";

/// That tool. It is always offered, because providers cache the tools with the prompt.
pub fn summary_tool() -> ToolSpec {
    ToolSpec {
        name: SUMMARY.into(),
        description:
            "Gives a summary of the conversation. Call it only when you are asked to: the \
                      summary then replaces the conversation."
                .into(),
        schema: schemars::schema_for!(Summary).as_value().to_string(),
        mcp: None,
    }
}

fn text_of(blocks: &[Block]) -> Summary {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    Summary { in_progress: texts.join("\n"), ..Summary::default() }
}

impl Summary {
    /// Takes a newer summary. Decisions and approaches to avoid are never lost.
    pub(crate) fn replace(&mut self, newer: Self) {
        let before = std::mem::replace(self, newer);
        keep(&mut self.decisions, before.decisions);
        keep(&mut self.avoid, before.avoid);
        if self.objective.is_empty() {
            self.objective = before.objective;
        }
    }
}

fn keep(items: &mut Vec<String>, earlier: Vec<String>) {
    let newer = std::mem::replace(items, earlier);
    for item in newer {
        if !items.contains(&item) {
            items.push(item);
        }
    }
}

impl Conversation {
    /// Leaves out the oldest messages after the prompt, so that at most `limit` estimated tokens
    /// remain. What remains begins with an answer of the model, so no result lacks its call.
    fn shorten(&mut self, limit: u64) {
        let messages = self.messages();
        let begins = |at: usize| matches!(messages[at], Message::Model { .. });
        let first = (2..messages.len())
            .filter(|at| begins(*at))
            .find(|at| Self::tokens_of(&messages[*at..]) <= limit);
        let rest = first.map_or(&messages[messages.len()..], |first| &messages[first..]);
        let kept = messages[..2.min(messages.len())].iter().chain(rest).cloned().collect();
        self.replace(kept);
    }
}
