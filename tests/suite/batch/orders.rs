//! Orders to a batch reach its projects.

use longhaul_tests::project::{Project, plain};
use longhaul_tests::wait::until;

use super::World;

fn slow() -> Project {
    Project::new(&[plain("parser", &[], 3)], 0.0)
}

#[test]
fn a_cancelled_batch_ends_its_projects_and_begins_no_other() {
    let world = World::new(vec![slow(), slow(), slow()]);
    world.projects.iter().for_each(|project| project.hold("parser"));
    let file = world
        .write("", |number| if number == 2 { "after = [\"p0\"]".into() } else { String::new() });
    let mut run = world.longhaul.begin(&["batch", &file], &world.path("output"));
    for project in &world.projects[..2] {
        until("it is at work", || !project.marks().is_empty());
    }

    let output = world.longhaul.call(&["cancel", "batch/nightly", "-o", "json"]).exits(0).json();
    let told = output["runs"].as_array().cloned().unwrap_or_default();
    assert!(
        told.iter().all(|line| line["result"] == "delivered" && line["waits"] == false),
        "{output:#}"
    );
    let kinds = |parts: usize| {
        let depth = |line: &&serde_json::Value| {
            line["run"].as_str().unwrap_or_default().split('/').count() == parts
        };
        told.iter().filter(depth).count()
    };
    assert_eq!((kinds(1), kinds(2), kinds(3)), (2, 1, 2), "{output:#}");

    run.exits(3);
    let overview = world.longhaul.call(&["status", "--all", "-o", "json"]).exits(0).json();
    let states = overview["projects"].as_array().cloned().unwrap_or_default();
    let states: Vec<_> = states.iter().map(|line| line["status"].clone()).collect();
    assert_eq!(states, ["cancelled", "cancelled"], "{overview:#}");
    assert_eq!(world.sessions(), 2);
    let why = world.longhaul.call(&["why", "batch/nightly"]);
    why.exits(0).says("cancelled").says(&format!("`longhaul batch {file}` continues it"));

    world.projects.iter().for_each(|project| project.let_go("parser"));
    world.batch(&file, &[]).exits(0).says("3 done");
}

#[test]
fn limits_of_a_command_that_joins_apply() {
    let world = World::new(vec![Project::new(&[plain("a", &[], 1), plain("b", &[], 1)], 0.0)]);
    let project = &world.projects[0];
    project.hold("a");
    project.hold("b");
    let root = project.root().to_string_lossy().into_owned();
    let mut run = world.longhaul.begin(&["run", &root, "--max-agents", "1"], &world.path("output"));
    until("one agent is at work", || world.sessions() == 1);
    let mut more =
        world.longhaul.begin(&["run", &root, "--max-agents", "2"], &world.path("joined"));
    until("two agents are at work", || world.sessions() == 2);
    assert!(more.output().contains("at most 2 agents at once"), "{}", more.output());
    project.let_go("a");
    project.let_go("b");
    run.exits(0);
    more.exits(0);
}

/// Waits for the other agent when it is told to end, and says whether that one was told, too.
const WAITS_FOR_THE_OTHER: &str = r#"#!/bin/sh
end() {
    touch "$SHARED/told-$ME"
    for i in $(seq 200); do
        [ -e "$SHARED/told-$OTHER" ] && touch "$SHARED/both-$ME" && exit 1
        sleep 0.02
    done
    exit 1
}
trap end TERM
touch "$SHARED/began-$ME"
while :; do sleep 0.05; done
"#;

#[test]
fn the_agents_of_all_projects_are_terminated_at_the_same_time() {
    for is_batch in [true, false] {
        let world = World::new(vec![slow(), slow()]);
        let shared = world.path("");
        for (number, project) in world.projects.iter().enumerate() {
            let head = format!("SHARED='{}' ME={number} OTHER={}\n", shared.display(), 1 - number);
            let script = WAITS_FOR_THE_OTHER.replacen('\n', &format!("\n{head}"), 1);
            project.write("agent.sh", &script);
            project.commit("An agent that ends slowly");
        }
        let file = world.write("", |_| String::new());
        let roots: Vec<String> =
            world.projects.iter().map(|it| it.root().to_str().unwrap().to_owned()).collect();
        let (first, second) = (roots[0].as_str(), roots[1].as_str());
        let (begin, end) = if is_batch {
            (vec!["batch", &file], vec!["terminate", "batch/nightly"])
        } else {
            (vec!["run", first, second], vec!["terminate", first, second])
        };
        let mut run = world.longhaul.begin(&begin, &world.path("output"));
        for number in 0..2 {
            until("it is at work", || shared.join(format!("began-{number}")).exists());
        }
        world.longhaul.call(&end).exits(0);
        for number in 0..2 {
            let both = shared.join(format!("both-{number}"));
            assert!(both.exists(), "agent {number} ended alone, batch: {is_batch}");
        }
        run.exits(3);
    }
}
