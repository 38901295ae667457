//! Agents that reach for what is not theirs: kept out, refused, and told of.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use longhaul_activities::process::available;
use longhaul_tests::project::plain;
use longhaul_tests::wait::until;
use serde_json::Value;

use crate::world::World;

/// A project whose agent does its work, and this script before it; `$PLACE` is the folder of the
/// test.
fn with_agent(script: &str, settings: &str) -> World {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, "");
    world.project.set_sandbox(settings);
    let agent = world.project.read("agent.sh");
    let body = agent.strip_prefix("#!/bin/sh\n").unwrap();
    let (place, program) =
        (world.project.place().display().to_string(), env!("CARGO_BIN_EXE_longhaul-under-test"));
    let head = format!("#!/bin/sh\nPLACE='{place}'\nLONGHAUL='{program}'\n{script}\n");
    world.project.write("agent.sh", &(head + body));
    world.project.commit("An agent that does more than it should");
    world
}

/// A project whose agent is this script, which then does its work. Its settings are the given ones.
fn with_own_agent(script: &str, settings: &str) -> World {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.write("own.sh", &format!("{script}\necho finished >parser.txt\n"));
    let agent = format!("[agent]\ncommand = ['sh', 'own.sh']\n{settings}\n");
    world.project.write("longhaul.toml", &agent);
    world.project.commit("An agent of its own");
    world
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.project.place().join(file)).unwrap_or_default()
}

#[test]
fn an_agent_reaches_neither_the_checkout_nor_the_data_directory() {
    if available().best().is_none() {
        eprintln!("not tried: {}", available().lacks());
        return;
    }
    let world = with_agent(
        "echo cheat >>\"$PLACE/p/feature_list.json\"; echo cheat >\"$PLACE/p/new\"; rm -f \"$PLACE/p/README.md\"
         ls \"$PLACE/home/lock\" && cat \"$PLACE/home/lock\" >\"$PLACE/journal/../stolen\"
         echo cheat >\"$PLACE/home/new\"",
        "",
    );
    world.run().exits(0);
    assert!(!world.project.read("feature_list.json").contains("cheat"));
    assert_eq!(world.project.read("new"), "");
    assert_ne!(world.project.read("README.md"), "");
    assert_eq!(read(&world, "stolen"), "");
    assert!(!world.project.home().join("new").exists());
    world.call("doctor .").says("sandbox");
    let level = available().best().unwrap().name();
    assert!(world.json("status .")["sandbox"].as_str().unwrap().starts_with(level));
}

#[test]
fn an_agent_creates_no_settings_of_agents() {
    if available().bubblewrap.is_err() {
        eprintln!("not tried: {}", available().lacks());
        return;
    }
    let world = with_own_agent(
        "for file in .claude/settings.json .claude/hooks/run .claude/rules/x.md .codex/config.toml; do
           echo cheat >\"$HOME/$file\"
         done 2>/dev/null
         echo state >\"$HOME/.claude/state\"",
        "",
    );
    let home = world.project.place().join("user");
    for directory in [".claude", ".codex"] {
        std::fs::create_dir_all(home.join(directory)).unwrap();
    }
    std::fs::write(home.join(".gitconfig"), "[user]\nname = ann\nemail = ann@example.org\n")
        .unwrap();
    let at_home = world.longhaul.clone().with("HOME", home.to_str().unwrap());
    at_home.call(&["run", &world.root]).exits(0);
    let read = |file: &str| std::fs::read_to_string(home.join(file)).unwrap_or_default();
    assert_eq!(read(".claude/state"), "state\n");
    assert_eq!(read(".claude/settings.json"), "{}\n");
    for file in [".claude/hooks/run", ".claude/rules/x.md", ".codex/config.toml"] {
        assert_eq!(read(file), "", "{file}");
    }
}

