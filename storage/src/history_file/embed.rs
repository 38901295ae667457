//! Payloads inside a line: the JSON that they are, without a change to a single byte.

use longhaul_engine::Payload;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::line::reason;
use super::v1::Json;

/// What a payload that is embedded as its text begins with.
const MARK: &str = r#"{"$text":"#;

/// A payload as its text, because a line would not keep it as it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(rename = "$text")]
    text: String,
}

/// Embeds a payload; the error says why it is not JSON.
pub(super) fn embed(payload: &Payload) -> Result<Json, String> {
    let refused = |reason: String| format!("a payload is not JSON ({reason}): {}", payload.preview(80));
    let text = std::str::from_utf8(payload.as_bytes()).map_err(|error| refused(error.to_string()))?;
    let json: &RawValue = serde_json::from_str(text).map_err(|error| refused(reason(&error)))?;
    // A line break can only be between the parts of a JSON text: inside of its strings they are escaped.
    let survives = json.get().len() == text.len() && !text.contains(['\n', '\r']) && !text.starts_with(MARK);
    if survives {
        return Ok(json.to_owned());
    }
    let wrapped = serde_json::value::to_raw_value(&Text { text: text.to_owned() });
    wrapped.map_err(|error| refused(reason(&error)))
}

/// The payload that was embedded.
pub(super) fn extract(json: &RawValue) -> Result<Payload, String> {
    let text = json.get();
    if !text.starts_with(MARK) {
        return Ok(Payload::from_bytes(text.as_bytes()));
    }
    let unfit = |error: &serde_json::Error| format!("a payload is not embedded as it should be: {}", reason(error));
    let Text { text } = serde_json::from_str(text).map_err(|error| unfit(&error))?;
    let _: &RawValue = serde_json::from_str(&text).map_err(|error| unfit(&error))?;
    Ok(Payload::from_bytes(text.as_bytes()))
}
