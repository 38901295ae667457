//! The JSON Schemas of the documents that commands print, generated from their types.

use schemars::Schema;

use crate::status::StatusDocument;

use super::{DescribeDocument, GraphDocument, ListDocument, TreeDocument, WhyDocument};

/// The documents that have a schema.
pub(crate) const NAMES: [&str; 6] = ["list", "describe", "tree", "graph", "why", "status"];

/// The schema of a document.
pub(crate) fn of(name: &str) -> Option<Schema> {
    let (mut schema, id) = match name {
        "list" => (schemars::schema_for!(ListDocument), super::list::SCHEMA),
        "describe" => (schemars::schema_for!(DescribeDocument), super::describe::SCHEMA),
        "tree" => (schemars::schema_for!(TreeDocument), super::tree::SCHEMA),
        "graph" => (schemars::schema_for!(GraphDocument), super::graph::SCHEMA),
        "why" => (schemars::schema_for!(WhyDocument), super::why::SCHEMA),
        "status" => (schemars::schema_for!(StatusDocument), crate::status::SCHEMA),
        _ => return None,
    };
    // The name of the document is part of it: a reader can tell versions apart.
    if let Some(field) = schema.pointer_mut("/properties/schema") {
        *field = serde_json::json!({ "const": id });
    }
    Some(schema)
}
