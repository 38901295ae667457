//! The sessions of that world: of a program, and of the built-in agent on a scripted model.

use async_trait::async_trait;
use longhaul_engine::{Activity as _, Attempt, Failure, Handler, Handlers, RunId};
use longhaul_workflows::contracts::{
    BeginInput, BeginSession, Block, CallModel, EndInput, EndSession, Message, ModelAnswer,
    ModelCall, ModelStop, PromptTexts, RunSession, SessionBegin, SessionEnd, SessionEnding,
    SessionInput, SessionReport, ToolCall, Usage,
};

use super::{State, World};

/// A session marks when it begins and when it ends.
struct Sessions(World);

#[async_trait]
impl Handler<RunSession> for Sessions {
    async fn perform(
        &self,
        input: SessionInput,
        attempt: &Attempt,
    ) -> Result<SessionReport, Failure> {
        let feature = input.feature.id.to_string();
        {
            let mut state = self.0.state();
            state.sessions.push(attempt.run.to_string());
            if let Some(other) = state.at_work.insert(feature.clone(), attempt.run.to_string()) {
                state
                    .wrongs
                    .push(format!("{} began a session while {other} was at work", attempt.run));
            }
        }
        let waited = self.0.wait(RunSession::NAME, &feature, attempt).await;
        let mut state = self.0.state();
        state.at_work.remove(&feature);
        waited?;
        state.work_on(&input);
        Ok(SessionReport {
            sandbox: String::new(),
            tampered: Vec::new(),
            outside: Vec::new(),
            agent: None,
            ending: SessionEnding::ClaimsDone,
            notes: String::new(),
            unread_notes: None,
            duration_ms: 1,
            output_digest: String::new(),
            output_tail: String::new(),
            log: String::new(),
        })
    }
}

impl World {
    pub(super) fn sessions(&self) -> Handlers {
        Handlers::new()
            .with::<RunSession>(Sessions(self.clone()))
            .with::<BeginSession>(self.does::<BeginSession, _, _>(
                |input: &BeginInput| {
                    format!("{} {}", input.session.feature.id, input.session.number)
                },
                |_, _, _| Ok(begun()),
            ))
            .with::<CallModel>(self.does::<CallModel, _, _>(|_: &ModelCall| String::new(), answer))
            .with::<EndSession>(self.does::<EndSession, _, _>(
                |input: &EndInput| input.session.feature.id.to_string(),
                end_session,
            ))
    }
}

fn begun() -> SessionBegin {
    let text = |text: &str| text.to_owned();
    SessionBegin {
        window: None,
        landed: None,
        sandbox: text("none"),
        texts: PromptTexts {
            system: text("system"),
            prompt: text("prompt"),
            summarise: text("summarise"),
            resume: text("resume"),
            proceed: text("proceed"),
            shorten: text("shorten"),
        },
        tools: Vec::new(),
    }
}

/// The model gives a summary on request, fills its window with notes, then finishes.
#[expect(clippy::unnecessary_wraps, reason = "the handlers of this world may fail")]
fn answer(state: &mut State, call: &ModelCall, _: &RunId) -> Result<ModelAnswer, Failure> {
    let texts: Vec<String> = call.new.iter().flat_map(texts_of).collect();
    let summarises = texts.iter().any(|text| text == "summarise");
    state.heard.extend(texts);
    let used = if summarises { Some(0) } else { state.fill.pop_front() };
    let (tool, input) = match used {
        _ if summarises => ("summary", "{}"),
        Some(_) => ("note", r#"{"kind":"progress","text":"One step."}"#),
        None => ("finish", r#"{"summary":"Done."}"#),
    };
    let id = format!("call {}", state.heard.len());
    let call = ToolCall { id, name: tool.into(), input: input.into() };
    Ok(ModelAnswer {
        head: String::new(),
        blocks: vec![Block::ToolUse(call)],
        stop: ModelStop::ToolUse,
        usage: Usage { input: used.unwrap_or_default(), ..Usage::default() },
        cost_micros: None,
        model: "scripted".into(),
        request_id: None,
        duration_ms: 1,
    })
}

fn texts_of(message: &Message) -> Vec<String> {
    let Message::User { blocks } = message else { return Vec::new() };
    let text = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    };
    blocks.iter().filter_map(text).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "the handlers of this world may fail")]
fn end_session(state: &mut State, input: &EndInput, _: &RunId) -> Result<SessionEnd, Failure> {
    if input.handoff.is_none() {
        state.work_on(&input.session);
    }
    Ok(SessionEnd { notes: String::new() })
}
