//! Single lines: the header, the footer, and events with their fields beside their kind.

use std::collections::BTreeMap;

use longhaul_engine::Event;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::v1::{self, Json};
use super::{FAMILY, HistoryFileError, VERSION, freeze, thaw};

/// A value of the frozen types as one line.
pub(super) fn json_of<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the frozen types have a JSON form")
}

/// Why something is not the JSON that it should be; the place within the line says nothing to people.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

/// An event as a line.
pub(super) fn of_event(event: &Event) -> Result<String, HistoryFileError> {
    let refused = |reason| HistoryFileError::Payload { position: event.position, kind: event.kind.name(), reason };
    let kind = json_of(&freeze::kind(&event.kind).map_err(refused)?);
    // `{"Kind":{fields}}`: people and `jq` read it better when the kind is a field beside the others.
    let (name, fields) = kind
        .strip_prefix("{\"")
        .and_then(|kind| kind.strip_suffix("}}"))
        .and_then(|kind| kind.split_once("\":{"))
        .expect("every kind is a variant with named fields");
    let (position, at) = (event.position, freeze::time(event.at));
    let comma = if fields.is_empty() { "" } else { "," };
    Ok(format!(r#"{{"position":{position},"at":"{at}","kind":"{name}"{comma}{fields}}}"#))
}

/// The event of a line.
pub(super) fn event(number: usize, line: &str) -> Result<Event, HistoryFileError> {
    let unfit = |problem| HistoryFileError::Line { line: number, problem };
    let mut fields: BTreeMap<String, Json> = serde_json::from_str(line)
        .map_err(|error| unfit(format!("not an event, but {}: {}", shown(line), reason(&error))))?;
    let position = take(&mut fields, "position").map_err(unfit)?;
    let at: String = take(&mut fields, "at").map_err(unfit)?;
    let name: String = take(&mut fields, "kind").map_err(unfit)?;
    if !v1::KINDS.contains(&name.as_str()) {
        return Err(HistoryFileError::UnknownKind { line: number, kind: name });
    }
    let kind = json_of(&BTreeMap::from([(&name, fields)]));
    let kind = serde_json::from_str(&kind).map_err(|error| unfit(format!("{name}: {}", reason(&error))))?;
    let kind = thaw::kind(kind).map_err(|problem| unfit(format!("{name}: {problem}")))?;
    let event = Event { position, at: thaw::time(&at).map_err(unfit)?, kind };
    check_form(line, &of_event(&event)?).map_err(unfit)?;
    Ok(event)
}

/// Whether a line is as it would be written. One that has a field twice, or an explicit `null`, would lose it otherwise.
fn check_form(line: &str, written: &str) -> Result<(), String> {
    if line == written {
        return Ok(());
    }
    let same = line.bytes().zip(written.bytes()).take_while(|(here, there)| here == there).count();
    let rest = |text: &str| shown(&String::from_utf8_lossy(&text.as_bytes()[same..]));
    Err(format!("byte {} begins {}, and this version writes {}", same + 1, rest(line), rest(written)))
}

fn take<T: DeserializeOwned>(fields: &mut BTreeMap<String, Json>, name: &str) -> Result<T, String> {
    let json = fields.remove(name).ok_or_else(|| format!("`{name}` is missing"))?;
    serde_json::from_str(json.get()).map_err(|error| format!("`{name}`: {}", reason(&error)))
}

/// The first line of a file of this version.
pub(super) fn header(line: &str) -> Result<v1::Header, HistoryFileError> {
    /// What the first lines of all versions have in common.
    #[derive(Deserialize)]
    struct AnyVersion {
        schema: String,
    }
    let not_a_history = |found| HistoryFileError::NotAHistory { found };
    let unfit = |problem| HistoryFileError::Line { line: 1, problem: format!("the header: {problem}") };
    let any: AnyVersion = serde_json::from_str(line).map_err(|error| {
        let is_hurt = line.starts_with(&format!("{{\"schema\":\"{FAMILY}"));
        if is_hurt { unfit(reason(&error)) } else { not_a_history(format!("it says {}", shown(line))) }
    })?;
    let version = any.schema.strip_prefix(FAMILY).and_then(|version| version.parse::<u32>().ok());
    match version {
        Some(VERSION) if any.schema == format!("{FAMILY}{VERSION}") => {
            let header = serde_json::from_str(line).map_err(|error| unfit(reason(&error)))?;
            check_form(line, &json_of(&header)).map_err(unfit)?;
            Ok(header)
        }
        Some(found) if found > VERSION => Err(HistoryFileError::Newer { found }),
        _ => Err(not_a_history(format!("its schema is {}", shown(&any.schema)))),
    }
}

/// The last line, if it is one.
pub(super) fn footer(line: &str) -> Option<v1::Footer> {
    serde_json::from_str(line).ok().filter(|footer: &v1::Footer| footer.end && json_of(footer) == line)
}

/// The beginning of a text that may be anything, safe for a terminal.
pub(crate) fn shown(text: &str) -> String {
    let safe = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let short: String = text.chars().take(60).map(safe).collect();
    let more = if text.chars().nth(60).is_some() { "…" } else { "" };
    format!("`{short}{more}`")
}
