//! The verbs on a log at rest: one project, in which a feature passes, one is blocked, one waits
//! for it and one for a person.

use longhaul_tests::project::{Habit, Plan, plain};

use crate::world::World;

const SETTINGS: &str = "[project]\nparallel = 1\n[limits]\nfailed_gates = 1\n";

#[test]
fn every_verb_at_rest() {
    let parser = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let plans =
        [parser, plain("table", &["parser"], 1), plain("manual", &[], 1), plain("shell", &[], 1)];
    let world = World::with_settings(&plans, 0.0, SETTINGS);
    let list = world.project.read("feature_list.json");
    let asks = list.replacen("\"id\": \"shell\"", "\"approval\": true, \"id\": \"shell\"", 1);
    world.project.write("feature_list.json", &asks);
    world.project.commit("Ask for approval");
    never_run(&world);
    world.run().exits(3);

    stands(&world);
    features(&world);
    carried(&world);
    steered(&world);
    taken_back(&world);
    changed(&world);
}

/// Before anything has run.
fn never_run(world: &World) {
    world.transcript(
        "run/never",
        &[
            "status .",
            "feature next .",
            "feature block table",
            "pause .",
            "checkpoints .",
            "fork <project>/parser/1 --from start",
            "reconcile <project>/parser/1 --happened",
            "replay --all",
            "export --all",
            "backup",
            "check",
            "prune --older-than 30d",
            "run <place>",
        ],
    );
}

fn stands(world: &World) {
    let run = ["run .", "run . -o json", "narrow run .", "run <place>", "run . <place>"];
    world.transcript("run/run", &run);
    let status = [
        "status .",
        "status . -o json",
        "narrow status .",
        "status <place>",
        "status --all",
        "status --all -o json",
        "narrow status --all",
    ];
    world.transcript("run/status", &status);
    let doctor = ["doctor .", "doctor . -o json"];
    world.transcript("run/doctor", &doctor);
}

fn features(world: &World) {
    let list =
        ["feature list", "feature list -o json", "narrow feature list", "feature list <place>"];
    world.transcript("feature/list", &list);
    world.transcript(
        "feature/show",
        &[
            "feature show parser",
            "feature show shell -o json",
            "narrow feature show parser",
            "feature show nothing",
        ],
    );
    world.transcript(
        "feature/next",
        &["feature next", "feature next -o json", "narrow feature next"],
    );
    world.transcript(
        "feature/export",
        &[
            "feature export --to ada",
            "feature export --to ada -O <place>/ada.json",
            "feature export --to junit",
        ],
    );
    let beads = include_str!("../../../backlog/tests/backlogs/beads.jsonl");
    std::fs::write(world.project.place().join("beads.jsonl"), beads).unwrap();
    world.transcript(
        "feature/import",
        &[
            "feature import <place>/beads.jsonl --dry-run",
            "feature import <place>/beads.jsonl --dry-run -o json",
            "feature import <place>/nothing.json",
            "feature import <place>/beads.jsonl --as ralph",
        ],
    );
    // Where it is broken depends on how long a path is.
    for command in ["doctor .", "feature import <place>/beads.jsonl --dry-run"] {
        world.narrow(command).exits(0);
    }
}

fn carried(world: &World) {
    world.transcript(
        "carry/replay",
        &[
            "replay --all",
            "replay --all -o json",
            "narrow replay --all",
            "replay nobody/1",
            "replay <place>/lost.jsonl",
        ],
    );
    world.transcript("carry/check", &["check", "check -o json", "narrow check", "check --repair"]);
    world.transcript(
        "carry/export",
        &[
            "export <project>/manual/1 -O <place>/one.jsonl",
            "export nobody/1",
            "backup -O <place>/all.zst",
            "backup -O <place>/all.zst",
            "backup -O <place>/all.zst --force -o json",
            "export --all -o json",
            "backup -O <place>",
        ],
    );
    world.transcript(
        "carry/import",
        &[
            "import <place>/one.jsonl --data-dir <place>/other --dry-run",
            "import <place>/one.jsonl --data-dir <place>/other",
            "import <place>/all.zst -o json",
            "narrow import <place>/one.jsonl",
            "import <place>/nothing.jsonl",
            "import <place>/beads.jsonl",
        ],
    );
    world.transcript(
        "carry/restore",
        &[
            "restore <place>/all.zst --data-dir <place>/restored",
            "restore <place>/all.zst --data-dir <place>/as-json -o json",
            "restore <place>/all.zst",
            "restore <place>/nothing.zst --data-dir <place>/again",
            "restore <place>/beads.jsonl --data-dir <place>/again",
        ],
    );
    world.transcript(
        "carry/prune",
        &[
            "prune --older-than 0s --dry-run",
            "prune --older-than 0s --dry-run -o json",
            "narrow prune --older-than 0s --dry-run",
            "prune --older-than 30d",
            "prune --older-than soon",
            "prune --older-than 0s --yes --data-dir <place>/restored -o json",
        ],
    );
}

