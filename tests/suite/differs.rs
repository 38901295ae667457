//! A repository that says something else than the log: a person hears of it before more is built on
//! it.

use longhaul_tests::project::plain;

use crate::world::World;

fn done() -> World {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0);
    world.run().exits(0);
    world
}

#[test]
fn features_whose_commits_were_taken_out_of_the_target_are_named() {
    let world = done();
    assert!(!world.run().stderr.contains("which is missing in"));
    world.project.git(&["checkout", "--quiet", "feature_list.json"]);
    world.project.git(&["reset", "--quiet", "--hard", "main~1"]);
    let output = world.run();
    output.says("table: it passed as").says("which is missing in `main`").exits(0);
    assert!(!output.stderr.contains("parser: it passed"), "{}", output.stderr);
    assert_eq!(
        world.project.landed("main"),
        ["table", "parser"],
        "its checks failed without it, so it was done again"
    );
    world.run().exits(0);
    assert_eq!(world.project.landed("main"), ["table", "parser"]);
}

#[test]
fn a_feature_whose_commit_was_rewritten_passes_again_without_a_session() {
    let world = done();
    world.project.git(&["commit", "--quiet", "--amend", "-m", "Another subject"]);
    let sessions = world.project.marks().len();
    world.run().says("table: it passed as").exits(0);
    assert_eq!(world.project.marks().len(), sessions);
    assert!(!world.run().exits(0).stderr.contains("it passed as"));
}

#[test]
fn another_branch_that_is_checked_out_is_not_taken_for_the_target() {
    let world = done();
    world.project.git(&["checkout", "--quiet", "-b", "release"]);
    world
        .run()
        .exits(0)
        .says("finished work goes to `main` as before, not to `release`, which is checked out");
    let settings = world.project.read("longhaul.toml");
    let with = |target: &str| {
        let target = format!("[project]\ntarget = \"{target}\"\n");
        world.project.write("longhaul.toml", &settings.replace("[project]\n", &target));
    };
    with("nosuch");
    world.run().exits(2).says("there is no branch `nosuch`");
    with("main");
    assert!(!world.run().exits(0).stderr.contains("as before"));
}

#[test]
fn a_second_work_tree_of_a_repository_is_no_second_project() {
    let world = done();
    let other = world.project.place().join("other").to_string_lossy().into_owned();
    world.project.git(&["worktree", "add", "--quiet", "-b", "other", &other]);
    world
        .longhaul
        .call(&["run", &other])
        .exits(2)
        .says("are work trees of one repository")
        .says("or make a clone");
    world.longhaul.call(&["doctor", &other]).exits(1).says("are work trees of one repository");
    world.run().exits(0);
}
