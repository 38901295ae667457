//! Held-out checks: an agent learns whether they pass, and their message.

use std::fs;

use longhaul_activities::process::available;
use longhaul_tests::project::{Project, plain};
use serde_json::{Value, json};

use crate::world::World;

/// What is in the held-out files, and printed by them.
const CANARY: &str = "canary-5f3a";
const MESSAGE: &str = "The answer is wrong.";

/// Features whose held-out check wants `right` in a file of their name. An agent writes `wrong`
/// first, and looks for the canary in all that it can read before; that of `stubborn` never does
/// better. What it finds is in the file `found`.
fn world(sandbox: &str) -> World {
    let settings =
        "[limits]\nfailed_gates = 2\n[project]\nparallel = 1\nhidden_checks = \"../held\"\n";
    let world =
        World::with_settings(&[plain("stubborn", &[], 1), plain("quick", &[], 1)], 0.0, settings);
    let place = world.project.place();
    fs::create_dir(place.join("held")).unwrap();
    let check = format!(
        "# {CANARY}\necho {CANARY}; echo {CANARY} >&2\ngrep -q right $LONGHAUL_FEATURE_ID.txt\n"
    );
    fs::write(place.join("held/check.sh"), check).unwrap();
    let place = place.display();
    let program = env!("CARGO_BIN_EXE_longhaul-under-test");
    // The agent itself must not hold it.
    let canary = CANARY.replace('-', "\"\"-");
    let agent = format!(
        "#!/bin/sh\nid=$LONGHAUL_FEATURE_ID\ncat - \"$LONGHAUL_FEATURE_FILE\" >'{place}'/\"prompt-$id-$LONGHAUL_SESSION\"\n\
         grep -rl {canary} \"$PWD\" '{place}/p' >>'{place}/found'\n\
         env | grep LONGHAUL_HIDDEN >>'{place}/found'\n\
         cat '{place}/held/check.sh' >>'{place}/read' 2>/dev/null\n\
         for ask in 'history stubborn --full' 'describe stubborn' 'why stubborn' 'logs stubborn' 'list' 'status .'; do\n\
         (cd '{place}/p' && '{program}' --data-dir '{place}/home' $ask) >>'{place}/told' 2>&1\ndone\n\
         [ $id-$LONGHAUL_SESSION = quick-2 ] && word=right || word=wrong\necho \"$LONGHAUL_SESSION $word\" >$id.txt\n"
    );
    world.project.write("agent.sh", &agent);
    world.project.write(
        "init.sh",
        &format!("#!/bin/sh\ncat '{place}/held/check.sh' && echo the set-up can read it\n:\n"),
    );
    world.project.set_sandbox(&format!("sandbox = \"{sandbox}\"\n"));
    let mut list: Value = serde_json::from_str(&world.project.read("feature_list.json")).unwrap();
    for feature in list["features"].as_array_mut().unwrap() {
        let check = json!({"name": "held", "run": "sh $LONGHAUL_HIDDEN/check.sh", "hidden": true, "message": MESSAGE});
        feature["checks"] = json!([check]);
    }
    world.project.write("feature_list.json", &list.to_string());
    world.project.commit("Held-out checks");
    world
}

fn read(world: &World, file: &str) -> String {
    fs::read_to_string(world.project.place().join(file)).unwrap_or_default()
}

fn tells_no_more_than_the_message(sandbox: &str) -> World {
    let world = world(sandbox);
    world.run().exits(1);
    let status = world.json("status .");
    let standing: Vec<&str> = status["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["status"].as_str().unwrap())
        .collect();
    assert_eq!(standing, ["blocked", "passed"]);
    let first = read(&world, "prompt-stubborn-1");
    assert!(first.contains("- held: held out; you learn only whether it passes"), "{first}");
    assert!(first.contains("\"hidden\": true"), "the feature file: {first}");
    assert!(!first.contains("LONGHAUL_HIDDEN") && !first.contains("check.sh"), "{first}");
    for prompt in ["prompt-stubborn-2", "prompt-quick-2"] {
        let told = read(&world, prompt);
        assert!(
            told.contains("The held-out check `held` failed on commit") && told.contains(MESSAGE),
            "{told}"
        );
        assert!(
            !told.contains("LONGHAUL_HIDDEN")
                && !told.contains("check.sh")
                && !told.contains(CANARY),
            "{told}"
        );
    }
    // The last session looked at what the earlier ones left, the files for people among it.
    assert_eq!(read(&world, "found"), "");
    let told = read(&world, "told");
    assert!(!told.contains(CANARY), "{told}");
    assert!(told.contains("agents and checks neither read nor steer runs"), "{told}");
    assert!(read(&world, "p/claude-progress.txt").contains(MESSAGE));
    world
}

#[test]
fn an_agent_learns_of_a_held_out_check_only_that_it_failed_and_its_message() {
    let world = tells_no_more_than_the_message("off");
    assert!(
        read(&world, "read").contains(CANARY),
        "without a sandbox, nothing keeps the directory out of its reach"
    );
}

#[test]
fn a_sandbox_keeps_held_out_files_from_sessions_and_set_up_scripts() {
    if available().best().is_none() {
        eprintln!("not tried: {}", available().lacks());
        return;
    }
    let world = tells_no_more_than_the_message("auto");
    assert_eq!(read(&world, "read"), "");
    let project = world.project_id();
    for feature in ["stubborn", "quick"] {
        let history =
            world.call(&format!("history {project}/{feature}/1 --full")).exits(0).stdout.clone();
        assert!(!history.contains("the set-up can read it"), "{history}");
    }
    // Nor from those of another project of the data directory.
    let other = Project::new(&[plain("parser", &[], 1)], 0.0);
    other.set_sandbox("sandbox = \"auto\"\n");
    let held = world.project.place().join("held/check.sh");
    let look = format!("#!/bin/sh\ncat '{}' >seen.txt 2>/dev/null\n", held.display());
    other.write("agent.sh", &other.read("agent.sh").replacen("#!/bin/sh\n", &look, 1));
    other.commit("An agent that looks at the files of another project");
    world.longhaul.call(&["run", &other.root().to_string_lossy()]).exits(0);
    assert_eq!(other.git(&["show", "main:seen.txt"]), "");
}
