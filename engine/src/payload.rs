//! Data that crosses the [`Context`](crate::context::Context): JSON text, kept as bytes so that no
//! engine has to understand it.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

/// One JSON document. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload(Arc<[u8]>);

/// A payload that does not match the type its reader expects.
#[derive(Debug, Clone, thiserror::Error)]
#[error("payload does not fit `{expected}`: {reason}; it begins with {start}")]
pub struct PayloadError {
    expected: &'static str,
    reason: String,
    start: String,
}

impl Payload {
    /// The JSON `null`.
    pub fn null() -> Self {
        Self(Arc::from(&b"null"[..]))
    }

    /// Serialises a value.
    ///
    /// # Panics
    /// If the value has no JSON form (a map with non-string keys): a bug in the program, not in the
    /// data.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        let bytes =
            serde_json::to_vec(value).expect("values that cross the context have a JSON form");
        Self(bytes.into())
    }

    /// Takes bytes that are already JSON, unchecked: invalid JSON fails when it is read.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Reads the value back.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, PayloadError> {
        serde_json::from_slice(&self.0).map_err(|error| PayloadError {
            expected: std::any::type_name::<T>(),
            reason: error.to_string(),
            start: self.preview(80),
        })
    }

    /// The bytes of the JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The first `limit` characters, for people.
    pub fn preview(&self, limit: usize) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let mut short: String = text.chars().take(limit).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.preview(200))
    }
}