#[test]
fn lines_of_the_loader_do_not_cost_a_session() {
    for sandbox in ["", "sandbox = 'off'"] {
        let settings = format!("env = {{ LD_PRELOAD = '/nowhere/library.so' }}\n{sandbox}");
        let world = with_own_agent("", &settings);
        world.run().exits(0);
        assert_eq!(world.json("status .")["features"][0]["sessions"], 1);
    }
}

#[test]
fn the_log_is_out_of_reach_of_all_verbs_of_a_session_that_its_sandbox_hides() {
    if available().bubblewrap.is_err() {
        eprintln!("not tried: {}", available().lacks());
        return;
    }
    let world = with_agent(
        "for verb in status graph 'feature list' run; do
            \"$LONGHAUL\" --data-dir \"$PLACE/home\" $verb \"$PLACE/p\" >>\"$PLACE/journal/output\" 2>&1
        done",
        "",
    );
    world.run().exits(0);
    let output = read(&world, "journal/output");
    assert_eq!(output.matches("is out of reach of the session").count(), 4, "{output}");
    assert_eq!(output.lines().count(), 4, "{output}");
}

#[test]
fn agents_get_no_descriptor_that_the_caller_left_open() {
    let script =
        "[ -e /proc/$$/fd/9 ] && echo leaked >>\"$PLACE/output\"; echo begun >>\"$PLACE/output\"";
    let world = with_agent(script, "sandbox = \"off\"\n");
    let line = format!("exec 9</tmp; \"$UNDER_TEST\" run {}; exit $?", world.root);
    world.longhaul.shell(&line).exits(0);
    assert_eq!(read(&world, "output"), "begun\n");
}

#[test]
fn a_required_sandbox_that_is_not_there_is_an_error_of_this_machine() {
    let world = with_agent("", "sandbox = \"required\"\n");
    if available().best().is_some() {
        world.run().exits(0);
    } else {
        world.run().exits(4).says("this machine offers none");
    }
}

/// `bwrap` as it is on this machine, until the file `broken` is there.
const BREAKABLE: &str = "#!/bin/sh
[ -e 'PLACE/broken' ] && { echo 'bwrap: no permissions to create a new namespace' >&2; exit 1; }
exec 'BWRAP' \"$@\"
";

#[test]
fn a_required_sandbox_that_stops_working_is_waited_for() {
    let Ok(bwrap) = &available().bubblewrap else {
        eprintln!("not tried: {}", available().lacks());
        return;
    };
    let mut world = with_agent("", "sandbox = \"required\"\n");
    let place = world.project.place();
    let script = BREAKABLE
        .replace("PLACE", place.to_str().unwrap())
        .replace("BWRAP", bwrap.to_str().unwrap());
    let bin = place.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("bwrap"), script).unwrap();
    std::fs::set_permissions(bin.join("bwrap"), Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    world.longhaul = world.longhaul.with("PATH", &path);

    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    std::fs::write(place.join("broken"), "").unwrap();
    world.project.let_go("parser");
    until("it waits", || {
        let cause = world.json("status .")["features"][0]["machine"].clone();
        cause.as_str().is_some_and(|cause| cause.contains("no permissions to create"))
    });
    std::fs::remove_file(place.join("broken")).unwrap();
    run.exits(0);
    assert_eq!(world.project.marks().len(), 1, "one session");
}

#[track_caller]
fn check_refusals(findings: &Value) {
    let findings: Vec<&str> =
        findings.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert_eq!(findings.len(), 4, "{findings:?}");
    for (finding, verb) in findings.into_iter().zip(["pause", "cancel", "terminate", "backup"]) {
        assert!(
            finding.contains(&format!("asked for `longhaul {verb}` and was refused")),
            "{finding}"
        );
    }
}

