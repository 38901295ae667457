//! A request to the model, in one form for all protocols.

use std::time::Instant;

use serde_json::Value;

use crate::responses;

/// The interface that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/messages`.
    Anthropic,
    /// `/v1/chat/completions`.
    OpenAi,
    /// `/v1/responses`.
    Responses,
}

/// The side that wrote a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client.
    User,
    /// The model.
    Model,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A call of a tool.
    Call {
        /// The tool.
        name: String,
        /// Its arguments, JSON as text.
        input: String,
    },
    /// The result of a tool.
    Result(String),
    /// Any other part.
    Other(Value),
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Who wrote it.
    pub side: Side,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// A request as the script sees it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The interface.
    pub protocol: Protocol,
    /// Its number among the requests to the model, from one.
    pub number: usize,
    /// The number of earlier requests with the same conversation.
    pub repeats: usize,
    /// The model.
    pub model: String,
    /// The key, if one was sent.
    pub key: Option<String>,
    /// The system prompt.
    pub system: String,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The conversation after the system prompt.
    pub turns: Vec<Turn>,
    /// The tokens of the prompt: its bytes / 4.
    pub tokens: u64,
    /// The names of the model, the tools, the system prompt and all turns: equal requests have
    /// equal digests.
    pub digest: String,
    /// The whole body.
    pub body: Value,
    /// When it had arrived, before it was parsed.
    pub arrived: Instant,
    /// Of each prefix that ends with a turn: its digest and its tokens.
    pub(crate) prefixes: Vec<(String, u64)>,
}

impl Request {
    /// Reads the body of a request.
    pub fn read(protocol: Protocol, body: Value, key: Option<String>) -> Self {
        let (system, tools, turns) = match protocol {
            Protocol::Anthropic => anthropic(&body),
            Protocol::OpenAi => openai(&body),
            Protocol::Responses => responses::read(&body),
        };
        let mut whole = body["tools"].clone();
        without_marks(&mut whole);
        let mut hash = blake3::Hasher::new();
        let model = text(&body, "model");
        hash.update(format!("{model}\n{system}\n{whole}\n").as_bytes());
        let mut bytes = system.len() + body.get("tools").map_or(0, |_| whole.to_string().len());
        let mut prefixes = vec![(hash.finalize().to_hex().to_string(), bytes as u64 / 4)];
        for turn in &turns {
            bytes += turn.parts.iter().map(Part::length).sum::<usize>();
            hash.update(format!("{turn:?}\n").as_bytes());
            prefixes.push((hash.finalize().to_hex().to_string(), bytes as u64 / 4));
        }
        let (digest, tokens) = prefixes.last().cloned().unwrap_or_default();
        Self {
            protocol,
            number: 0,
            repeats: 0,
            model,
            key,
            system,
            tools,
            turns,
            tokens,
            digest,
            body,
            arrived: Instant::now(),
            prefixes,
        }
    }

    /// All parts in order.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.turns.iter().flat_map(|turn| &turn.parts)
    }

    /// The number of results of tools.
    pub fn results(&self) -> usize {
        self.parts().filter(|part| matches!(part, Part::Result(_))).count()
    }

    /// The last result of a tool.
    pub fn last_result(&self) -> Option<&str> {
        self.parts()
            .filter_map(|part| match part {
                Part::Result(text) => Some(text.as_str()),
                _ => None,
            })
            .last()
    }

    /// The last text from the client.
    pub fn last_text(&self) -> Option<&str> {
        let turns = self.turns.iter().rev().filter(|turn| turn.side == Side::User);
        turns.flat_map(|turn| turn.parts.iter().rev()).find_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether any text or result of a tool has this text in it.
    pub fn mentions(&self, text: &str) -> bool {
        self.parts().any(|part| match part {
            Part::Text(found) | Part::Result(found) => found.contains(text),
            _ => false,
        })
    }
}

impl Part {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Text(text) | Self::Result(text) => text.len(),
            Self::Call { name, input } => name.len() + input.len(),
            Self::Other(value) => value.to_string().len(),
        }
    }
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, or the texts of a list of parts.
pub(crate) fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        parts => items(parts).map(|part| text(part, "text")).collect(),
    }
}

pub(crate) fn side(message: &Value) -> Side {
    if message["role"] == "assistant" { Side::Model } else { Side::User }
}

fn anthropic(body: &Value) -> (String, Vec<String>, Vec<Turn>) {
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => Part::Text(text(part, "text")),
        Some("tool_use") => {
            Part::Call { name: text(part, "name"), input: part["input"].to_string() }
        }
        Some("tool_result") => Part::Result(texts(&part["content"])),
        _ => {
            let mut part = part.clone();
            without_marks(&mut part);
            Part::Other(part)
        }
    };
    let turn = |message: &Value| {
        let parts = match &message["content"] {
            Value::String(text) => vec![Part::Text(text.clone())],
            parts => items(parts).map(part).collect(),
        };
        Turn { side: side(message), parts }
    };
    let tools = items(&body["tools"]).map(|tool| text(tool, "name")).collect();
    (texts(&body["system"]), tools, items(&body["messages"]).map(turn).collect())
}

fn openai(body: &Value) -> (String, Vec<String>, Vec<Turn>) {
    let is_system =
        |message: &&Value| message["role"] == "system" || message["role"] == "developer";
    let call = |call: &Value| Part::Call {
        name: text(&call["function"], "name"),
        input: text(&call["function"], "arguments"),
    };
    let turn = |message: &Value| {
        let content = texts(&message["content"]);
        let mut parts = Vec::new();
        if message["role"] == "tool" {
            parts.push(Part::Result(content));
        } else if !content.is_empty() {
            parts.push(Part::Text(content));
        }
        parts.extend(items(&message["tool_calls"]).map(call));
        Turn { side: side(message), parts }
    };
    let messages = || items(&body["messages"]);
    let system = messages().filter(is_system).map(|message| texts(&message["content"])).collect();
    let turns = messages().filter(|message| !is_system(message)).map(turn).collect();
    let tools = items(&body["tools"]).map(|tool| text(&tool["function"], "name")).collect();
    (system, tools, turns)
}

/// Removes the ends of cached prefixes: they move with each request.
fn without_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}
