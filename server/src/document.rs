//! The JSON documents that commands print. The field `schema` names the type of each.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A document printed by `-o json`. The macro `documents!` implements the trait, so no document can
/// be printed without its schema.
pub trait Document: Serialize + JsonSchema {
    /// Its name and the version of its shape: `longhaul.list/1`.
    const SCHEMA: &'static str;
}

impl<D: Document> Document for &D {
    const SCHEMA: &'static str = D::SCHEMA;
}

/// A document with its field `schema` first.
#[derive(Debug, Clone, Serialize)]
pub struct Titled<D> {
    schema: &'static str,
    #[serde(flatten)]
    document: D,
}

impl<D: Document> Titled<D> {
    /// Adds the field `schema` as the first one.
    pub fn of(document: D) -> Self {
        Self { schema: D::SCHEMA, document }
    }
}

impl<D: Document> JsonSchema for Titled<D> {
    fn schema_name() -> Cow<'static, str> {
        D::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        D::SCHEMA.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = D::json_schema(generator);
        let fields = schema.ensure_object();
        let first = |field: Value, rest: Option<Value>| match rest {
            Some(Value::Array(rest)) => Value::Array(std::iter::once(field).chain(rest).collect()),
            _ => json!([field]),
        };
        let required = first("schema".into(), fields.remove("required"));
        let mut properties = Map::from_iter([(
            "schema".to_owned(),
            json!({ "type": "string", "const": D::SCHEMA }),
        )]);
        if let Some(Value::Object(rest)) = fields.remove("properties") {
            properties.extend(rest);
        }
        fields.insert("title".into(), D::SCHEMA.into());
        fields.insert("properties".into(), properties.into());
        fields.insert("required".into(), required);
        schema
    }
}
