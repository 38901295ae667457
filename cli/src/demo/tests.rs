//! Tests of the demo: its template is consistent, and its agent works.

use std::collections::BTreeSet;

use longhaul_model_server::{Protocol, Request};

use super::*;

fn git_says(directory: &Path, arguments: &[&str]) -> String {
    let output = git(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn files_below(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.insert(path);
        }
    }
}

fn refusal(dir: &Path) -> String {
    format!("{:#}", create(dir, None).unwrap_err())
}

#[test]
fn every_file_of_the_template_is_in_the_table() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/demo/template");
    let mut found = BTreeSet::new();
    files_below(&directory, &mut found);
    let renamed = |path: &str| match path {
        ".cargo/config.toml" => "cargo-config.toml".to_owned(),
        ".gitignore" => "gitignore".to_owned(),
        "Cargo.toml" => "manifest.toml".to_owned(),
        "Cargo.lock" => "manifest.lock".to_owned(),
        same => same.to_owned(),
    };
    let listed: BTreeSet<PathBuf> =
        TEMPLATE.iter().map(|(path, _)| directory.join(renamed(path))).collect();
    assert_eq!(found, listed);
}

#[test]
fn every_feature_has_a_solution_and_tests() {
    let (_, list) = TEMPLATE.iter().find(|(path, _)| *path == "feature_list.json").unwrap();
    let ids: Vec<&str> = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"id\": \"")?.strip_suffix("\","))
        .collect();
    assert_eq!(ids.len(), FEATURES);
    for id in ids {
        for path in [format!("agent/solutions/{id}/steps"), format!("tests/acceptance/{id}.rs")] {
            assert!(TEMPLATE.iter().any(|(known, _)| *known == path), "{path}");
        }
    }
}

#[test]
fn a_project_is_made_with_one_commit_and_found_again() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("new/demo");
    create(&dir, None).unwrap();
    assert_eq!(git_says(&dir, &["log", "--format=%s"]), "A calculator with nothing in it yet");
    assert_eq!(git_says(&dir, &["branch", "--show-current"]), "main");
    assert_eq!(git_says(&dir, &["status", "--porcelain"]), "");
    assert!(git_says(&dir, &["ls-files", "-s", "agent/scripted-agent.sh"]).starts_with("100755"));

    fs::write(dir.join("README.md"), "changed").unwrap();
    create(&dir, None).unwrap();
    assert_eq!(fs::read_to_string(dir.join("README.md")).unwrap(), "changed");
    let left: Vec<_> = fs::read_dir(outer.path().join("new")).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn an_empty_directory_and_what_a_killed_demo_left_are_no_obstacle() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("demo");
    fs::create_dir(&dir).unwrap();
    fs::create_dir_all(outer.path().join(".demo.longhaul-demo/src")).unwrap();
    create(&dir, None).unwrap();
    assert!(is_demo(&dir) && dir.join("Cargo.toml").is_file());
}

#[test]
fn a_directory_of_other_things_is_refused_even_inside_a_demo_project() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("demo");
    create(&dir, None).unwrap();
    assert!(refusal(&dir.join("src")).contains("is there already and is not a demo project"));
    assert!(refusal(&dir.join("README.md")).contains("cannot read"));
}

/// A conversation with the scripted model; its messages as JSON.
fn asked(messages: &serde_json::Value) -> String {
    let body = serde_json::json!({ "model": "scripted", "messages": messages });
    let request = Request::read(Protocol::Anthropic, body, None);
    format!("{:?}", model::reply(&request))
}

#[test]
fn the_scripted_model_reads_writes_tests_and_finishes() {
    let mut messages = vec![serde_json::json!({ "role": "user", "content": "Do `repl`, now." })];
    let mut seen = Vec::new();
    for _ in 0..8 {
        let reply = asked(&messages.clone().into());
        let called = ["read", "write", "shell", "finish"];
        let name = called.iter().find(|name| reply.contains(&format!("name: \"{name}\""))).unwrap();
        seen.push(*name);
        let written = ["src/repl.rs", "src/commands.rs", "src/main.rs", "docs/repl.md"];
        let path = written.iter().find(|path| reply.contains(&format!("\\\"path\\\":\\\"{path}")));
        let call = serde_json::json!({
            "type": "tool_use", "id": "1", "name": name, "input": { "path": path },
        });
        messages.push(serde_json::json!({ "role": "assistant", "content": [call] }));
    }
    let wanted = ["read", "write", "write", "write", "write", "shell", "finish", "finish"];
    assert_eq!(seen, wanted);
}

#[test]
fn the_scripted_model_goes_on_from_a_summary() {
    let messages = serde_json::json!([
        { "role": "user", "content": "Do `eval`.\n\n## Completed\n\n- wrote src/eval.rs" },
    ]);
    assert!(asked(&messages).contains("docs/eval.md"));
}
