//! Forks that are killed: whole or nothing, and a partial fork is undone at the next start.

use std::time::Duration;

use longhaul_activities::git::{GitHandlers, RewindTarget};
use longhaul_engine::RunId;
use longhaul_tests::project::{Habit, Plan, git, plain};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::ProjectRef;

use super::world::World;

#[test]
fn a_fork_that_is_killed_is_whole_or_nothing() {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &["parser"], 1)], 0.0, "");
    world.run().exits(0);
    let content = world.project.content("main");
    let mut origin = 1;
    for delay in [5, 15, 25, 35, 50, 70, 90, 120, 160, 220] {
        let mut fork = world.begin(&["fork", &world.id("parser", origin), "--from", "session:1"]);
        fork.wait_for(Duration::from_millis(delay));
        fork.kill();
        world.run().exits(0);
        assert_eq!(world.project.content("main"), content, "killed after {delay} ms");
        assert_eq!(world.project.git(&["for-each-ref", "refs/longhaul/pending-rewinds"]), "");
        let histories = world.histories();
        let is_there =
            |number| histories.contains_key(&RunId::new(world.id("parser", number)).unwrap());
        origin += u32::from(is_there(origin + 1));
    }
    world.call(&["fork", &world.id("parser", origin), "--from", "session:1"]).exits(0);
    world.run().exits(0);
    assert_eq!(world.project.content("main"), content);
}

#[test]
fn a_fork_that_dies_before_its_run_exists_is_undone_at_the_next_start() {
    let never = Plan { id: "parser", needs: &[], steps: 2, habit: Habit::Never };
    let world = World::new(&[never, plain("table", &[], 1)], 0.0, "[limits]\nfailed_gates = 2\n");
    world.run().exits(1);
    let tip = world.project.git(&["rev-parse", "longhaul/parser"]);
    let feature = FeatureId::new("parser").unwrap();
    let run = |number| RunId::new(world.id("parser", number)).unwrap();
    let id = world.project.git(&["config", "longhaul.id"]);
    let input = RewindTarget {
        project: ProjectRef { id: id.clone(), root: world.root.clone() },
        feature,
        last: run(1),
        next: run(2),
        commit: Some(world.project.git(&["rev-parse", "longhaul/parser~1"])),
    };
    // The part of a fork before its first write to the log.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(GitHandlers::new(world.longhaul.home()).rewind_feature(&input)).unwrap();
    assert_ne!(world.project.git(&["rev-parse", "longhaul/parser"]), tip);
    world.run().exits(1);
    assert_eq!(world.project.git(&["rev-parse", "longhaul/parser"]), tip);
    let tree = world.longhaul.home().join("worktrees").join(&id).join("parser");
    assert_eq!(git(&tree, &["rev-parse", "HEAD"]).unwrap(), tip);
    assert_eq!(git(&tree, &["status", "--porcelain"]).unwrap(), "");
    assert_eq!(world.project.git(&["for-each-ref", "refs/longhaul/pending-rewinds"]), "");
}
