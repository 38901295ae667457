//! Model calls: Anthropic's Messages API and OpenAI's chat completions.
//!
//! Reading order: `chain` (the conversation of a call), `exchange` (one request and its answer),
//! `refusal` (the classes of errors), `files` (state that survives a crash). Of each protocol, one
//! module composes requests and one reads the events of answers.

mod anthropic;
mod anthropic_answer;
mod chain;
pub(crate) mod client;
mod exchange;
mod files;
mod key;
mod limiter;
mod live;
mod openai;
mod openai_answer;
mod rate_limits;
mod received;
mod recent;
mod refusal;
mod size;
mod wait;
pub(crate) mod window;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::Utc;
use longhaul_engine::{Attempt, Failure, FailureKind, Handler, Probe};
use longhaul_workflows::contracts::{CallModel, Message, ModelAnswer, ModelCall, ModelStop, Usage};
use longhaul_workflows::settings::Protocol;

use crate::git::GitHandlers;
use crate::prices::Prices;
use crate::providers::Providers;

use chain::Conversation;
use client::Clients;
use exchange::{Answered, Exchange};
use files::CallFiles;
use key::Key;
pub(crate) use rate_limits::RateLimits;
use received::Received;
use recent::Recent;
use refusal::Refusal;

pub use limiter::Limiter;
pub(crate) use limiter::QueuedRequest;
pub use live::ModelEvent;

/// The handler of [`CallModel`].
#[derive(Debug, Clone)]
pub struct ModelHandler {
    data_dir: PathBuf,
    git: GitHandlers,
    clients: Clients,
    limiter: Limiter,
    recent: Recent,
}

impl ModelHandler {
    /// A handler that keeps its files in a data directory, which must exist, and finds projects by
    /// the paths of these handlers.
    pub fn new(data_dir: impl AsRef<Path>, git: GitHandlers, limiter: Limiter) -> Self {
        Self {
            data_dir: data_dir.as_ref().to_owned(),
            git,
            clients: Clients::default(),
            limiter,
            recent: Recent::default(),
        }
    }

    /// Sends the conversation when the limits of its provider allow it, and fails until then.
    async fn request_within_limits(
        &self,
        call: &ModelCall,
        conversation: &Conversation,
        key: &Key,
        attempt: &Attempt,
    ) -> Result<Answered, Failure> {
        let provider = call.api.provider_name();
        let model = call.model.clone();
        let tokens = size::estimate(&call.new, &[]).input;
        let limiter = self.limiter.clone();
        let data_dir = self.data_dir.clone();
        let id = attempt.key();
        let named = provider.clone();
        let of_model = model.clone();
        let own = id.clone();
        blocking(move || {
            let limits = Providers::limits_of(&data_dir, &named);
            let request =
                QueuedRequest { provider: &named, model: &of_model, call: &own, tokens, limits };
            limiter.admit(&request, Utc::now())
        })
        .await?;
        let outcome = self.request(call, conversation, key, attempt).await;
        let closed_until = match &outcome {
            Ok(answered) => answered.closed_until,
            Err(Failure { kind: FailureKind::RateLimited { until }, .. }) => Some(*until),
            Err(_) => None,
        };
        let used = outcome.as_ref().ok().and_then(|answered| answered.received.usage);
        if used.is_some() || outcome.is_err() {
            self.limiter.settle(&provider, &id, used.map_or(0, |usage| usage.fresh()));
        }
        if let Some(until) = closed_until {
            let closings = RateLimits::new(&self.data_dir);
            blocking(move || {
                closings.close(&provider, &model, until);
                Ok(())
            })
            .await?;
        }
        outcome
    }

    /// Sends the conversation; an answer that tells of a full window is an answer.
    async fn request(
        &self,
        call: &ModelCall,
        conversation: &Conversation,
        key: &Key,
        attempt: &Attempt,
    ) -> Result<Answered, Failure> {
        let url = exchange::url(call)?;
        let client = self.clients.client_for(&url).await?;
        let messages = conversation.messages();
        let exchange = Exchange { call, messages, key, client, url, attempt };
        let outcome = tokio::select! {
            outcome = exchange.perform() => outcome,
            () = attempt.cancelled() => return Err(Failure::cancelled()),
        };
        match outcome {
            Ok(mut answered) => {
                if is_shortened(call, messages, answered.received.usage) {
                    answered.received.stop = Some(ModelStop::ContextFull);
                    answered.received.blocks.clear();
                }
                Ok(answered)
            }
            Err(Refusal::ContextFull) => {
                let received = Received {
                    stop: Some(ModelStop::ContextFull),
                    usage: Some(Usage::default()),
                    model: call.model.clone(),
                    blocks: Vec::new(),
                };
                Ok(Answered { received, request_id: None, closed_until: None })
            }
            Err(Refusal::Failure(failure)) => Err(failure),
        }
    }
}

