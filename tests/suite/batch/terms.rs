//! On which terms a batch runs its projects: labels, limits, how many at once.

use chrono::{DateTime, Utc};
use longhaul_tests::project::{Project, plain};

use super::{World, tiny};

/// When the sessions of projects began and ended, in order, by what their agents wrote down.
fn sessions(projects: &[Project]) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let mut marks: Vec<_> =
        projects.iter().flat_map(Project::marks).map(|mark| (mark.began, mark.last)).collect();
    marks.sort();
    marks
}

fn overlap(sessions: &[(DateTime<Utc>, DateTime<Utc>)]) -> bool {
    sessions.windows(2).any(|two| two[0].1 > two[1].0)
}

#[test]
fn labels_reach_the_runs_of_a_project_that_has_run_before() {
    let world = World::new(vec![tiny()]);
    let root = world.projects[0].root().to_string_lossy().into_owned();
    world.longhaul.call(&["run", &root]).exits(0);
    let check = "grep -q finished table.txt";
    world
        .longhaul
        .call(&["feature", "add", "table", "A table", "--check", check, "--dir", &root])
        .exits(0);
    world.projects[0].commit("Ask for a table");
    let file = world.write("", |_| "labels = { team = \"web\" }".into());
    world.batch(&file, &[]).exits(0);
    let with = |label: &str| {
        let output =
            world.longhaul.call(&["list", "--label", label, "--kind", "feature", "-o", "ids"]);
        output
            .exits(0)
            .stdout
            .lines()
            .map(|run| run.split('/').nth(1).unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (with("team=web"), with("batch=nightly")),
        (vec!["table".to_owned()], vec!["table".to_owned()])
    );
}

#[test]
fn a_limit_for_a_label_holds_across_projects() {
    let two = || Project::new(&[plain("a", &[], 2), plain("b", &[], 2)], 0.2);
    let world = World::new(vec![two(), two(), two()]);
    let team = |number| {
        if number == 2 { String::new() } else { "labels = { team = \"web\" }\nparallel = 2".into() }
    };
    let file = world.write("[limits]\n\"team=web\" = 1", team);
    world.batch(&file, &["--max-agents", "4", "--progress", "none"]).exits(0).says("3 done");
    let limited = sessions(&world.projects[..2]);
    assert!(limited.len() == 4 && !overlap(&limited), "{limited:?}");
    let all = sessions(&world.projects);
    assert!(overlap(&all), "others work beside them: {all:?}");
}

#[test]
fn only_so_many_projects_are_worked_on_at_once() {
    let world = World::new((0..3).map(|_| Project::new(&[plain("a", &[], 2)], 0.1)).collect());
    let file = world.write("at_once = 1", |_| String::new());
    world.batch(&file, &["--progress", "none"]).exits(0).says("3 done");
    let all = sessions(&world.projects);
    assert!(all.len() == 3 && !overlap(&all), "{all:?}");
}
