//! The verbs on a log that another process runs: those that change nothing first.

use longhaul_tests::project::plain;

use crate::world::World;

#[test]
fn every_verb_in_use() {
    let world = World::new(&[plain("manual", &[], 1), plain("table", &["manual"], 1)], 0.0);
    world.project.hold("manual");
    let mut run = world.begin();
    world.project.until_at_work("manual");
    world.transcript(
        "in-use/stands",
        &[
            "status .",
            "status . -o json",
            "narrow status .",
            "feature list",
            "feature show manual",
            "feature next -o json",
            "checkpoints .",
            "doctor .",
        ],
    );
    world.transcript(
        "in-use/carry",
        &[
            "replay --all",
            "check",
            "check --repair",
            "export --all -O <place>/all.jsonl",
            "backup -O <place>/all.zst",
            "import <place>/all.jsonl --dry-run",
            "prune --older-than 0s --yes -o json",
            "restore <place>/all.zst",
        ],
    );
    world.transcript(
        "in-use/again",
        &[
            "checkpoint <project>/manual/1 --note half",
            "fork <project>/manual/1 --from start",
            "restart <project>/manual/1",
            "resume manual",
            "rollback . --to nothing",
            "reconcile <project>/manual/1 --happened",
        ],
    );
    world.transcript(
        "in-use/steer",
        &[
            "steer manual tabs",
            r#"signal manual note "short" -o json"#,
            "approve manual",
            "deny manual --why no -o json",
            "pause manual --why lunch",
            "narrow status .",
            "resume manual -o json",
            "feature block table --reason later",
            "feature unblock table",
            "cancel table",
            "pause . --dry-run",
            "terminate manual --why enough",
        ],
    );
    run.exits(3);
}