fn steered(world: &World) {
    world.transcript(
        "steer/pause",
        &[
            "pause . --why lunch",
            "pause . -o json",
            "narrow pause .",
            "pause nobody/1",
            "pause manual",
            "status .",
        ],
    );
    world.transcript(
        "steer/resume",
        &["resume . -o json", "resume .", "narrow resume .", "resume nobody/1"],
    );
    world.transcript(
        "steer/signal",
        &[
            r#"signal shell note "short" --dry-run"#,
            r#"signal shell note "short" -o json"#,
            "signal shell note tabs",
            "signal nobody/1 note",
        ],
    );
    world.transcript(
        "steer/steer",
        &[
            "steer shell tabs",
            "narrow steer shell spaces",
            "steer shell tabs -o json",
            "steer manual tabs",
            "steer tabs",
        ],
    );
    world.transcript(
        "steer/deny",
        &[
            "deny shell",
            "deny shell --why tabs --dry-run",
            "deny shell --why tabs -o json --dry-run",
            "deny table --why no",
        ],
    );
    world.transcript(
        "steer/approve",
        &[
            "approve --filter feature=nothing",
            "approve shell --dry-run -o json",
            "narrow approve shell",
            "approve shell nothing -o json",
            "approve shell",
        ],
    );
    world.transcript(
        "steer/cancel",
        &[
            "cancel --filter project=<project> --filter status=waiting",
            "cancel shell --dry-run",
            "narrow cancel shell --dry-run",
            "cancel manual -o json",
            "cancel nobody/1",
        ],
    );
    world.transcript(
        "steer/terminate",
        &[
            "terminate shell --dry-run -o json",
            "terminate shell",
            "narrow terminate shell",
            "terminate manual",
        ],
    );
    world.transcript(
        "steer/reconcile",
        &[
            "reconcile <project>/shell/1 --happened",
            "reconcile nobody/1 --happened",
            "reconcile <project>/shell/1",
        ],
    );
}

fn taken_back(world: &World) {
    world.transcript(
        "again/checkpoints",
        &[
            "checkpoints .",
            "checkpoints . -o json",
            "narrow checkpoints .",
            "checkpoints nobody/1",
            "checkpoints <place>",
        ],
    );
    world.transcript(
        "again/fork",
        &[
            "fork <project>/manual/1 --from session:1 --why again",
            "fork <project>/manual/1 --from start",
            "fork --filter feature=manual --filter status=passed --from last --dry-run -o json",
            "fork <project>/manual/9 --from start",
            "fork <project>/parser/1 --from session:9",
            "fork <project>/parser/1 --from nowhere",
            "fork <project> --from start",
        ],
    );
    world.transcript(
        "again/checkpoint",
        &[
            "checkpoint <project>/parser/1 --note half",
            "checkpoint <project>/parser/1 --by ann -o json",
            "checkpoint <project>/manual/1",
            "checkpoint nobody/1",
        ],
    );
    world.transcript(
        "again/restart",
        &[
            "restart <project>/parser/1 --by ann -o json",
            "restart <project>/shell/1",
            "restart nobody/1",
        ],
    );
    world.transcript(
        "again/rollback",
        &[
            "rollback . --to nothing",
            "rollback . --to manual --dry-run",
            "rollback --filter project=<project> --to manual --dry-run -o json",
            "rollback . --to manual --yes --why wrong --by ann -o json",
            "rollback <place> --to manual",
        ],
    );
}

/// What changes the list and the settings, last.
fn changed(world: &World) {
    world.transcript(
        "feature/add",
        &[
            "feature add lexer Lexer --check true --depends-on parser",
            "feature add lexer Lexer",
            "feature add reader Reader --depends-on nothing",
            "feature import <place>/beads.jsonl",
            "feature import <place>/beads.jsonl -o json",
        ],
    );
    world.transcript(
        "feature/block",
        &[
            "feature block table --reason later",
            "feature block nothing",
            "feature unblock table",
            "feature unblock manual",
            "feature unblock nothing",
            "feature unblock table -o json",
        ],
    );
    world.project.write("longhaul.toml", "[agent\n");
    world.transcript(
        "run/broken-settings",
        &["run .", "run . -o json", "status .", "doctor .", "feature next"],
    );
    world.transcript(
        "run/init",
        &[
            "init <place>/fresh",
            "init <place>/fresh",
            "init <place>/bare --no-commit --agent my-agent -o json",
            "init <place>/beads.jsonl",
        ],
    );
}
