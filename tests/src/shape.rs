//! Whether documents have the shape that their schemas promise: as much of JSON Schema as those
//! use.

use std::collections::BTreeSet;

use serde_json::Value;

/// What of a document does not fit its schema; a field that the schema does not speak of does not
/// fit either.
pub fn problems(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Found::default();
    Checker { root: schema }.whole(schema, document, "$", &mut found);
    found.problems
}

/// What was found out about a value.
#[derive(Default)]
struct Found {
    problems: Vec<String>,
    /// The fields that a schema speaks of.
    known: BTreeSet<String>,
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    /// A value by itself: what it has is all in its schema.
    fn whole(&self, schema: &Value, value: &Value, place: &str, found: &mut Found) {
        if *schema == Value::Bool(true) {
            return;
        }
        let mut here = Found::default();
        self.part(schema, value, place, &mut here);
        let unknown =
            value.as_object().into_iter().flatten().filter(|(name, _)| !here.known.contains(*name));
        here.problems
            .extend(unknown.map(|(name, _)| format!("{place}.{name} is not in the schema")));
        found.problems.append(&mut here.problems);
    }

    /// A value by one of the schemas that speak of it.
    fn part(&self, schema: &Value, value: &Value, place: &str, found: &mut Found) {
        if let Some(reference) = schema["$ref"].as_str() {
            let meant = self.root.pointer(reference.trim_start_matches('#'));
            self.part(
                meant.unwrap_or_else(|| panic!("{reference} is not in the schema")),
                value,
                place,
                found,
            );
        }
        for alternatives in
            [&schema["anyOf"], &schema["oneOf"]].into_iter().filter_map(Value::as_array)
        {
            let tried = alternatives.iter().map(|schema| {
                let mut found = Found::default();
                self.part(schema, value, place, &mut found);
                found
            });
            // Alternatives without required fields fit each other's values: the one that knows most
            // is meant.
            let fitting = tried.filter(|found| found.problems.is_empty());
            match fitting.max_by_key(|found| found.known.len()) {
                Some(mut one) => found.known.append(&mut one.known),
                None => {
                    found.problems.push(format!("{place}: {value} fits none of {alternatives:?}"));
                }
            }
        }
        here(schema, value, place, &mut found.problems);
        for (name, part) in value.as_object().into_iter().flatten() {
            if let Some(schema) =
                schema["properties"].get(name).or(schema.get("additionalProperties"))
            {
                found.known.insert(name.clone());
                self.whole(schema, part, &format!("{place}.{name}"), found);
            }
        }
        for (index, part) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = schema.get("items") {
                self.whole(schema, part, &format!("{place}[{index}]"), found);
            }
        }
    }
}

/// What of a value itself does not fit.
fn here(schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
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
        other => panic!("an unknown type: {other}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_named() {
        let project =
            json!({ "properties": { "state": { "type": "string" } }, "required": ["state"] });
        let feature = json!({ "properties": { "state": {}, "step": { "type": ["string", "null"] } }, "required": ["step"] });
        let schema = json!({
            "properties": { "schema": { "const": "a/1" }, "runs": { "items": { "$ref": "#/$defs/run" } } },
            "required": ["schema"], "anyOf": [project, feature], "$defs": { "run": { "type": "integer" } },
        });
        let check = |document: Value, expected: &[&str]| {
            let problems = problems(&schema, &document);
            assert_eq!(problems.len(), expected.len(), "{document}: {problems:#?}");
            for (problem, expected) in problems.iter().zip(expected) {
                assert!(problem.starts_with(expected), "{problem}");
            }
        };
        check(json!({ "schema": "a/1", "state": "x", "runs": [1, 2] }), &[]);
        check(json!({ "schema": "a/1", "state": "x", "step": null }), &[]);
        check(json!({ "schema": "a/2", "state": "x" }), &["$.schema: \"a/2\" is not"]);
        check(json!({ "state": "x" }), &["$.schema is missing"]);
        check(json!({ "schema": "a/1" }), &["$: "]);
        check(
            json!({ "schema": "a/1", "state": "x", "more": 1 }),
            &["$.more is not in the schema"],
        );
        check(
            json!({ "schema": "a/1", "state": "x", "runs": ["1"] }),
            &["$.runs[0]: \"1\" is none of"],
        );
    }
}
