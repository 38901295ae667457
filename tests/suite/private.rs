//! The data directory and its socket are the user's own, and what agents print does nothing to a
//! terminal.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use longhaul_tests::command::Longhaul;
use longhaul_tests::project::{Project, plain};

fn longhaul(home: &Path) -> Longhaul {
    Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), home)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_data_directory_is_private_to_its_creator() {
    let project = Project::new(&[plain("parser", &[], 1)], 0.0);
    let (place, root) = (project.place(), project.root().to_string_lossy().into_owned());
    let text = |name: &str| place.join(name).to_string_lossy().into_owned();
    let home = place.join("ran");
    longhaul(&home).call(&["run", &root]).exits(0);
    longhaul(&home).call(&["export", "--all", "-O", &text("all.jsonl")]).exits(0);
    longhaul(&home).call(&["backup", "-O", &text("all.zst")]).exits(0);
    longhaul(&place.join("imported")).call(&["import", &text("all.jsonl")]).exits(0);
    longhaul(&place.join("restored")).call(&["restore", &text("all.zst")]).exits(0);
    let batch = format!("batch = \"b\"\n[[project]]\ndir = {root:?}\n");
    fs::write(place.join("batch.toml"), batch).unwrap();
    project.git(&["config", "--unset", "longhaul.id"]);
    longhaul(&place.join("detached")).call(&["batch", &text("batch.toml"), "--detach"]).exits(0);
    longhaul(&place.join("detached")).call(&["batch", &text("batch.toml")]);
    for home in ["ran", "imported", "restored", "detached"] {
        assert_eq!(mode(&place.join(home)), 0o700, "{home}");
    }
    fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
    longhaul(&home).call(&["list"]).exits(0).says("its mode is 700 now");
    assert_eq!(mode(&home), 0o700);
}

#[test]
fn a_long_path_leaves_the_socket_in_the_data_directory() {
    let project = Project::new(&[plain("parser", &[], 1)], 0.0);
    let deep =
        ["d".repeat(60), "e".repeat(60), "home".into()].iter().collect::<std::path::PathBuf>();
    let home = project.place().join(deep);
    let longhaul = longhaul(&home);
    project.hold("parser");
    let root = project.root().to_string_lossy().into_owned();
    let mut run = longhaul.begin(&["run", &root], &project.place().join("output"));
    project.until_at_work_in(&home, "parser");
    assert!(home.join("owner.sock").exists());
    longhaul.call(&["status", &root]).exits(0).says("running");
    longhaul.call(&["doctor", &root]).exits(0).says("runs this log");
    project.let_go("parser");
    run.exits(0);
    assert!(!home.join("owner.sock").exists());
}

const AGENT: &str = "#!/bin/sh\nprintf 'before \\033]0;title\\007\\033[2J\\033[31mred\\033[0m \\302\\2332Jafter\\rover\\n'\n\
                     touch parser.txt; echo finished > parser.txt; git add -A; git commit -qm work\n";

#[test]
fn what_others_have_written_does_nothing_to_a_terminal() {
    let project = Project::new(&[plain("parser", &[], 1)], 0.0);
    let longhaul = longhaul(&project.home());
    project.write("agent.sh", AGENT);
    let list = project.read("feature_list.json");
    let list = list
        .replace("Make parser.", "Make \\u001b[2Jparser.\\u009b2J")
        .replace("Feature parser", "Feature\\u001b]0;x\\u0007");
    project.write("feature_list.json", &list);
    project.commit("Print more than text");
    let root = project.root().to_string_lossy().into_owned();
    longhaul.call(&["run", &root]).exits(0);
    let raw = longhaul.call(&["logs", "parser", "--dir", &root, "--raw"]).exits(0).stdout.clone();
    assert!(raw.contains("\x1b]0;title\x07\x1b[2J"), "{raw:?}");
    longhaul
        .call(&["feature", "block", "parser", "--dir", &root, "--why", "no\x1b[2J way\x07"])
        .exits(0);
    let shown = [
        longhaul.call(&["logs", "parser", "--dir", &root]),
        longhaul.call(&["feature", "show", "parser", "--dir", &root]),
        longhaul.call(&["feature", "list", &root]),
        longhaul.call(&["why", "parser", "--dir", &root]),
        longhaul.call(&["status", &root]),
        longhaul.call(&["history", "parser", "--dir", &root, "--full"]),
    ];
    shown[0].says("before red after\nover\n");
    for output in &shown {
        let obeyed = |text: &str| {
            text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'))
        };
        assert!(
            !obeyed(&output.stdout) && !obeyed(&output.stderr),
            "{:?}\n{:?}",
            output.stdout,
            output.stderr
        );
    }
}
