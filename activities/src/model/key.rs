//! The key of a provider: where it comes from, and that no part of it is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use longhaul_engine::{Failure, FailureKind};
use longhaul_workflows::contracts::CallModel;
use longhaul_workflows::settings::{ApiSettings, EnvSource};
use reqwest::header::HeaderValue;

use crate::longhaul_toml;

/// The length of the shortest part of a key that is removed from texts, in bytes.
const PART: usize = 6;
/// Shorter keys are placeholders for servers that need none.
const SHORTEST: usize = 4;
/// Replaces a key in a text.
const REDACTED: &str = "[redacted]";

/// A key, or none. Its debug form does not show it.
#[derive(Clone, Default)]
pub(super) struct Key(Option<String>);

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Key(set)" } else { "Key(none)" })
    }
}

impl Key {
    /// Reads the key of a provider. `root` is the user's checkout.
    ///
    /// # Errors
    /// [`CallModel::AUTH`] if it is missing. The message names the variable, never a value.
    pub(super) fn of(
        api: &ApiSettings,
        source: Option<&EnvSource>,
        root: &Path,
    ) -> Result<Self, Failure> {
        let name = api.key_name();
        let value = match source {
            Some(source) => {
                let wanted = BTreeMap::from([(name.to_owned(), source.clone())]);
                longhaul_toml::agent_env(root, &wanted).map_err(missing)?.remove(name)
            }
            None => std::env::var(name).ok(),
        };
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let is_optional = api.url.is_some() && api.key_env.is_none() && source.is_none();
        if value.is_none() && !is_optional {
            return Err(missing(Failure::terminal(format!(
                "the variable `{name}`, which holds the key of the model's provider, is not set: \
                 set it in the environment of longhaul, or in `[agent] env`"
            ))));
        }
        Ok(Self(value))
    }

    /// The value of a header: the key after a prefix.
    pub(super) fn header(&self, prefix: &str) -> Result<Option<HeaderValue>, Failure> {
        let Some(key) = &self.0 else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("{prefix}{key}")).map_err(|_| {
            missing(Failure::terminal("the key of the model's provider has invalid characters"))
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// A text without the key and its parts, which a server may repeat.
    pub(super) fn redact(&self, text: &str) -> String {
        let Some(key) = self.0.as_deref().filter(|key| key.len() >= SHORTEST) else {
            return text.to_owned();
        };
        let part = PART.min(key.len());
        let mut hidden = vec![false; text.len()];
        for (at, window) in text.as_bytes().windows(part).enumerate() {
            if key.as_bytes().windows(part).any(|known| known == window) {
                hidden[at..at + part].fill(true);
            }
        }
        let mut shown = String::with_capacity(text.len());
        let mut was_hidden = false;
        for (at, letter) in text.char_indices() {
            match (hidden[at], was_hidden) {
                (false, _) => shown.push(letter),
                (true, false) => shown.push_str(REDACTED),
                (true, true) => {}
            }
            was_hidden = hidden[at];
        }
        shown
    }
}

/// A failure with the code of a missing key; a machine failure stays one.
fn missing(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Terminal => failure.with_code(CallModel::AUTH),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_key_is_shown() {
        let key = Key(Some("sk-proj-abcdefghijklmnop".into()));
        let cases = [
            ("wrong: sk-proj-abcdefghijklmnop!", "wrong: [redacted]!"),
            ("begins sk-proj-***mnop", "begins [redacted]***mnop"),
            ("ends in fghijklmnop, é", "ends in [redacted], é"),
            ("nothing of it", "nothing of it"),
        ];
        for (text, expected) in cases {
            assert_eq!(key.redact(text), expected);
        }
        assert_eq!(format!("{key:?}"), "Key(set)");
        assert_eq!(Key::default().redact("sk-proj"), "sk-proj");
    }
}