#[test]
fn a_session_cannot_steer() {
    let script = "for verb in pause cancel terminate; do
            env -i PATH=\"$PATH\" \"$LONGHAUL\" --data-dir \"$PLACE/home\" $verb \"$PLACE/p\" >>\"$PLACE/output\" 2>&1
            echo \"$verb: $?\" >>\"$PLACE/codes\"
         done
         \"$LONGHAUL\" --data-dir \"$PLACE/home\" backup -O \"$PLACE/backup\" >>\"$PLACE/output\" 2>&1
         \"$LONGHAUL\" --data-dir \"$PLACE/home\" status \"$PLACE/p\" >\"$PLACE/status\" 2>&1; echo \"status: $?\" >>\"$PLACE/codes\"";
    let world = with_agent(script, "sandbox = \"off\"\n");
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    let status: Value = world.json("status .");
    check_refusals(&status["features"][0]["findings"]);
    world.call("status .").says("asked for `longhaul pause` and was refused");
    world.call("why parser").says("asked for `longhaul pause` and was refused");
    world.project.let_go("parser");
    run.exits(0);
    check_refusals(&world.json("status .")["features"][0]["findings"]);
    check_refusals(&world.json("describe parser")["findings"]);
    world.call("history parser").exits(0).says("steering_refused");
    assert_eq!(read(&world, "codes"), "pause: 2\ncancel: 2\nterminate: 2\nstatus: 0\n");
    assert!(
        read(&world, "output").contains("agents and checks cannot steer runs"),
        "{}",
        read(&world, "output")
    );
    assert!(!world.project.place().join("backup").exists());
}

#[test]
fn a_session_in_a_sandbox_learns_that_the_log_is_out_of_reach() {
    if available().best().is_none() {
        eprintln!("not tried: {}", available().lacks());
        return;
    }
    let script = "for verb in pause approve; do
            \"$LONGHAUL\" --data-dir \"$PLACE/home\" $verb \"$PLACE/p\" >>\"$PLACE/journal/output\" 2>&1
            echo \"$verb: $?\" >>\"$PLACE/journal/codes\"
         done";
    let world = with_agent(script, "sandbox = \"required\"\n");
    world.run().exits(0);
    let output = read(&world, "journal/output");
    assert_eq!(read(&world, "journal/codes"), "pause: 2\napprove: 2\n", "{output}");
    assert_eq!(output.matches("agents and checks ").count(), 2, "{output}");
}

/// Verbs that change something, which a process that comes from a session of an owner that is gone
/// may try.
const VERBS: [&str; 20] = [
    "pause .",
    "resume .",
    "cancel .",
    "terminate .",
    "run .",
    "rollback . --to parser",
    "feature block parser --why no --dir .",
    "steer parser hurry --dir .",
    "approve parser --dir .",
    "deny parser --why no --dir .",
    "signal <project> sync '\"x\"'",
    "fork <project>/parser/1 --from session:1",
    "restart <project>/parser/1",
    "checkpoint <project>/parser/1 --note x",
    "export --all -O <place>/stolen",
    "backup -O <place>/stolen",
    "prune --older-than 0d",
    "check --repair",
    "import <place>/all.jsonl",
    "doctor . --fix",
];

#[test]
fn refused_steering_is_shown_while_its_run_waits_for_approval() {
    let settings = "[project]\nparallel = 2\n[merge]\napproval = true\n";
    let world =
        World::with_settings(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0, settings);
    world.project.hold("table");
    let mut run = world.begin();
    until("it waits for approval", || {
        world.json("status .")["features"][0]["awaits_approval"] == true
    });
    let id = format!("{}/parser/1", world.project_id());
    let owner = longhaul_activities::process::owner_id(&world.project.home());
    let inside = world.longhaul.clone().with("LONGHAUL_OWNER", &owner);
    let inside = inside.with("LONGHAUL_SESSION_KEY", &format!("{id}@5"));
    let line = format!(
        "env -i PATH=\"$PATH\" \"$UNDER_TEST\" --data-dir \"$LONGHAUL_HOME\" approve {id}; exit $?"
    );
    inside.shell(&line).exits(2).says("agents and checks cannot steer runs");
    until("the run has received it", || {
        world.call("history parser").stdout.contains("steering_refused")
    });
    for command in ["status .", "why parser", "describe parser"] {
        world.call(command).exits(0).says("asked for `longhaul approve` and was refused");
    }
    world.project.let_go("table");
    run.exits(3);
    world.call("status .").exits(0).says("asked for `longhaul approve` and was refused");
    world.call("replay --all").exits(0);
}

