//! The requests of one connection.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::events::{self, Prompt};
use crate::http::{self, Message};
use crate::reply::{Answer, Reply};
use crate::{Fault, Outcome, Overflow, Protocol, Record, Request, Shared};

/// The window that is named where none is set.
const WINDOW: u64 = 200_000;

/// Serves a connection until it ends.
pub(crate) fn connection(connection: &TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection.try_clone()?;
    while let Some(message) = Message::read(&mut reader)? {
        match (message.method.as_str(), message.path.as_str()) {
            ("POST", "/v1/messages") => model(&message, Protocol::Anthropic, &mut writer, shared)?,
            ("POST", "/v1/chat/completions") => {
                model(&message, Protocol::OpenAi, &mut writer, shared)?;
            }
            ("POST", "/v1/responses") => {
                model(&message, Protocol::Responses, &mut writer, shared)?;
            }
            ("POST", "/v1/messages/count_tokens") => {
                let request = read(&message, Protocol::Anthropic);
                let body = json!({ "input_tokens": request.tokens });
                http::respond(&mut writer, 200, &[], body.to_string().as_bytes())?;
            }
            ("GET", "/v1/models") => {
                let body = models(shared.options.window.unwrap_or(WINDOW));
                http::respond(&mut writer, 200, &[], body.to_string().as_bytes())?;
            }
            _ => http::respond(&mut writer, 404, &[], b"{\"error\":\"no such path\"}")?,
        }
    }
    Ok(())
}

/// The list of models, with the fields of both protocols.
fn models(window: u64) -> Value {
    let model = json!({
        "id": "scripted",
        "type": "model",
        "object": "model",
        "display_name": "Scripted",
        "max_input_tokens": window,
        "max_tokens": 8192,
        "max_model_len": window,
    });
    json!({ "object": "list", "data": [model], "has_more": false })
}

fn read(message: &Message, protocol: Protocol) -> Request {
    let body = serde_json::from_slice(&message.body).unwrap_or(Value::Null);
    let bearer = |value: &str| value.trim_start_matches("Bearer ").to_owned();
    let key = message
        .header("x-api-key")
        .map(str::to_owned)
        .or_else(|| message.header("authorization").map(bearer));
    Request::read(protocol, body, key)
}

/// Serves a request to the model, and remembers its outcome.
fn model(
    message: &Message,
    protocol: Protocol,
    connection: &mut TcpStream,
    shared: &Shared,
) -> io::Result<()> {
    let arrived = Instant::now();
    let mut request = read(message, protocol);
    request.arrived = arrived;
    let at = {
        let mut state = shared.state();
        let digest = request.digest.clone();
        request.repeats = state.records.iter().filter(|known| known.digest == digest).count();
        let record = Record { digest, tokens: request.tokens, answer: 0, outcome: Outcome::Open };
        state.records.push(record);
        request.number = state.records.len();
        state.records.len() - 1
    };
    shared.changed.notify_all();
    let outcome = Exchange { request: &request, connection, shared }.perform();
    shared.state().records[at].outcome = *outcome.as_ref().unwrap_or(&Outcome::Broken);
    shared.changed.notify_all();
    match outcome? {
        Outcome::Broken => Err(io::ErrorKind::ConnectionAborted.into()),
        _ => Ok(()),
    }
}

struct Exchange<'a> {
    request: &'a Request,
    connection: &'a mut TcpStream,
    shared: &'a Shared,
}

impl Exchange<'_> {
    fn perform(mut self) -> io::Result<Outcome> {
        let options = &self.shared.options;
        if options.key.is_some() && options.key != self.request.key {
            return self.fault(&Fault::Unauthorized);
        }
        if self.request.turns.is_empty() || self.request.body["stream"] != true {
            return self.fault(&Fault::BadRequest);
        }
        if options.window.is_some_and(|window| self.request.tokens > window) {
            let overflow = options.overflow.unwrap_or(match self.request.protocol {
                Protocol::Anthropic => Overflow::PromptTooLong,
                Protocol::OpenAi | Protocol::Responses => Overflow::OpenAi,
            });
            if overflow != Overflow::Shortened {
                return self.fault(&Fault::Overflow(overflow));
            }
        }
        let mut reply = (self.shared.script)(self.request);
        while let Reply::Held(hold, held) = reply {
            http::wait(self.connection, &hold)?;
            reply = *held;
        }
        match reply {
            Reply::Answer(answer) => self.answer(&answer),
            Reply::Fault(fault) => self.fault(&fault),
            Reply::Garbage => {
                http::respond(self.connection, 200, &[], b"<html>\x00\xff not a model</html>")?;
                Ok(Outcome::Refused)
            }
            Reply::Close | Reply::Held(..) => Ok(Outcome::Broken),
        }
    }

    fn window(&self) -> u64 {
        self.shared.options.window.unwrap_or(WINDOW)
    }

    fn fault(&mut self, fault: &Fault) -> io::Result<Outcome> {
        let response = fault.response(self.request, self.window());
        let body = response.body.as_bytes();
        http::respond(self.connection, response.status, &response.headers, body)?;
        Ok(Outcome::Refused)
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<Outcome> {
        let events = events::render(self.request, answer, self.prompt(answer));
        self.shared.state().records[self.request.number - 1].answer = answer.tokens();
        http::begin_stream(self.connection, &format!("req_{}", self.request.number))?;
        for (after, event) in events.iter().enumerate() {
            if let Some((_, hold)) = answer.hold.as_ref().filter(|(at, _)| *at == after) {
                http::wait(self.connection, hold)?;
            }
            if answer.cut == Some(after) {
                return Ok(Outcome::Broken);
            }
            if answer.garbage == Some(after) {
                self.send("event: content_block_delta\ndata: {\"type\": no JSON\n\n")?;
                http::end_stream(self.connection)?;
                return Ok(Outcome::Refused);
            }
            if let Some((_, fault)) = answer.fault.as_ref().filter(|(at, _)| *at == after) {
                let body = fault.response(self.request, self.window()).body;
                self.send(&events::fault(self.request, &body))?;
                http::end_stream(self.connection)?;
                return Ok(Outcome::Refused);
            }
            if let Some(pace) = answer.pace {
                std::thread::sleep(pace);
            }
            self.send(event)?;
        }
        http::end_stream(self.connection)?;
        if http::is_closed(self.connection)? {
            return Ok(Outcome::Broken);
        }
        let prefixes = self.request.prefixes.iter().map(|(digest, _)| digest.clone());
        self.shared.state().cached.extend(prefixes);
        Ok(Outcome::Answered)
    }

    fn send(&mut self, event: &str) -> io::Result<()> {
        let size = self.shared.options.piece.unwrap_or(event.len());
        http::write_chunks(self.connection, event.as_bytes(), size)
    }

    /// The tokens of the prompt. A server that shortens prompts reads half of its window.
    fn prompt(&self, answer: &Answer) -> Prompt {
        if let Some(tokens) = answer.prompt {
            return Prompt { tokens, cached: 0 };
        }
        let options = &self.shared.options;
        let tokens = match options.window {
            Some(window) if self.request.tokens > window => window / 2,
            _ => self.request.tokens,
        };
        let state = self.shared.state();
        let known = self.request.prefixes.iter().rev().find(|(it, _)| state.cached.contains(it));
        Prompt { tokens, cached: known.map_or(0, |(_, cached)| (*cached).min(tokens)) }
    }
}
