//! Sessions of a known agent, on a program that prints its events.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use longhaul_tests::project::{Plan, plain};
use longhaul_tests::wait::until;
use serde_json::json;

use crate::world::World;

const PLANS: [Plan; 2] = [plain("parser", &[], 1), plain("table", &[], 1)];

/// Prints the events of Claude Code: one answer of 5000 tokens, then waits while it is held.
const CLAUDE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
    echo "2.1.330 (Claude Code)"
    exit
fi
cat >/dev/null
echo '{"type":"system","subtype":"init","session_id":"c1","claude_code_version":"2.1.330","model":"claude-x"}'
echo '{"type":"assistant","message":{"id":"m1","model":"claude-x","usage":{"input_tokens":5000,"output_tokens":7},"content":[{"type":"text","text":"I begin."}]}}'
touch at-work
while test -e "$HOLD"; do sleep 0.02; done
echo finished >"$LONGHAUL_FEATURE_ID.txt"
echo '{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","usage":{"input_tokens":5000,"output_tokens":9}}'
"#;

/// A project of which the agent is this program, held at work.
fn held(settings: &str) -> World {
    let world = World::new(&PLANS, 0.0);
    let project = &world.project;
    project.write("claude.sh", CLAUDE);
    fs::set_permissions(project.root().join("claude.sh"), fs::Permissions::from_mode(0o755))
        .unwrap();
    let hold = project.place().join("held");
    fs::write(&hold, "").unwrap();
    project.write(
        "longhaul.toml",
        &format!(
            "[agent]\ndriver = \"claude\"\ncommand = [\"./claude.sh\"]\nsandbox = \"off\"\n\
             env = {{ ANTHROPIC_API_KEY = \"dummy\", HOLD = '{}' }}\n\
             [project]\nparallel = 1\n{settings}",
            hold.display()
        ),
    );
    project.commit("A known agent");
    world
}

fn is_at_work(world: &World, feature: &str) -> bool {
    let trees = fs::read_dir(world.project.home().join("worktrees")).into_iter().flatten();
    trees.flatten().any(|tree| tree.path().join(feature).join("at-work").exists())
}

#[test]
fn a_cancelled_session_counts_towards_the_budget() {
    let world = held("[budget]\ntokens = 4000\n");
    let mut run = world.begin();
    until("the agent works", || is_at_work(&world, "parser"));
    until("its answer is recorded", || {
        world.json("session show parser")["tokens"]["input"] == 5000
    });
    world.call("cancel parser --yes").exits(0);
    run.exits(3);
    assert!(
        run.said().contains("the budget of the project, 4000 tokens, is spent"),
        "{}",
        run.said()
    );
    assert!(!is_at_work(&world, "table"));
    let total = world.json("usage")["total"].clone();
    assert_eq!((&total["turns"], &total["tokens"]["input"]), (&json!(1), &json!(5000)));
    let ledger = world.json("usage --by model");
    assert_eq!(ledger["rows"][0]["name"], "claude-x", "{ledger:#}");
    world.call("history <project>/parser/1/1").exits(0).says("read use");
    world.call("replay --all").exits(0).says("0 diverged");
    assert_eq!(world.longhaul.left_over(), Vec::<String>::new());
}
