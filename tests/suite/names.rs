//! What is named on the command line is the same for every verb, on a log in use and on one at
//! rest, and an unknown name is reported, with what may be meant.

use std::process::Command;

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;

use crate::world::World;

const NEVER: Plan = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };

/// The verbs that take a run or a feature, and whether they change anything.
const VERBS: [&str; 18] = [
    "describe _",
    "history _",
    "logs _",
    "tree _",
    "why _",
    "replay _",
    "export _",
    "checkpoints _",
    "checkpoint _",
    "fork _ --from start",
    "restart _",
    "reconcile _ --happened",
    "pause _",
    "resume _",
    "cancel _",
    "terminate _",
    r#"signal _ note "short""#,
    "steer _ tabs",
];

/// Every verb finds the run by each of its names, and none by an unknown name.
fn check(world: &World) {
    let run = format!("{}/parser/1", world.project_id());
    let names = [
        run.clone(),
        "parser".into(),
        "parser/1".into(),
        format!("{}/parser", world.project_id()),
        format!("{run}/"),
    ];
    for verb in VERBS {
        for (number, name) in names.iter().enumerate() {
            // What changes something is said once.
            let changes = ["fork", "restart", "resume"].iter().any(|word| verb.starts_with(word));
            if changes && number > 0 {
                continue;
            }
            let output = world.call(&verb.replace('_', name));
            let text = format!("{}{}", output.stdout, output.stderr);
            assert!(!text.contains("the log knows no"), "{verb} {name}: {text}");
            assert!(text.contains("parser"), "{verb} {name}: {text}");
        }
        let verb = verb.replace('_', "pasrer");
        world
            .call(&verb)
            .exits(2)
            .says("the log knows no run or feature `pasrer`; did you mean")
            .says("parser");
    }
}

#[test]
fn every_verb_finds_a_run_by_all_of_its_names() {
    let world = World::new(&[NEVER, plain("table", &["parser"], 1)], 0.0);
    world.run().exits(1);
    for verb in [
        "fork _ --from start",
        "restart _",
        "checkpoint _",
        "replay _",
        "reconcile _ --happened",
        "pause _",
    ] {
        world.call(&verb.replace('_', "table")).exits(2).says("/table` says why");
    }
    check(&world);
    let project = world.project_id();
    assert_eq!(world.call("fork parser/1 --from start").code(), 3, "the fork before is under way");
    world.call(&format!("replay --project {}", &project[..3])).exits(0).says("same");
}

#[test]
fn every_verb_finds_a_run_through_the_process_that_has_the_log() {
    let world = World::with_settings(
        &[NEVER, plain("table", &["parser"], 1), plain("manual", &[], 1)],
        0.1,
        "[limits]\nfailed_gates = 1\n",
    );
    world.project.hold("manual");
    let mut run = world.begin();
    world.project.until_at_work("manual");
    until("it is blocked", || world.call("why parser").stdout.contains("given up"));
    check(&world);
    // While `manual` is at work the project goes on, so this ends it.
    world.call("terminate . --why enough").exits(0);
    run.exits(3);
}

#[test]
fn a_feature_goes_before_a_directory_that_is_called_like_it() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    let there = |name: &str| {
        let dir = world.project.root().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let program = env!("CARGO_BIN_EXE_longhaul-under-test");
        let args = ["pause", name, "--dry-run"];
        Command::new(program)
            .args(args)
            .current_dir(world.project.root())
            .env("LONGHAUL_HOME", world.project.home())
            .output()
            .unwrap()
    };
    let output = |name: &str| String::from_utf8_lossy(&there(name).stdout).into_owned();
    assert_eq!(output("parser").lines().count(), 2, "the feature, and not the whole project");
    assert_eq!(
        there("table").status.code(),
        Some(2),
        "it has had no run, and the project is not meant"
    );
    assert_eq!(
        output("acceptance").lines().count(),
        3,
        "the project and the feature that is worked on"
    );
    run.terminate();
    run.exits(3);
}

