//! The history of one run as a file that people can read and another machine can verify: JSON, one document a line.
//!
//! ```text
//! {"schema":"longhaul.history/1","run":"shop/login/1","events":2}
//! {"position":0,"at":"2026-01-01T00:00:00.000000Z","kind":"RunStarted","workflow":"feature","input":{…},"labels":{},"cause":"started"}
//! {"position":1,"at":"2026-01-01T00:00:02.000000Z","kind":"RunCompleted","output":{…}}
//! {"end":true,"blake3":"…"}
//! ```
//!
//! - The first line says what the file is, of which run, and how many events follow.
//! - Each further line is an event: its `position` (from 0, without gaps), when it was recorded (`at`: UTC, RFC 3339
//!   with exactly six digits of a second), its `kind`, and the fields of that kind under the names that
//!   [`EventKind`](longhaul_engine::EventKind) gives them. A field that has no value is left out. `command` and `call`
//!   say which command an event answers, and which of its calls.
//! - Payloads are embedded as the JSON that they are, byte for byte. One that would not survive that, because it has
//!   line breaks or blanks around it, is embedded as its text: `{"$text":"…"}`.
//! - Failures are `{"kind":"retryable"|"terminal"|"cancelled"|"rate_limited","message":"…"}`, the last kind with
//!   `until`. Messages are `{"seq":7,"at":"…","body":{"Signal":{…}}}`. Ids that are UUIDs are text with hyphens.
//! - The last line holds the blake3 hash, in hex, of all bytes before it, line ends included. It tells damage; it is no
//!   signature.
//!
//! The form is frozen, to the byte: a line that says the same in other bytes (a field twice, blanks, another order) is
//! refused. A change of the form is a new version, which this one refuses to read, saying so.

mod embed;
mod error;
mod freeze;
pub(crate) mod line;
#[cfg(test)]
mod tests;
mod thaw;
mod v1;

use longhaul_engine::{Event, Message, Payload, RunId};
use serde_json::value::RawValue;

pub use error::HistoryFileError;

/// The longest line that is written or read, in bytes without its end.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// What the schema of every version begins with.
pub(crate) const FAMILY: &str = "longhaul.history/";

/// The version that is written, and the newest that is read.
const VERSION: u32 = 1;

/// The whole history of a run, as the text of a file.
///
/// # Errors
/// [`HistoryFileError::Payload`] if a payload is not JSON, [`HistoryFileError::Gap`] if the events are not the whole
/// history in order, [`HistoryFileError::TooLong`] if an event needs more than [`MAX_LINE`] bytes.
pub fn write(run: &RunId, events: &[Event]) -> Result<String, HistoryFileError> {
    let header = v1::Header { schema: format!("{FAMILY}{VERSION}"), run: run.to_string(), events: events.len() as u64 };
    let mut text = line::json_of(&header) + "\n";
    for ((number, expected), event) in (2..).zip(0..).zip(events) {
        if event.position != expected {
            return Err(HistoryFileError::Gap { line: number, expected, found: event.position });
        }
        let line = line::of_event(event)?;
        check_length(number, &line)?;
        text.push_str(&line);
        text.push('\n');
    }
    let footer = v1::Footer { end: true, blake3: blake3::hash(text.as_bytes()).to_hex().to_string() };
    Ok(text + &line::json_of(&footer) + "\n")
}

/// One event as a line of such a file, without the line end.
///
/// # Errors
/// [`HistoryFileError::Payload`] if a payload is not JSON.
pub fn event_line(event: &Event) -> Result<String, HistoryFileError> {
    line::of_event(event)
}

/// The run and its whole history, from the text of a file. Written again they give the same text; only the last line end
/// may be missing.
///
/// # Errors
/// Whatever is wrong with the file, with the number of the line, counted from one: see [`HistoryFileError`].
pub fn read(text: &str) -> Result<(RunId, Vec<Event>), HistoryFileError> {
    let content = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<&str> = content.split('\n').collect();
    for (number, line) in (1..).zip(&lines) {
        check_length(number, line)?;
    }
    let header = line::header(lines[0])?;
    let run = RunId::new(header.run).map_err(|error| HistoryFileError::Line { line: 1, problem: error.to_string() })?;
    let [_, events @ .., last] = &lines[..] else {
        return Err(HistoryFileError::CutOff { line: 1 });
    };
    let footer = line::footer(last).ok_or(HistoryFileError::CutOff { line: lines.len() })?;
    let computed = blake3::hash(&content.as_bytes()[..content.len() - last.len()]).to_hex();
    if footer.blake3 != computed.as_str() {
        let computed = computed.to_string();
        return Err(HistoryFileError::Checksum { line: lines.len(), recorded: footer.blake3, computed });
    }
    let history = read_events(events)?;
    if history.len() as u64 != header.events {
        return Err(HistoryFileError::Count { said: header.events, found: history.len() as u64 });
    }
    Ok((run, history))
}

fn read_events(lines: &[&str]) -> Result<Vec<Event>, HistoryFileError> {
    let mut events = Vec::with_capacity(lines.len());
    for ((number, expected), line) in (2..).zip(0..).zip(lines) {
        let event = line::event(number, line)?;
        if event.position != expected {
            return Err(HistoryFileError::Gap { line: number, expected, found: event.position });
        }
        events.push(event);
    }
    Ok(events)
}

/// The event of a line; `number` is for the error.
pub(crate) fn read_event(number: usize, line: &str) -> Result<Event, HistoryFileError> {
    check_length(number, line)?;
    line::event(number, line)
}

/// A message as the JSON that a line of an event would hold.
pub(crate) fn message_json(message: &Message) -> Result<String, String> {
    Ok(line::json_of(&freeze::message(message.clone())?))
}

/// The message of such JSON.
pub(crate) fn read_message(json: &str) -> Result<Message, String> {
    thaw::message(serde_json::from_str(json).map_err(|error| line::reason(&error))?)
}

/// A payload as the JSON that a line of an event would hold.
pub(crate) fn payload_json(payload: &Payload) -> Result<Box<RawValue>, String> {
    embed::embed(payload)
}

/// The payload of such JSON.
pub(crate) fn read_payload(json: &RawValue) -> Result<Payload, String> {
    embed::extract(json)
}

/// A time as lines hold it.
pub(crate) fn time_text(at: chrono::DateTime<chrono::Utc>) -> String {
    freeze::time(at)
}

/// The time of such a text.
pub(crate) fn read_time(text: &str) -> Result<chrono::DateTime<chrono::Utc>, String> {
    thaw::time(text)
}

fn check_length(number: usize, line: &str) -> Result<(), HistoryFileError> {
    if line.len() > MAX_LINE {
        return Err(HistoryFileError::TooLong { line: number, bytes: line.len() });
    }
    Ok(())
}
