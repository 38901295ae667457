//! Errors of model services, in the forms in which they send them.

use serde_json::{Value, json};

use crate::{Protocol, Request};

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The key is wrong.
    Unauthorized,
    /// No credit: 402, or 429 with `insufficient_quota`.
    Billing,
    /// No credit, as Anthropic has answered with 400.
    CreditTooLow,
    /// The key may not use the model.
    Forbidden,
    /// No such model.
    NotFound,
    /// The request is malformed.
    BadRequest,
    /// Too many requests; with the seconds of `retry-after`, if any.
    RateLimited(Option<u32>),
    /// An internal error.
    Internal,
    /// Overload.
    Overloaded,
    /// The conversation does not fit.
    Overflow(Overflow),
    /// Any other response.
    Other {
        /// The HTTP status.
        status: u16,
        /// The headers.
        headers: Vec<(&'static str, String)>,
        /// The body.
        body: String,
    },
}

/// The form in which a service refuses a conversation that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Anthropic: `prompt is too long`.
    PromptTooLong,
    /// Anthropic: prompt and answer together.
    WithMaxTokens,
    /// Bedrock.
    Bedrock,
    /// Anthropic: 413.
    TooLarge,
    /// OpenAI: `context_length_exceeded`.
    OpenAi,
    /// vLLM.
    Vllm,
    /// vLLM before 2025, with the fields at the top.
    OldVllm,
    /// llama.cpp.
    LlamaCpp,
    /// Ollama: an answer to the end of the prompt, without an error.
    Shortened,
}

impl Overflow {
    /// All forms.
    pub const ALL: [Self; 9] = [
        Self::PromptTooLong,
        Self::WithMaxTokens,
        Self::Bedrock,
        Self::TooLarge,
        Self::OpenAi,
        Self::Vllm,
        Self::OldVllm,
        Self::LlamaCpp,
        Self::Shortened,
    ];
}

/// A response with an error.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Fault {
    /// The response to a request. Its message repeats the key, as some gateways do.
    pub(crate) fn response(&self, request: &Request, window: u64) -> Response {
        let key = request.key.as_deref().unwrap_or("none");
        let mut headers = Vec::new();
        let (status, kind, code, message) = match self {
            Self::Unauthorized => {
                (401, "authentication_error", "invalid_api_key", "invalid key".to_owned())
            }
            Self::Billing => match request.protocol {
                Protocol::Anthropic => (402, "billing_error", "", "no credit".to_owned()),
                Protocol::OpenAi | Protocol::Responses => {
                    (429, "insufficient_quota", "insufficient_quota", "quota exceeded".to_owned())
                }
            },
            Self::CreditTooLow => {
                (400, "invalid_request_error", "", "Your credit balance is too low".to_owned())
            }
            Self::Forbidden => (403, "permission_error", "", "not for this key".to_owned()),
            Self::NotFound => (404, "not_found_error", "model_not_found", "no model".to_owned()),
            Self::BadRequest => (400, "invalid_request_error", "", "malformed".to_owned()),
            Self::RateLimited(after) => {
                headers.extend(after.map(|seconds| ("retry-after", seconds.to_string())));
                (429, "rate_limit_error", "rate_limit_exceeded", "too many requests".to_owned())
            }
            Self::Internal => match request.protocol {
                Protocol::Anthropic => (500, "api_error", "", "internal error".to_owned()),
                Protocol::OpenAi | Protocol::Responses => {
                    (500, "server_error", "", "internal error".to_owned())
                }
            },
            Self::Overloaded => match request.protocol {
                Protocol::Anthropic => (529, "overloaded_error", "", "overloaded".to_owned()),
                Protocol::OpenAi | Protocol::Responses => {
                    (503, "server_error", "", "overloaded".to_owned())
                }
            },
            Self::Overflow(overflow) => return overflow.response(request.tokens, window),
            Self::Other { status, headers, body } => {
                return Response { status: *status, headers: headers.clone(), body: body.clone() };
            }
        };
        let error = json!({ "type": kind, "code": code, "message": format!("{message}: {key}") });
        let body = json!({ "type": "error", "error": error }).to_string();
        Response { status, headers, body }
    }
}

impl Overflow {
    fn response(self, tokens: u64, window: u64) -> Response {
        let anthropic = |kind: &str, message: String| {
            let error = json!({ "type": kind, "message": message });
            json!({ "type": "error", "error": error })
        };
        let invalid = |message: String| (400, anthropic("invalid_request_error", message));
        let (status, body) = match self {
            Self::PromptTooLong => {
                invalid(format!("prompt is too long: {tokens} tokens > {window} maximum"))
            }
            Self::WithMaxTokens => invalid(format!(
                "input length and `max_tokens` exceed context limit: {tokens} + 8192 > {window}"
            )),
            Self::Bedrock => invalid("Input is too long for requested model.".to_owned()),
            Self::TooLarge => (413, anthropic("request_too_large", "too many bytes".to_owned())),
            Self::OpenAi | Self::Shortened => {
                let message = format!("your messages resulted in {tokens} tokens");
                let code = "context_length_exceeded";
                let kind = "invalid_request_error";
                (400, json!({ "error": { "message": message, "type": kind, "code": code } }))
            }
            Self::Vllm => (400, json!({ "error": vllm(window) })),
            Self::OldVllm => {
                let mut body = vllm(window);
                body["object"] = "error".into();
                (400, body)
            }
            Self::LlamaCpp => (
                400,
                json!({ "error": {
                    "code": 400,
                    "type": "exceed_context_size_error",
                    "message": "the request exceeds the available context size",
                    "n_prompt_tokens": tokens,
                    "n_ctx": window,
                } }),
            ),
        };
        Response { status, headers: Vec::new(), body: body.to_string() }
    }
}

fn vllm(window: u64) -> Value {
    let message = format!("This model's maximum context length is {window} tokens.");
    json!({ "message": message, "type": "BadRequestError", "param": null, "code": 400 })
}
