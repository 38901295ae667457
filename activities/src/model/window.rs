//! The context window of a model, as its provider states it.

use std::path::Path;
use std::time::Duration;

use longhaul_engine::Failure;
use longhaul_workflows::settings::AgentSettings;
use serde_json::Value;

use super::client::Clients;
use super::exchange::{credentials, endpoint};
use super::key::Key;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest list of models that is read, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;
/// JSON pointers to the window in one entry of `/v1/models`: of Anthropic, vLLM, OpenRouter, LM
/// Studio, and llama.cpp.
const FIELDS: [&str; 5] = [
    "/max_input_tokens",
    "/max_model_len",
    "/context_length",
    "/max_context_length",
    "/meta/n_ctx",
];

/// The window in tokens; `None`: the server does not state it. One request, no retry.
pub(crate) async fn stated(clients: &Clients, agent: &AgentSettings, root: &Path) -> Option<u64> {
    let asked = tokio::time::timeout(TIMEOUT, ask(clients, agent, root)).await;
    let asked = asked.unwrap_or_else(|_| {
        Err(Failure::retryable(format!("no answer within {} s", TIMEOUT.as_secs())))
    });
    asked.unwrap_or_else(|failure| {
        tracing::info!(error = failure.message, "cannot read the context window of the provider");
        None
    })
}

async fn ask(
    clients: &Clients,
    agent: &AgentSettings,
    root: &Path,
) -> Result<Option<u64>, Failure> {
    let mut url = endpoint(&agent.api, "v1/models")?;
    // Anthropic lists 20 models otherwise.
    url.set_query(Some("limit=1000"));
    let key = Key::of(&agent.api, agent.env.get(agent.api.key_name()), root)?;
    let client = clients.client_for(&url).await?;
    let headers = credentials(agent.api.protocol, &key)?;
    let failed = |error: reqwest::Error| Failure::terminal(key.redact(&error.to_string()));
    let mut response = client.get(url).headers(headers).send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&part);
        if body.len() > LONGEST {
            return Ok(None);
        }
    }
    Ok(serde_json::from_slice(&body)
        .ok()
        .and_then(|list| window_in(&list, agent.model.as_deref()?)))
}

/// The window of a model in a list of models. An alias (`claude-x`) matches its dated model
/// (`claude-x-20261001`).
fn window_in(list: &Value, model: &str) -> Option<u64> {
    let models = || list["data"].as_array().into_iter().flatten();
    let is_dated = |entry: &&Value| {
        let rest = entry["id"].as_str().and_then(|id| id.strip_prefix(model)?.strip_prefix('-'));
        rest.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let found = models().find(|entry| entry["id"] == model).or_else(|| models().find(is_dated))?;
    FIELDS.iter().find_map(|field| found.pointer(field)?.as_u64()).filter(|window| *window > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_window_is_found_where_a_server_states_it() {
        let list = json!({ "data": [
            { "id": "claude-x-20261001", "max_input_tokens": 1_000_000 },
            { "id": "qwen", "max_model_len": 32768 },
            { "id": "open/router", "context_length": 65536 },
            { "id": "studio", "max_context_length": 4096 },
            { "id": "llama", "meta": { "n_ctx": 8192, "n_ctx_train": 131_072 } },
            { "id": "silent" },
        ]});
        for (model, expected) in [
            ("claude-x-20261001", Some(1_000_000)),
            ("claude-x", Some(1_000_000)),
            ("claude", None),
            ("qwen", Some(32768)),
            ("open/router", Some(65536)),
            ("studio", Some(4096)),
            ("llama", Some(8192)),
            ("silent", None),
            ("unknown", None),
        ] {
            assert_eq!(window_in(&list, model), expected, "{model}");
        }
        assert_eq!(window_in(&json!("no list"), "qwen"), None);
    }
}
