//! The user's checkout follows the target branch, whatever else git does in it.

use longhaul_tests::project::plain;

use crate::world::World;

fn two_features() -> World {
    World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0)
}

fn is_followed(world: &World) {
    assert_eq!(world.project.landed("main").len(), 2);
    for file in ["parser.txt", "table.txt"] {
        assert!(world.project.read(file).contains("finished"), "{file}");
    }
}

#[test]
fn a_tracked_report_of_longhaul_blocks_no_landing() {
    let world = two_features();
    std::fs::create_dir(world.project.root().join(".longhaul")).unwrap();
    world.project.write(".longhaul/progress.md", "mine\n");
    world.project.git(&["add", "--force", ".longhaul/progress.md"]);
    world.project.commit("Track the report");
    world.run().exits(0);
    is_followed(&world);
    assert!(world.project.read(".longhaul/progress.md").contains("parser"));
    assert_eq!(world.project.git(&["show", "main:.longhaul/progress.md"]).trim(), "mine");
    let status = world.project.git(&["status", "--porcelain"]);
    assert_eq!(status.trim(), "M .longhaul/progress.md");

    world.project.write_list(&[plain("shell", &[], 1)]);
    world.project.git(&["commit", "--quiet", "--all", "--message", "More, and the report"]);
    world.run().exits(0);
    assert!(world.project.read("shell.txt").contains("finished"));
}

#[test]
fn a_symbolic_target_moves_the_checkout_of_the_branch_behind_it() {
    for (on, target) in [("main", "master"), ("master", "main")] {
        let world = two_features();
        let settings = world.project.read("longhaul.toml");
        let settings = settings.replace("[project]", &format!("[project]\ntarget = \"{target}\""));
        world.project.write("longhaul.toml", &settings);
        world.project.commit("Set the target");
        world.project.git(&["symbolic-ref", "refs/heads/master", "refs/heads/main"]);
        world.project.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{on}")]);
        world.run().exits(0);
        is_followed(&world);
        assert_eq!(world.project.git(&["status", "--porcelain"]), "", "{on}");
        assert_eq!(world.project.read(".git/HEAD"), format!("ref: refs/heads/{on}\n"));
    }
}

#[test]
fn a_filter_is_warned_of_and_its_changes_block_no_landing() {
    let world = two_features();
    world.project.write(".gitattributes", "*.txt filter=upper\n");
    world.project.write("notes.txt", "NOTES\n");
    world.project.commit("Filter");
    assert!(!world.call("doctor .").out.contains("git filters"));
    world.project.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    world.project.git(&["config", "filter.upper.smudge", "cat"]);
    world.call("doctor .").says("git filters").says("the filter `upper` for notes.txt");
    world.run().exits(0).says("the filter `upper` for notes.txt");
    is_followed(&world);

    // A file of another time is compared again by git, which then reports the filter's change.
    world.project.write("table.txt", &world.project.read("table.txt"));
    assert!(world.project.git(&["status", "--porcelain"]).contains(" M table.txt"));
    world.project.write("parser.txt", "finished, and edited\n");
    world.project.write_list(&[plain("shell", &[], 1)]);
    world.project.git(&["commit", "--quiet", "--message", "More", "feature_list.json"]);
    world.run().exits(3).says("uncommitted changes in parser.txt;");
    assert_eq!(world.project.read("parser.txt"), "finished, and edited\n");
}
