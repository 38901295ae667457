//! Whether documents have the shape that their schemas promise: as much of JSON Schema as those use.

use serde_json::Value;

use super::world::World;

/// Every document that has a schema fits it.
pub(super) fn check_all(world: &World) {
    let commands = [
        ("list", "list"),
        ("describe", "describe parser"),
        ("describe", "describe manual"),
        ("tree", "tree ."),
        ("graph", "graph ."),
        ("why", "why parser"),
        ("why", "why shell"),
        ("status", "status ."),
    ];
    for (name, command) in commands {
        let schema = world.longhaul.call(&["schema", name]).exits(0).json();
        let document = world.json(command);
        let mut problems = Vec::new();
        compare(&schema, &schema, &document, name, &mut problems);
        assert!(problems.is_empty(), "longhaul {command}: {problems:#?}");
        let mut spoilt = document;
        spoilt["schema"] = "another/1".into();
        compare(&schema, &schema, &spoilt, name, &mut problems);
        assert_eq!(problems.len(), 1, "{problems:#?}");
    }
}

/// What of a value does not fit a schema.
fn compare(root: &Value, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        let meant = root.pointer(pointer).unwrap_or_else(|| panic!("{reference} is not in the schema"));
        return compare(root, meant, value, place, problems);
    }
    let alternatives = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    if let Some(alternatives) = alternatives {
        let fits = |schema: &Value| {
            let mut problems = Vec::new();
            compare(root, schema, value, place, &mut problems);
            problems.is_empty()
        };
        if !alternatives.iter().any(fits) {
            problems.push(format!("{place}: {value} fits none of {alternatives:?}"));
        }
        return;
    }
    compare_here(schema, value, place, problems);
    for (name, part) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match schema["properties"].get(name).or(schema.get("additionalProperties")) {
            Some(schema) => compare(root, schema, part, &place, problems),
            None => problems.push(format!("{place} is not in the schema")),
        }
    }
    for (index, part) in value.as_array().into_iter().flatten().enumerate() {
        compare(root, &schema["items"], part, &format!("{place}[{index}]"), problems);
    }
}

/// What of a value itself does not fit.
fn compare_here(schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let is = |name: &Value| match name.as_str().unwrap_or_default() {
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("a type that nobody knows: {other}"),
    };
    if !types.is_empty() && !types.iter().any(is) {
        problems.push(format!("{place}: {value} is none of {types:?}"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        problems.push(format!("{place}: {value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
        problems.push(format!("{place}: {value} is none of {}", schema["enum"]));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            problems.push(format!("{place}.{name} is missing"));
        }
    }
}
