//! Taking back and trying again: forks at every step, notes, restarts, on a log at rest and on one
//! that is run.

mod checkpoint;
mod cuts;
mod killed;
mod rollback;
mod world;

use std::collections::BTreeSet;

use longhaul_engine::{EventKind, RunId};
use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;
use longhaul_workflows::feature::prefix;
use serde_json::json;

use world::World;

/// One after another, with a gate that fails, and one beside them.
const PLANS: [Plan; 3] = [
    Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Repairs },
    Plan { id: "table", needs: &[], steps: 2, habit: Habit::Fills },
    Plan { id: "shell", needs: &["parser"], steps: 1, habit: Habit::Plain },
];

/// The positions of a run at which forks differ.
fn steps(world: &World, run: &str) -> Vec<u64> {
    let histories = world.histories();
    let events = &histories[&RunId::new(run).unwrap()];
    let cuts: BTreeSet<u64> =
        events.iter().map(|event| prefix(events, event.position).position).collect();
    cuts.into_iter().collect()
}

#[test]
fn a_fork_at_every_step_comes_to_the_same_content() {
    let world = World::new(&PLANS, 0.0, "");
    world.run().exits(0);
    let content = world.project.content("main");
    let steps = PLANS.map(|plan| (plan.id, steps(&world, &world.id(plan.id, 1))));
    let rounds = steps.iter().map(|(_, steps)| steps.len()).max().unwrap();
    assert!(rounds > 10, "{steps:?}");
    for round in 0..rounds {
        for (feature, steps) in &steps {
            let Some(step) = steps.get(round) else { continue };
            let output = world.call(&[
                "fork",
                &world.id(feature, 1),
                "--from",
                &step.to_string(),
                "--reason",
                "test",
            ]);
            let from =
                if *step == 0 { "from the beginning of".into() } else { format!("@{step} ") };
            output.exits(0).says(&from);
        }
        world.run().exits(0);
        assert_eq!(world.project.content("main"), content, "round {round}");
        for (feature, _) in &steps {
            assert_eq!(world.line(feature)["passes"], true, "{feature} in round {round}");
        }
    }
    let histories = world.histories();
    let last = &histories[&RunId::new(world.id("shell", 2)).unwrap()];
    let EventKind::RunStarted { labels, .. } = &last[0].kind else { panic!("{:?}", last[0]) };
    assert_eq!(labels["forked_from"], format!("{}@0", world.id("shell", 1)));
    let mut landed = world.project.landed("main");
    landed.sort_unstable();
    assert_eq!(landed, ["parser", "shell", "table"], "nothing landed twice");
}

#[test]
fn a_fork_at_rest_is_shown_as_pending() {
    let plans =
        [plain("parser", &[], 1), plain("table", &["parser"], 1), plain("shell", &["table"], 1)];
    let world = World::new(&plans, 0.0, "");
    let list = world.project.read("feature_list.json");
    world.project.write(
        "feature_list.json",
        &list.replacen('{', "{ \"meta\": { \"lastModified\": \"2026-01-01T00:00:00Z\" },", 1),
    );
    world.project.commit("Say when");
    world.run().exits(0);
    assert_eq!(world.project.git(&["status", "--porcelain"]), "");
    let list = world.project.read("feature_list.json");
    world.call(&["fork", &world.id("parser", 1), "--from", "start"]).exits(0);
    let line = world.line("parser");
    assert_eq!(
        (&line["status"], &line["pending"][0]["what"]),
        (&json!("passed"), &json!("fork")),
        "{line:#}"
    );
    world.call(&["status", &world.root]).says("3 of 3 features passed").says("pending: fork");
    world.call(&["why", "parser", "--dir", &world.root]).says("Pending: fork");
    world.run().exits(0).says("3 of 3 features pass");
    assert_eq!(
        world.project.git(&["status", "--porcelain"]),
        "",
        "nothing came of it, and nothing is left to commit"
    );
    assert_eq!(world.project.read("feature_list.json"), list);
}

#[test]
fn a_blocked_feature_passes_with_a_note() {
    let plans = [
        Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Obeys },
        plain("table", &["parser"], 1),
    ];
    let world = World::new(&plans, 0.0, "[limits]\nfailed_gates = 2\n");
    world.run().exits(1);
    let (first, second) = (world.id("parser", 1), world.id("parser", 2));
    world
        .call(&["fork", &first, "--from", "session:1", "--note", "finish it", "--reason", "it can"])
        .exits(0)
        .says(&second);
    assert_eq!(world.line("parser")["pending"][0]["why"], "it can");
    world.run().exits(0).says("2 of 2 features pass");
    assert_eq!((world.sessions(&first), world.sessions(&second)), (2, 1));
    assert_eq!(world.line("parser")["sessions"], 3, "a session that was copied counts once");
    let histories = world.histories();
    let project = &histories[&RunId::new(first.split('/').next().unwrap()).unwrap()];
    let heard =
        project.iter().any(|event| format!("{:?}", event.kind).contains(r#""why":"it can""#));
    assert!(heard, "who and why is in the history of the project");
}

#[test]
fn a_note_is_read_although_the_limit_was_reached() {
    let plans = [Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Obeys }];
    let world = World::new(&plans, 0.0, "[limits]\nfailed_gates = 2\n");
    world.run().exits(1);
    let last = ["fork", &world.id("parser", 1), "--from", "session:2"];
    world.call(&last).exits(0);
    world.run().exits(1).says("the gates failed 2 times");
    assert_eq!(world.sessions(&world.id("parser", 2)), 0, "there is no new note");
    world.call(&[&last[..], &["--note", "finish it"]].concat()).exits(0);
    world.run().exits(0).says("1 of 1 features pass");
    assert_eq!(world.sessions(&world.id("parser", 3)), 1);
    world.histories();
}

