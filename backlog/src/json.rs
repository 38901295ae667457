//! Reads JSON documents that people and programs write by hand.

use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Parses a document. Unlike `serde_json`, it refuses an object that has a key twice: which of the
/// values is meant is unknown, and a dropped check would be a false pass. It refuses NUL
/// characters, too: they can be in no command, no variable and no name of a file.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let document = reader.deserialize_any(Document)?;
    reader.end()?;
    Ok(document)
}

/// Builds a document.
#[derive(Clone, Copy)]
struct Document;

impl<'de> serde::de::DeserializeSeed<'de> for Document {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        without_nul(value)?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element_seed(self)? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            without_nul(&key)?;
            if object.contains_key(&key) {
                let twice = format!("the key `{key}` is twice in one object: remove one of them");
                return Err(A::Error::custom(twice));
            }
            object.insert(key, access.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}

fn without_nul<E: serde::de::Error>(text: &str) -> Result<(), E> {
    let nul = "a text has a NUL character (`\\u0000`): remove it";
    if text.contains('\0') { Err(E::custom(nul)) } else { Ok(()) }
}