#[test]
fn a_session_cannot_steer_a_log_at_rest() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, "");
    world.run().exits(0);
    let place = world.project.place().display().to_string();
    world.call("export --all -O <place>/all.jsonl").exits(0);
    let owner = longhaul_activities::process::owner_id(&world.project.home());
    let project = world.project_id();
    let inside = world.longhaul.clone().with("LONGHAUL_OWNER", &owner);
    let inside = inside.with("LONGHAUL_SESSION_KEY", &format!("{project}/parser/1@5"));
    let before = world.json("list");
    let mut answered = Vec::new();
    for verb in VERBS {
        let verb = verb
            .replace("<project>", &project)
            .replace("<place>", &place)
            .replace(" .", &format!(" {}", world.root));
        // Its own environment is clean: what it comes from is not.
        let line = format!(
            "env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$UNDER_TEST\" --data-dir \"$LONGHAUL_HOME\" {verb}; exit $?"
        );
        let output = inside.shell(&line);
        let is_refused = output.stderr.contains(&format!("the session {project}/parser/1@5"));
        if output.code() != 2 || !is_refused || world.project.place().join("stolen").exists() {
            answered.push(format!("{verb}: {} {}{}", output.code(), output.stdout, output.stderr));
        }
    }
    assert!(answered.is_empty(), "{answered:#?}");
    assert_eq!(world.json("list"), before);
    world.call("export --all -O <place>/after.jsonl").exits(0);
    let read = |file: &str| std::fs::read_to_string(world.project.place().join(file)).unwrap();
    assert_eq!(read("after.jsonl"), read("all.jsonl"), "nothing was written");
    inside
        .shell(&format!("\"$UNDER_TEST\" status {}; exit $?", world.root))
        .exits(0)
        .says("1 of 1 features pass");
}

#[test]
fn a_pipe_in_the_place_of_the_list_is_an_error_at_once() {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, "");
    let list = world.project.root().join("feature_list.json");
    std::fs::remove_file(&list).unwrap();
    nix::unistd::mkfifo(&list, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let begun = Instant::now();
    for command in ["run", "status"] {
        world
            .longhaul
            .call(&[command, &world.root])
            .exits(2)
            .says("is a named pipe and not a file");
    }
    world.call("feature list").exits(2).says("is a named pipe and not a file");
    assert!(begun.elapsed() < Duration::from_mins(2), "nothing waits for a writer");
}

#[test]
fn an_owner_does_not_hang_on_a_pipe() {
    let world = World::with_settings(&[plain("parser", &[], 2)], 0.0, "");
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    for file in ["feature_list.json", "longhaul.toml", "claude-progress.txt"] {
        let path = world.project.root().join(file);
        let _ = std::fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    world.longhaul.call(&["list"]).exits(0);
    world.longhaul.call(&["pause", &world.root]).exits(0);
    run.terminate();
    run.exits(3);
}

#[test]
fn an_agent_without_write_permission_is_reported() {
    let world =
        World::with_settings(&[plain("parser", &[], 1)], 0.0, "[limits]\nfailed_gates = 2\n");
    world.project.write("agent.sh", "#!/bin/sh\nexit 0\n");
    world.project.commit("An agent without leave");
    world.run().exits(1);
    // While it runs, this stands beside the feature for as long as the second session takes.
    let run = format!("{}/parser/1", world.project_id());
    world
        .longhaul
        .call(&["history", &run])
        .exits(0)
        .says("no file changed so far: may the agent write, and does git ignore its files?");
}