#[test]
fn settings_can_be_changed_where_they_were_not_used_yet() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Repairs };
    let world = World::new(&[never], 0.0, "[limits]\nfailed_gates = 1\n");
    world.run().exits(1);
    let run = world.id("parser", 1);
    let fork = |from: &str, set: &str| world.call(&["fork", &run, "--from", from, "--set", set]);
    fork("session:1", "feature.description=Other")
        .exits(2)
        .says("was used before position")
        .says("feature.description");
    fork("session:1", "settings.limits.nothing=1").exits(2).says("nothing");
    fork("session:1", "nonsense=1").exits(2).says("begins with `settings.` or `feature.`");
    fork("session:1", "nonsense").exits(2).says("KEY=VALUE");
    assert_eq!(world.histories().len(), 3, "nothing was written");
    fork("session:1", "settings.limits.failed_gates=3").exits(0);
    world.run().exits(0);
    assert_eq!(world.sessions(&world.id("parser", 2)), 1);
}

#[test]
fn features_that_depend_on_an_invalidated_one_are_checked_again() {
    let plans =
        [plain("parser", &[], 1), plain("table", &["parser"], 1), plain("shell", &["table"], 1)];
    let world = World::new(&plans, 0.0, "");
    world.run().exits(0);
    let mut run = world.begin(&["run", &world.root]);
    run.exits(0);
    world
        .call(&["restart", &world.id("parser", 1), "--reason", "once more"])
        .exits(0)
        .says("in a new work tree");
    let kept =
        world.project.git(&["for-each-ref", "--format=%(refname)", "refs/longhaul/features"]);
    assert!(kept.contains(&world.id("parser", 1)), "{kept}");
    world.project.write("plan/parser", "steps=2\n");
    world.project.commit("More to do");
    world.project.hold("parser");
    let mut run = world.begin(&["run", &world.root]);
    world.project.until_at_work("parser");
    let line = world.line("shell");
    assert_eq!(
        (&line["invalidated"], &line["passes"]),
        (&json!("parser"), &json!(false)),
        "{line:#}"
    );
    world.call(&["status", &world.root]).exits(0).says("invalidated: parser was taken back");
    world
        .call(&["fork", &world.id("parser", 1), "--from", "start"])
        .exits(3)
        .says("longhaul cancel");
    world.call(&["resume", &world.id("parser", 2)]).exits(0).says("nothing to resume");
    world.project.let_go("parser");
    run.exits(0);
    assert_eq!(world.line("shell")["invalidated"], json!(null));
    assert_eq!(world.sessions(&world.id("shell", 2)), 0, "its gates were asked, and no agent");
    world.histories();
}

#[test]
fn a_running_longhaul_forks_for_others() {
    let never = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Never };
    let obeys = Plan { id: "shell", needs: &[], steps: 1, habit: Habit::Obeys };
    let world =
        World::new(&[never, obeys, plain("table", &[], 1)], 0.0, "[limits]\nfailed_gates = 1\n");
    world.project.hold("table");
    let mut run = world.begin(&["run", &world.root]);
    until("it is blocked", || {
        world.line("shell")["status"] == "blocked" && world.line("parser")["status"] == "blocked"
    });
    let first = world.id("shell", 1);
    world.call(&["fork", &first, "--from", "start", "--note", "finish it"]).exits(0);
    until("it passes", || world.line("shell")["passes"] == true);
    world.call(&["resume", &world.id("shell", 2)]).exits(2).says("passes");
    world.call(&["resume", &first]).exits(2).says("is superseded by");
    world
        .call(&["resume", &world.id("parser", 1), "--reason", "again"])
        .exits(0)
        .says("/parser/2  resumed");
    until("it is tried again", || world.line("parser")["run"] == world.id("parser", 2));
    world.call(&["checkpoints", &first]).exits(0).says("session:1").says("session 1, done");
    world.project.let_go("table");
    run.exits(1);
    world.histories();
}

#[test]
fn what_cannot_be_taken_back_says_why() {
    let world = World::new(&[plain("parser", &[], 3)], 0.0, "");
    world.project.hold("parser");
    world
        .call(&["fork", "nobody/parser/1", "--from", "start"])
        .exits(2)
        .says("nothing has run yet");
    let mut run = world.begin(&["run", &world.root]);
    world.project.until_at_work("parser");
    let id = world.id("parser", 1);
    world.call(&["fork", &id, "--from", "start"]).exits(3).says(&format!("longhaul cancel {id}"));
    world.call(&["restart", &id]).exits(3).says("end it first");
    world.call(&["resume", &id]).exits(0).says("nothing to resume");
    run.terminate();
    run.exits(3);
    world.project.let_go("parser");
    world.call(&["cancel", &id]).exits(0);
    world.call(&["restart", &id]).exits(3).says("is cancelled and ends");
    world.run().exits(3);

    let project = id.split('/').next().unwrap();
    world.call(&["fork", project, "--from", "start"]).exits(2).says("is a project");
    world.call(&["fork", "nobody/parser/1", "--from", "start"]).exits(2).says("nobody/parser/1");
    world.call(&["fork", &id, "--from", "nowhere"]).exits(2).says("session:N");
    world.call(&["fork", &id, "--from", "session:7"]).exits(2).says("longhaul checkpoints");
    world.call(&["fork", &id, "--from", "999"]).exits(2).says("ends at position");
    world.call(&["checkpoints", "nobody"]).exits(2).says("nobody");
    world
        .call(&["resume", &format!("{project}/parser")])
        .exits(0)
        .says("/parser/2  will be resumed");
    world.run().exits(0);
}
