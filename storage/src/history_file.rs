//! The history of one run as a file that people can read and another machine can verify: JSON
//! lines.
//!
//! ```text
//! {"schema":"longhaul.history/1","run":"shop/login/1","events":2}
//! {"position":0,"at":"2026-01-01T00:00:00.000000Z","kind":"RunStarted","workflow":"feature",…}
//! {"position":1,"at":"2026-01-01T00:00:02.000000Z","kind":"RunCompleted","output":{…}}
//! {"end":true,"blake3":"…"}
//! ```
//!
//! - The first line gives the schema, the run, and the number of events that follow.
//! - Each further line is an event: its `position` (from 0, without gaps), the time of its
//!   recording (`at`: UTC, RFC 3339 with exactly six digits of a second), its `kind`, and the
//!   fields of that kind under their names in [`EventKind`](longhaul_engine::EventKind). A field
//!   without a value is `null`. `command`, or `slot` for a call, is the command that an event
//!   answers.
//! - Payloads are embedded as JSON, byte for byte. A payload with line breaks or surrounding
//!   whitespace would not survive that; it is embedded as a string: `{"$text":"…"}`.
//! - Failures are `{"kind":"retryable","message":"…"}`; a rate limit has the kind
//!   `{"rate_limited":{"until":"…"}}`. Messages are `{"seq":7,"at":"…","body":{"Signal":{…}}}`.
//! - The last line holds the blake3 hash, in hex, of all bytes before it, including line ends. It
//!   detects damage; it is not a signature.
//!
//! The format is frozen to the byte: an equivalent line in other bytes (a repeated field,
//! whitespace, another order) is refused. A change of the format is a new version, which this
//! version refuses to read.

#[cfg(test)]
mod tests;

use longhaul_engine::{Event, RunId};
use serde::{Deserialize, Serialize};

use crate::file_error::{FileError, Schema};
use crate::wire::json;

/// The longest line written or read, in bytes without its line end.
pub(crate) const MAX_LINE: usize = 64 * 1024 * 1024;

pub(crate) const SCHEMA: Schema = Schema { family: "longhaul.history", version: 1 };

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: String,
    run: RunId,
    events: u64,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    end: bool,
    blake3: String,
}

/// Encodes the whole history of a run as the text of a file.
///
/// # Errors
/// [`FileError::Unwritable`] if a payload is not JSON, if the events are not the whole history in
/// order, or if an event needs more than [`MAX_LINE`] bytes.
pub fn write(run: &RunId, events: &[Event]) -> Result<String, FileError> {
    let header =
        Header { schema: SCHEMA.to_string(), run: run.clone(), events: events.len() as u64 };
    let mut text = json::line_of(&header) + "\n";
    for (expected, event) in (0..).zip(events) {
        if event.position != expected {
            return Err(FileError::Unwritable(gap(expected, event)));
        }
        text += &event_line(event)?;
        text.push('\n');
    }
    let footer = Footer { end: true, blake3: blake3::hash(text.as_bytes()).to_hex().to_string() };
    Ok(text + &json::line_of(&footer) + "\n")
}

/// Encodes one event as a line of such a file, without the line end.
///
/// # Errors
/// [`FileError::Unwritable`] if a payload is not JSON, or the line is longer than [`MAX_LINE`]
/// bytes.
pub fn event_line(event: &Event) -> Result<String, FileError> {
    let line = json::event_line(event).map_err(FileError::Unwritable)?;
    if line.len() > MAX_LINE {
        let position = event.position;
        let bytes = line.len();
        let problem = format!(
            "event {position} needs a line of {bytes} bytes, and at most {MAX_LINE} are read"
        );
        return Err(FileError::Unwritable(problem));
    }
    Ok(line)
}

/// Decodes the run and its whole history from the text of a file. Encoding them again gives the
/// same text; only the last line end may be missing.
///
/// # Errors
/// Any defect of the file, with the number of the line.
pub fn read(text: &str) -> Result<(RunId, Vec<Event>), FileError> {
    read_at(1, text)
}

/// The same for a history that begins at a line of a longer file.
pub(crate) fn read_at(begin: usize, text: &str) -> Result<(RunId, Vec<Event>), FileError> {
    let wrong = |line, problem| FileError::Line { line, problem };
    let content = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<&str> = content.split('\n').collect();
    if let Some((line, text)) = (begin..).zip(&lines).find(|(_, text)| text.len() > MAX_LINE) {
        return Err(wrong(
            line,
            format!("it has {} bytes, and at most {MAX_LINE} are read", text.len()),
        ));
    }
    SCHEMA.check(lines[0])?;
    let header: Header =
        json::read("the header", lines[0]).map_err(|problem| wrong(begin, problem))?;
    let [_, events @ .., last] = &lines[..] else { return Err(FileError::CutOff { line: begin }) };
    let end = begin + lines.len() - 1;
    let footer = json::read("the footer", last).ok().filter(|footer: &Footer| footer.end);
    let footer = footer.ok_or(FileError::CutOff { line: end })?;
    let computed =
        blake3::hash(&content.as_bytes()[..content.len() - last.len()]).to_hex().to_string();
    if footer.blake3 != computed {
        return Err(FileError::Checksum { line: end, recorded: footer.blake3, computed });
    }
    let history = read_events(begin + 1, events)?;
    let said = header.events;
    let found = history.len() as u64;
    if said != found {
        return Err(wrong(begin, format!("{said} events are announced, but {found} are present")));
    }
    Ok((header.run, history))
}

fn read_events(begin: usize, lines: &[&str]) -> Result<Vec<Event>, FileError> {
    let mut events = Vec::with_capacity(lines.len());
    for ((line, expected), text) in (begin..).zip(0..).zip(lines) {
        let event = json::read_event(text).map_err(|problem| FileError::Line { line, problem })?;
        if event.position != expected {
            return Err(FileError::Line { line, problem: gap(expected, &event) });
        }
        events.push(event);
    }
    Ok(events)
}

fn gap(expected: u64, event: &Event) -> String {
    format!(
        "event {expected} is expected, and event {} is there: a history has no gaps",
        event.position
    )
}
