//! What a project needs and git does not keep: it is there wherever agents and gates work.

use std::fs;
use std::path::PathBuf;

use longhaul_tests::project::{Habit, Plan, plain};
use longhaul_tests::wait::until;

use crate::world::World;

/// A project whose checks need what `init.sh` makes: a file that git ignores.
fn with_dependencies(plans: &[Plan], settings: &str) -> World {
    let world = World::with_settings(plans, 0.0, settings);
    world.project.write(".gitignore", "deps\n");
    world.project.write(
        "init.sh",
        "#!/bin/sh\nmkdir -p deps\nwhile read -r name; do touch \"deps/$name\"; done <needs\n",
    );
    world.project.write("needs", "basic\n");
    let list = world.project.read("feature_list.json");
    let needing = |check: &str| format!("xargs -I@ test -e deps/@ <needs && {check}");
    let check = "grep -q finished";
    world.project.write("feature_list.json", &list.replace(check, &needing(check)));
    world.project.commit("Need something");
    world
}

fn tree_of(world: &World, feature: &str) -> PathBuf {
    world.project.home().join("worktrees").join(world.project_id()).join(feature)
}

#[test]
fn the_merged_result_is_set_up_before_its_gates() {
    let world = with_dependencies(
        &[plain("parser", &[], 1), plain("table", &[], 1)],
        "[merge]\nrepeat_gates = true\n",
    );
    // The agent makes its work need more, and sees to that where it works.
    world
        .project
        .write("plan/table", "grep -q more needs || { echo more >>needs; touch deps/more; }\n");
    world.project.commit("A feature that needs more");
    world.run().exits(0);
    let mut landed = world.project.landed("main");
    landed.sort_unstable();
    assert_eq!(landed, ["parser", "table"]);
    assert_eq!(world.project.marks().len(), 2, "nothing had to be mended");
    let history = world.call("history table").exits(0).stdout.clone();
    assert_eq!(history.matches("set-up: `./init.sh`").count(), 1, "{history}");
    assert_eq!(history.matches("set-up on the merged result: `./init.sh`").count(), 1, "{history}");
}

#[test]
fn a_missing_dependency_of_the_merged_tree_is_reported_to_the_agent() {
    let world =
        with_dependencies(&[Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Plain }], "");
    // It is there where the agent works, and nowhere else.
    let plan = "if [ \"$LONGHAUL_REASON\" = gates_failed ]; then cp \"$LONGHAUL_PROMPT_FILE\" ../../../../prompt; \
                sed -i /lost/d needs; else echo lost >>needs; touch deps/lost; fi\n";
    world.project.write(
        "plan/parser",
        &plan
            .replace("../../../../prompt", &world.project.place().join("prompt").to_string_lossy()),
    );
    let init = world.project.read("init.sh");
    world.project.write(
        "init.sh",
        &init.replace("touch", "test $name != lost || { echo no $name; exit 1; }; touch"),
    );
    world.project.commit("A feature that needs what does not exist");
    world.run().exits(0);
    let prompt = fs::read_to_string(world.project.place().join("prompt")).unwrap();
    assert!(prompt.contains("The set-up script failed") && prompt.contains("no lost"), "{prompt}");
    assert_eq!(world.project.marks().len(), 2);
}

/// Where Longhaul's records of a work tree are.
fn records_of(world: &World, feature: &str) -> std::path::PathBuf {
    world.longhaul.home().join("git").join(world.project_id()).join("trees").join(feature)
}

