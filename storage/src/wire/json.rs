//! JSON lines of the wire types in a canonical form, with payloads embedded as JSON.

use std::collections::BTreeMap;

use longhaul_engine::{Event, Message, Payload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::v1::{self, Time};

/// A payload inside a line.
pub(crate) type Json = Box<RawValue>;

/// The prefix of a payload that is embedded as a string.
const MARK: &str = r#"{"$text":"#;

/// A payload embedded as a string, because a line would not preserve its bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(rename = "$text")]
    text: String,
}

/// Embeds a payload; the error names the JSON defect.
pub(crate) fn embed(payload: &Payload) -> Result<Json, String> {
    let refused =
        |reason: String| format!("a payload is not JSON ({reason}): {}", payload.preview(80));
    let text =
        std::str::from_utf8(payload.as_bytes()).map_err(|error| refused(error.to_string()))?;
    let json: &RawValue = serde_json::from_str(text).map_err(|error| refused(reason(&error)))?;
    // A line break can occur only between JSON tokens: inside strings it is escaped.
    let survives =
        json.get().len() == text.len() && !text.contains(['\n', '\r']) && !text.starts_with(MARK);
    if survives {
        return Ok(json.to_owned());
    }
    let wrapped = serde_json::value::to_raw_value(&Text { text: text.to_owned() });
    wrapped.map_err(|error| refused(reason(&error)))
}

/// The embedded payload.
pub(crate) fn extract(json: &RawValue) -> Result<Payload, String> {
    let text = json.get();
    if !text.starts_with(MARK) {
        return Ok(Payload::from_bytes(text.as_bytes()));
    }
    let unfit =
        |error: &serde_json::Error| format!("an embedded payload is invalid: {}", reason(error));
    let Text { text } = serde_json::from_str(text).map_err(|error| unfit(&error))?;
    let _: &RawValue = serde_json::from_str(&text).map_err(|error| unfit(&error))?;
    Ok(Payload::from_bytes(text.as_bytes()))
}

/// Encodes a value as a line, without the line end.
pub(crate) fn line_of<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the wire types have a JSON form")
}

/// Decodes a line. An equivalent line in other bytes (a repeated field, whitespace, another order)
/// is refused.
pub(crate) fn read<T: Serialize + DeserializeOwned>(what: &str, line: &str) -> Result<T, String> {
    let value = serde_json::from_str(line)
        .map_err(|error| format!("not {what}, but {}: {}", shown(line), reason(&error)))?;
    check_form(line, &line_of(&value))?;
    Ok(value)
}

/// Encodes an event: its kind is a field beside the others, which is easier to read for people and
/// `jq` than a nested object.
pub(crate) fn event_line(event: &Event) -> Result<String, String> {
    let position = event.position;
    let v1::Event { at, kind } = v1::Event::encode(event.clone(), &mut |payload| embed(&payload))
        .map_err(|reason| {
        format!("event {position} ({}) cannot be written: {reason}", event.kind.name())
    })?;
    let kind = line_of(&kind);
    let (name, fields) = kind
        .strip_prefix("{\"")
        .and_then(|kind| kind.strip_suffix("}}"))
        .and_then(|kind| kind.split_once("\":{"))
        .expect("every kind is a variant with named fields");
    let comma = if fields.is_empty() { "" } else { "," };
    Ok(format!(r#"{{"position":{position},"at":"{at}","kind":"{name}"{comma}{fields}}}"#))
}

/// Decodes an event.
pub(crate) fn read_event(line: &str) -> Result<Event, String> {
    let mut fields: BTreeMap<String, Json> = serde_json::from_str(line)
        .map_err(|error| format!("not an event, but {}: {}", shown(line), reason(&error)))?;
    let position = take(&mut fields, "position")?;
    let at: Time = take(&mut fields, "at")?;
    let name: String = take(&mut fields, "kind")?;
    let kind = line_of(&BTreeMap::from([(&name, fields)]));
    let kind = serde_json::from_str(&kind)
        .map_err(|error| format!("{}: {}", shown(&name), reason(&error)))?;
    let event = v1::Event { at, kind }
        .decode(position, &mut |payload: Json| extract(&payload))
        .map_err(|problem| format!("{}: {problem}", shown(&name)))?;
    check_form(line, &event_line(&event)?)?;
    Ok(event)
}

/// Encodes a message.
pub(crate) fn message_line(message: &Message) -> Result<String, String> {
    let message = v1::Message::encode(message.clone(), &mut |payload| embed(&payload));
    Ok(line_of(&message.map_err(|reason| format!("a message cannot be written: {reason}"))?))
}

/// Decodes a message.
pub(crate) fn read_message(line: &str) -> Result<Message, String> {
    let message: v1::Message<Json> = read("a message", line)?;
    let message = message.decode(&mut |payload: Json| extract(&payload))?;
    check_form(line, &message_line(&message)?)?;
    Ok(message)
}

/// Whether a line is in the canonical form.
pub(crate) fn check_form(line: &str, written: &str) -> Result<(), String> {
    if line == written {
        return Ok(());
    }
    let same = line.bytes().zip(written.bytes()).take_while(|(here, there)| here == there).count();
    let rest = |text: &str| shown(&String::from_utf8_lossy(&text.as_bytes()[same..]));
    Err(format!(
        "byte {} begins {}, and this version writes {}",
        same + 1,
        rest(line),
        rest(written)
    ))
}

fn take<T: DeserializeOwned>(fields: &mut BTreeMap<String, Json>, name: &str) -> Result<T, String> {
    let json = fields.remove(name).ok_or_else(|| format!("`{name}` is missing"))?;
    serde_json::from_str(json.get()).map_err(|error| format!("`{name}`: {}", reason(&error)))
}

/// The reason for a JSON error, without the position in the line, which does not help people.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

/// The beginning of an arbitrary string, safe for a terminal.
pub(crate) fn shown(text: &str) -> String {
    let safe = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let short: String = text.chars().take(60).map(safe).collect();
    let more = if text.chars().nth(60).is_some() { "…" } else { "" };
    format!("`{short}{more}`")
}
