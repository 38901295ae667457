//! Tests of the demo: its template is consistent, and its agent works.

use std::collections::BTreeSet;

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
    format!("{:#}", create(dir).unwrap_err())
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
    create(&dir).unwrap();
    assert_eq!(git_says(&dir, &["log", "--format=%s"]), "A calculator with nothing in it yet");
    assert_eq!(git_says(&dir, &["branch", "--show-current"]), "main");
    assert_eq!(git_says(&dir, &["status", "--porcelain"]), "");
    assert!(git_says(&dir, &["ls-files", "-s", "agent/scripted-agent.sh"]).starts_with("100755"));

    fs::write(dir.join("README.md"), "changed").unwrap();
    create(&dir).unwrap();
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
    create(&dir).unwrap();
    assert!(is_demo(&dir) && dir.join("Cargo.toml").is_file());
}

#[test]
fn a_directory_of_other_things_is_refused_even_inside_a_demo_project() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("demo");
    create(&dir).unwrap();
    assert!(refusal(&dir.join("src")).contains("is there already and is not a demo project"));
    assert!(refusal(&dir.join("README.md")).contains("cannot read"));
}
