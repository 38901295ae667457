use super::*;

/// Checks the result of parsing, in one line.
fn check(name: &str, json: &str, expected: &str) {
    let said = match ToolArgs::parse(name, json) {
        Ok(args) => format!("{args:?}"),
        Err(error) => error,
    };
    assert_eq!(said, expected, "{name} {json}");
}

#[test]
fn arguments_are_read() {
    check(
        "shell",
        r#"{"command": "ls", "extra": [1]}"#,
        "Shell { command: \"ls\", timeout: None }",
    );
    check(
        "shell",
        r#"{"command": "", "timeout": "30"}"#,
        "Shell { command: \"\", timeout: Some(30) }",
    );
    check(
        "read",
        r#"{"path": "a", "start": 2.0, "end": null}"#,
        "Read { path: \"a\", start: Some(2), end: None }",
    );
    check(
        "read",
        r#"{"path": "a", "start": 1e300}"#,
        "Read { path: \"a\", start: Some(4294967295), end: None }",
    );
    check(
        "edit",
        r#"{"path": "a", "old": "b", "new": "", "all": "true"}"#,
        "Edit { path: \"a\", old: \"b\", new: \"\", count: None, all: true }",
    );
    check("list", "", "List { path: None, glob: None }");
    check("note", r#"{"kind": "avoid", "text": "x"}"#, "Note { kind: Avoid, text: \"x\" }");
    check("delegate", r#"{"task": "x"}"#, "Delegate { task: \"x\" }");
}

#[test]
fn faults_name_the_field() {
    let of = |name: &str, fault: &str| format!("The arguments of `{name}` are not valid: {fault}.");
    check("read", "{}", &of("read", "the field `path` is missing"));
    check("read", r#"{"path": null}"#, &of("read", "the field `path` is missing"));
    check("read", r#"{"path": 5}"#, &of("read", "the field `path` is 5, not a string"));
    let start = "the field `start` is 0, not a whole number from 1";
    check("read", r#"{"path": "a", "start": 0}"#, &of("read", start));
    let start = "the field `start` is a string, not a whole number from 1";
    check("read", r#"{"path": "a", "start": "x"}"#, &of("read", start));
    check(
        "note",
        r#"{"kind": "x", "text": "y"}"#,
        &of("note", "the field `kind` is a string, not one of: progress, decision, avoid"),
    );
    check("read", "[]", &of("read", "an array instead of an object"));
    let cut = "they are not JSON (EOF while parsing a string at line 1 column 9)";
    check("read", "{\"path\": ", &of("read", &cut.replace("a string", "a value")));
    check(
        "grep",
        "{}",
        "There is no tool `grep`. The tools are: shell, read, write, edit, search, list, note, \
         delegate, ask, finish.",
    );
}

#[test]
fn each_tool_takes_the_arguments_of_its_schema() {
    for spec in specs() {
        let schema: Value = serde_json::from_str(&spec.schema).unwrap();
        let example = |property: &Value| match property["type"].as_str() {
            Some("integer") => property["minimum"].clone(),
            Some("boolean") => true.into(),
            _ => property["enum"].get(0).cloned().unwrap_or("x".into()),
        };
        let properties = schema["properties"].as_object().unwrap();
        let all: Map<_, _> =
            properties.iter().map(|(name, of)| (name.clone(), example(of))).collect();
        let args = ToolArgs::parse(&spec.name, &Value::Object(all.clone()).to_string()).unwrap();
        let variant = format!("{args:?}").to_lowercase();
        assert!(variant.starts_with(&format!("{} {{", spec.name)), "{variant}");
        assert!(!variant.contains("none") && !variant.contains("\"\""), "{variant}");
        for name in schema["required"].as_array().unwrap() {
            let mut less = all.clone();
            less.remove(name.as_str().unwrap());
            let said = ToolArgs::parse(&spec.name, &Value::Object(less).to_string()).unwrap_err();
            assert!(said.contains(&format!("the field `{}` is missing", name.as_str().unwrap())));
        }
    }
}
