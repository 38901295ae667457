//! Questions of sessions to people, and their answers.

use longhaul_engine::{MessageBody, Payload, RequestedBy, RunId, RunReader, Status, StoreError};
use longhaul_workflows::session::{ANSWER, SessionProgress};
use serde::{Deserialize, Serialize};

use crate::advice;
use crate::head::RunHead;
use crate::perform::request;
use crate::request::RequestError;
use crate::run_kind::RunKind;
use crate::service::Service;

/// Answers the open question of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnswerQuestion {
    /// The session, or a run above it: of a feature or a project.
    pub run: RunId,
    /// The answer.
    pub text: String,
    /// The requester, and the reason.
    pub request: RequestedBy,
}

/// An answered question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answered {
    /// The session that asks.
    pub session: RunId,
    /// Its question.
    pub question: String,
    /// Whether the answer stays unread because no process runs the log now.
    pub waits: bool,
}

request!(AnswerQuestion, "answer" -> Answered, command: Some("answer"), |self, service| {
    self.run(&service).await
});

impl AnswerQuestion {
    async fn run(self, service: &Service) -> Result<Answered, RequestError> {
        let Self { run, text, request } = self;
        service.existing(&run).await?;
        if text.trim().is_empty() {
            return Err(RequestError::refused("the answer is empty"));
        }
        let mut open = open_questions(&*service.store, &run).await?;
        let Question { session, text: question } = match (open.pop(), open.is_empty()) {
            (Some(question), true) => question,
            (None, _) => {
                return Err(RequestError::refused(format!(
                    "run {run} asks nothing; {} sends its agent a note",
                    advice::command(["steer", run.as_str(), "TEXT"])
                )));
            }
            (Some(last), false) => {
                let asking = open.iter().chain([&last]);
                let ids: Vec<&str> = asking.map(|question| question.session.as_str()).collect();
                return Err(RequestError::refused(format!(
                    "several sessions of {run} ask; name one of them: {}",
                    ids.join(", ")
                )));
            }
        };
        let is_answer =
            |body: &MessageBody| matches!(body, MessageBody::Signal { name, .. } if name == ANSWER);
        let head = RunHead::of(&*service.store, &session).await?;
        if head.is_some_and(|head| head.has(is_answer)) {
            let reason = format!("session {session} has an answer in its mailbox already");
            return Err(RequestError::refused(reason));
        }
        let waits = service.waits(&session);
        let body = MessageBody::signal_by(ANSWER, Payload::of(&text), request);
        service.deliver(&session, body).await?;
        Ok(Answered { session, question, waits })
    }
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The session that asks.
    pub(crate) session: RunId,
    /// The question.
    pub(crate) text: String,
}

impl Question {
    /// The question and its remedy, as the reason of a run.
    pub(crate) fn reason(&self) -> String {
        format!("its agent asks: {} → {}", self.text.trim(), self.remedy())
    }

    /// The command that answers it.
    pub(crate) fn remedy(&self) -> String {
        advice::command(["answer", self.session.as_str(), "TEXT"])
    }
}

/// The open questions of a session or of the sessions below a run.
pub(crate) async fn open_questions(
    store: &dyn RunReader,
    within: &RunId,
) -> Result<Vec<Question>, StoreError> {
    let mut open = Vec::new();
    for (session, summary) in store.runs(within.as_str()).await? {
        if RunKind::of(&summary) == RunKind::Session
            && session.is_within(within.as_str())
            && !summary.status.is_terminal()
            && let Some(text) = progress(store, &session).await?.and_then(|it| it.question)
        {
            open.push(Question { session, text });
        }
    }
    Ok(open)
}

/// The question for which a waiting run waits.
pub(crate) async fn question_of(
    store: &dyn RunReader,
    run: &RunId,
    status: &Status,
) -> Result<Option<Question>, StoreError> {
    if !matches!(status, Status::Waiting { .. }) {
        return Ok(None);
    }
    Ok(open_questions(store, run).await?.into_iter().next())
}

/// The published progress of a session run; `None` if it has published none.
pub(crate) async fn progress(
    store: &dyn RunReader,
    run: &RunId,
) -> Result<Option<SessionProgress>, StoreError> {
    let published = store.published(run).await?;
    Ok(published.get(SessionProgress::KEY).and_then(|value| value.read().ok()))
}