/// Whether a server of one's own has silently dropped the begin of the prompt, as Ollama does.
fn is_shortened(call: &ModelCall, messages: &[Message], usage: Option<Usage>) -> bool {
    let may_be = call.api.protocol == Protocol::Openai && call.api.url.is_some();
    may_be
        && usage.is_some_and(|usage| size::is_shortened(messages, usage.input + usage.cache_read))
}

#[async_trait]
impl Handler<CallModel> for ModelHandler {
    async fn perform(&self, call: ModelCall, attempt: &Attempt) -> Result<ModelAnswer, Failure> {
        let began = Instant::now();
        let files = CallFiles::new(&self.data_dir, attempt, &call);
        let root = self.git.root_of(&call.project);
        let prepare = {
            let files = files.clone();
            let recent = self.recent.clone();
            let call = call.clone();
            move || {
                if let Some(answer) = files.answer() {
                    return Ok(PreparedCall::Answered(Box::new(answer)));
                }
                let conversation = {
                    let directory = files.conversations();
                    Conversation::of(&directory, |head| recent.take(&directory, head), &call)?
                };
                Ok(PreparedCall::Request(
                    conversation,
                    Key::of(&call.api, call.key.as_ref(), &root)?,
                ))
            }
        };
        let (mut conversation, key) = match blocking(prepare).await? {
            PreparedCall::Answered(answer) => return Ok(*answer),
            PreparedCall::Request(conversation, key) => (conversation, key),
        };
        let answered = self.request_within_limits(&call, &conversation, &key, attempt).await?;
        let answer = answer(&mut conversation, answered, began.elapsed());
        let data_dir = self.data_dir.clone();
        let recent = self.recent.clone();
        let run = attempt.run.clone();
        blocking(move || {
            let cost_micros = Prices::cost_in(&data_dir, &answer.model, &answer.usage);
            let answer = ModelAnswer { cost_micros, ..answer };
            // The log records the answer next. A crash before that repeats the request; failing
            // here would repeat it for certain.
            if let Err(error) = files.keep(&answer) {
                tracing::warn!(%run, %error, "the answer of a model is not kept in its file");
            }
            if let Err(error) = conversation.save() {
                tracing::warn!(%run, %error, "a conversation is not kept in the cache");
            }
            recent.put(conversation);
            Ok(answer)
        })
        .await
    }

    async fn probe(&self, call: ModelCall, attempt: &Attempt) -> Probe<ModelAnswer> {
        let files = CallFiles::new(&self.data_dir, attempt, &call);
        match blocking(move || Ok(files.answer())).await {
            Ok(answer) => answer.map_or(Probe::NotHappened, Probe::Happened),
            Err(failure) => crate::machine::unknown_outcome(failure),
        }
    }
}

/// The state of a call before its request.
enum PreparedCall {
    Answered(Box<ModelAnswer>),
    Request(Conversation, Key),
}

/// The answer of the activity. It becomes a message of the conversation, unless it is empty.
fn answer(conversation: &mut Conversation, answered: Answered, took: Duration) -> ModelAnswer {
    let Answered { received, request_id, .. } = answered;
    let stop = received.stop.unwrap_or(ModelStop::EndTurn);
    let usage = received.usage;
    let usage = usage.unwrap_or_else(|| size::estimate(conversation.messages(), &received.blocks));
    if stop != ModelStop::ContextFull {
        conversation.push(Message::Model { blocks: received.blocks.clone() });
    }
    ModelAnswer {
        head: conversation.head().to_owned(),
        blocks: received.blocks,
        stop,
        usage,
        cost_micros: None,
        model: received.model,
        request_id,
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}

/// Runs work on files outside of the threads that drive runs.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(Failure::retryable(format!("the work on files was cut off: {error}"))),
    }
}
