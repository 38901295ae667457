//! The user's checkout follows the target branch, whatever else git does in it.

use longhaul_tests::project::plain;

use crate::world::World;

fn two_features() -> World {
    World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0)
}

fn is_followed(world: &World) {
    let list = world.project.git(&["show", "main:feature_list.json"]);
    assert_eq!(list.matches("\"passes\": true").count(), 2);
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
    assert!(!world.call("doctor .").stdout.contains("the filter"));
    world.project.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    world.project.git(&["config", "filter.upper.smudge", "cat"]);
    world.call("doctor .").says("checkout").says("the filter `upper` for notes.txt");
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

/// Work that waits on `longhaul/next` because of the user's edit, which is then committed.
fn committed_over_waiting_work(check: &str) -> World {
    let world = two_features();
    let list = world.project.read("feature_list.json");
    assert!(list.contains("\"checks\""));
    let mut list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let entries = if list.is_array() { &mut list } else { &mut list["features"] };
    for entry in entries.as_array_mut().unwrap() {
        entry["checks"].as_array_mut().unwrap().push(check.into());
    }
    world.project.write("feature_list.json", &list.to_string());
    world.project.write("notes.txt", "NOTES\n");
    world.project.commit("Notes");
    world.project.write("notes.txt", "edited\n");
    // Git would move the branch beside this edit; Longhaul does not.
    world.run().exits(3).says("uncommitted changes in notes.txt");
    world.project.git(&["commit", "--quiet", "--message", "Edit", "notes.txt"]);
    world
}

#[test]
fn work_that_waits_lands_after_the_user_has_committed() {
    let world = committed_over_waiting_work("true");
    let sessions = world.project.marks().len();
    world.run().exits(0);
    is_followed(&world);
    assert_eq!(world.project.read("notes.txt"), "edited\n");
    assert_eq!(world.project.git(&["status", "--porcelain"]), "");
    assert_eq!(world.project.marks().len(), sessions, "no further session was paid");
    assert_eq!(world.project.git(&["branch", "--list", "longhaul/*"]), "");
}

#[test]
fn a_merge_with_a_commit_of_the_user_lands_only_if_all_waiting_work_passes_on_it() {
    let world = committed_over_waiting_work("! grep -q edited notes.txt");
    world.run().exits(1);
    for file in ["parser.txt", "table.txt"] {
        assert!(world.project.git(&["ls-tree", "main", file]).is_empty(), "{file} is not on main");
    }
    world.project.write("notes.txt", "again\n");
    world.project.git(&["commit", "--quiet", "--message", "Mend", "notes.txt"]);
    world.call("resume --filter status=blocked --yes");
    world.run().exits(0);
    is_followed(&world);
}