#[test]
fn unknown_names_are_reported() {
    let world = World::new(&[NEVER, plain("table", &["parser"], 1)], 0.0);
    world.call("list").exits(0).says("nothing has run yet");
    world.run().exits(1);
    let project = world.project_id();
    let typo = format!("{}x{}", &project[..4], &project[5..]);
    for verb in [
        "list --project _",
        "prune --older-than 0s --project _",
        "export --project _",
        "replay --project _",
    ] {
        world.call(&verb.replace('_', &typo)).exits(2).says("no project").says(&project);
        world
            .call(&verb.replace('_', "nothing-like-it"))
            .exits(2)
            .says("longhaul list --kind project");
    }
    world.call(&format!("list --project {project}")).exits(0).says("parser/1");
    world.call("list --kind typo").exits(2).says("feature");
    world.call("list --status typo").exits(2).says("blocked");
    world.call("pause --filter status=typo").exits(2).says("`typo` is none of").says("blocked");
    world
        .call("pause --filter kind=typo")
        .exits(2)
        .says("`typo` is none of project, feature, session, batch");
    let file = world.project.place().join("plain");
    std::fs::write(&file, "").unwrap();
    for verb in ["list", "why parser", "pause ."] {
        world.call(&format!("{verb} --data-dir <place>/plain")).exits(2).says("is no directory");
    }
}

#[test]
fn runs_without_delivery_are_named_as_given_and_by_id() {
    let world = World::new(&[NEVER], 0.0);
    world.run().exits(1);
    let output = world.call("pause parser nobody -o json").exits(2).json();
    let run = format!("{}/parser/1", world.project_id());
    let lines = output["runs"].as_array().unwrap();
    assert_eq!(
        (&lines[0]["target"], &lines[0]["run"]),
        (&"parser".into(), &run.clone().into()),
        "{output:#}"
    );
    assert_eq!(
        (&lines[0]["result"], &lines[1]["result"]),
        (&"refused".into(), &"unknown".into()),
        "{output:#}"
    );
    assert_eq!(
        (&lines[1]["target"], &lines[1]["run"]),
        (&"nobody".into(), &"nobody".into()),
        "{output:#}"
    );
    assert!(
        lines[0]["reason"].as_str().unwrap().contains(&format!("{run} is over: blocked")),
        "{output:#}"
    );
}

#[test]
fn files_are_replayed_where_there_is_no_home() {
    let world = World::new(&[plain("table", &[], 1)], 0.0);
    world.run().exits(0);
    let file = world.project.place().join("all.jsonl");
    world.call("export --all -O <place>/all.jsonl").exits(0);
    let call = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_longhaul-under-test"))
            .args(args)
            .env_clear()
            .output()
            .unwrap()
    };
    let output = call(&["replay", &file.to_string_lossy()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("3 runs: 3 same"), "{output:?}");
    assert!(call(&["schema"]).status.success() && call(&["completions", "bash"]).status.success());
    let output = call(&["replay", "--all"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--data-dir"), "{output:?}");
}

#[test]
fn a_run_keeps_what_it_came_to() {
    let world = World::new(&[NEVER, plain("table", &[], 1)], 0.0);
    world.run().exits(1);
    let (run, table) =
        (format!("{}/parser/1", world.project_id()), format!("{}/table/1", world.project_id()));
    let blocked =
        |world: &World| world.call("list --status blocked --all -o ids").exits(0).stdout.clone();
    assert_eq!(blocked(&world), format!("{run}\n"));
    world.call("fork parser --from session:1").exits(0);
    world.call("restart table").exits(0);
    for _ in 0..2 {
        assert!(blocked(&world).contains(&run), "it stays as it is");
        assert!(world.call("list --status passed --all -o ids").stdout.contains(&table));
        world.call("tree .").exits(0).says("parser/1  blocked").says("table/1  passed");
        assert_eq!(world.json(&format!("describe {run}"))["status"], "blocked");
        assert_eq!(world.json(&format!("why {run}"))["status"], "blocked");
        world.call(&format!("pause {run}")).exits(2).says("is over: blocked");
        let paused = world.call("pause --filter status=blocked --yes");
        assert!(
            !paused.stderr.contains(&run) && !paused.stdout.contains(&run),
            "{}",
            paused.stderr
        );
        world.run().exits(1);
    }
}
