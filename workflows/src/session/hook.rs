//! Hooks of the user at points of a session.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{HookEvent, HookInput, RunHook, ToolCall, ToolOutcome};

use super::{Next, Session, SessionEnding};

/// How often hooks may refuse the end of a session.
const REFUSED_ENDS: u32 = 5;

impl Session {
    /// Runs the hook of an event, if there is one; returns why it refuses.
    pub(super) async fn hook(
        &mut self,
        context: &mut dyn Context,
        event: HookEvent,
        call: Option<&ToolCall>,
        result: Option<&ToolOutcome>,
    ) -> Result<Option<String>, Stop> {
        let hooks = &self.start.session.agent.hooks;
        let command = match event {
            HookEvent::BeforeTool => &hooks.before_tool,
            HookEvent::AfterTool => &hooks.after_tool,
            HookEvent::BeforeOverflow => &hooks.before_overflow,
            HookEvent::Handoff => &hooks.handoff,
            HookEvent::SessionEnd => &hooks.session_end,
        };
        let Some(command) = command.clone() else { return Ok(None) };
        let call = call.cloned().unwrap_or_default();
        let input = HookInput {
            subject: self.tool_use(&call),
            command,
            event,
            session: self.start.id.to_string(),
            result: result.cloned(),
        };
        Ok(context.call::<RunHook>(input).await?.refusal)
    }

    /// Tells the model of a refusal before a summary.
    pub(super) async fn hook_before_overflow(
        &mut self,
        context: &mut dyn Context,
    ) -> Result<(), Stop> {
        if let Some(refusal) = self.hook(context, HookEvent::BeforeOverflow, None, None).await? {
            self.conversation.push_text(format!("A hook of the user says: {refusal}"));
        }
        Ok(())
    }

    /// The end of a session, unless a hook refuses it: then the model reads why.
    pub(super) async fn end_or_go_on(
        &mut self,
        context: &mut dyn Context,
        ending: SessionEnding,
    ) -> Result<Next, Stop> {
        let claims_done = ending == SessionEnding::ClaimsDone;
        if claims_done
            && self.refused_ends < REFUSED_ENDS
            && let Some(refusal) = self.hook(context, HookEvent::SessionEnd, None, None).await?
        {
            self.refused_ends += 1;
            self.conversation.push_text(format!("A hook of the user refuses the end: {refusal}"));
            return Ok(Next::Turn);
        }
        Ok(Next::End(ending))
    }
}