#[test]
fn a_work_tree_that_is_made_again_is_set_up() {
    let obeys = Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Obeys };
    let world = with_dependencies(&[obeys], "[limits]\nfailed_gates = 1\n");
    world.run().exits(1);
    let tree = tree_of(&world, "parser");
    fs::remove_dir_all(&tree).unwrap();
    let run = format!("{}/parser/1", world.project_id());
    let fork = |from: &str| {
        let set = "settings.limits.failed_gates=2";
        let note = ["fork", &run, "--from", from, "--note", "finish it", "--set", set];
        world.longhaul.call(&note).exits(0);
        world.run().exits(0);
    };
    // A process died while it made that one again.
    fs::create_dir_all(&tree).unwrap();
    fs::write(records_of(&world, "parser").join("in-use"), "another process").unwrap();
    fork("session:1");
    assert!(!tree_of(&world, "parser").exists(), "it has landed");
    // And of a run that has landed, whose work tree is closed.
    let again = format!("{}/parser/2", world.project_id());
    world.longhaul.call(&["fork", &again, "--from", "session:2"]).exits(0);
    world.run().exits(0);
    assert_eq!(
        world.project.marks().len(),
        2,
        "its gates found what they need, and no agent was asked again"
    );
}

#[test]
fn what_a_rejected_candidate_installed_is_not_there_for_the_next() {
    let world = with_dependencies(
        &[plain("parser", &[], 1), plain("table", &[], 1)],
        "[project]\nparallel = 1\n[limits]\nfailed_gates = 1\n[merge]\nrepeat_gates = true\n",
    );
    // The first needs more and says so, but is rejected where it is merged; the second needs that
    // too, and does not say so.
    world.project.write("plan/parser", "echo extra >>needs; touch deps/extra\n");
    world.project.write("plan/table", "touch deps/extra\n");
    let list = world.project.read("feature_list.json");
    let list = list.replace("grep -q finished parser.txt", "test $(basename $PWD) != .integrate");
    world.project.write(
        "feature_list.json",
        &list.replace("grep -q finished table.txt", "test -e deps/extra"),
    );
    world.project.commit("Features that need more");
    world.run().exits(1);
    assert!(world.project.landed("main").is_empty(), "{:?}", world.project.landed("main"));
}

#[test]
fn a_set_up_that_was_cut_is_not_built_upon() {
    let world = with_dependencies(&[plain("parser", &[], 1)], "");
    // As set-ups are often written: what is there is taken for whole.
    let place = world.project.place();
    let wait =
        format!("touch '{0}/begun'; while [ -e '{0}/hold' ]; do sleep 0.05; done", place.display());
    world.project.write(
        "init.sh",
        &format!(
            "#!/bin/sh\nset -e\ntest ! -d deps || exit 0\nmkdir deps\n{wait}\ntouch deps/basic\n"
        ),
    );
    world.project.commit("A set-up that takes its time");
    fs::write(place.join("hold"), "").unwrap();
    let mut run = world.begin();
    until("the set-up has begun", || place.join("begun").exists());
    assert!(run.kill());
    until("it is gone", || world.longhaul.left_over().is_empty());
    fs::remove_file(place.join("hold")).unwrap();
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 1, "nothing had to be mended");
}

/// A project whose check builds an ignored product. The first session removes its source, which a
/// later one puts back.
fn with_product(settings: &str) -> World {
    let world = World::with_settings(&[plain("parser", &[], 1)], 0.0, settings);
    world.project.write(".gitignore", "product\n");
    world.project.write("source", "source\n");
    let list = world.project.read("feature_list.json");
    let building = "test -e source && cp source product; test -e product && grep -q finished";
    world.project.write("feature_list.json", &list.replace("grep -q finished", building));
    let plan = "if [ \"$LONGHAUL_SESSION\" = 1 ]; then rm -f source; else echo again >source; fi\n";
    world.project.write("plan/parser", plan);
    world.project.commit("Build something");
    world
}

#[test]
fn what_earlier_checks_have_built_makes_no_check_pass() {
    let world = with_product("");
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 2, "the first session is sent back");
    assert_eq!(world.project.read("source"), "again\n");
}

#[test]
fn ignored_files_that_the_project_keeps_stay() {
    let world = with_product("[project]\nkeep_ignored = [\"product\"]\n");
    world.run().exits(0);
    assert_eq!(world.project.marks().len(), 1, "the product of the base is still there");
}
