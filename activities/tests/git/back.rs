//! Rewinding a feature resets its branch and its work tree, and loses nothing.

use longhaul_activities::git::RewindTarget;
use longhaul_engine::RunId;

use crate::support::{World, id, read, run, status, write};

fn to(world: &World, commit: Option<&str>) -> RewindTarget {
    let run = |number: u32| RunId::new(format!("shop-1a2b3c/login/{number}")).unwrap();
    let (project, commit) = (world.project(), commit.map(str::to_owned));
    RewindTarget { project, feature: id("login"), last: run(1), next: run(2), commit }
}

/// A feature with two sealed steps and uncommitted work; the commits of the steps.
async fn two_steps(world: &World) -> (String, String) {
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "work.txt", "one\n");
    let first = world.seal_in("login", 2).await.commit;
    write(&tree, "work.txt", "two\n");
    let second = world.seal_in("login", 3).await.commit;
    write(&tree, "late.txt", "late\n");
    (first, second)
}

#[tokio::test]
async fn a_feature_goes_back_to_a_step_and_what_was_there_is_kept() {
    let world = World::new();
    let (first, second) = two_steps(&world).await;
    let tree = world.tree("login");
    for _ in 0..2 {
        world.git.rewind_feature(&to(&world, Some(&first))).await.unwrap();
        assert_eq!(world.at("refs/heads/longhaul/login"), first);
        assert_eq!((read(&tree, "work.txt"), status(&tree)), ("one\n".into(), String::new()));
        assert_eq!(run(&tree, &["symbolic-ref", "HEAD"]), "refs/heads/longhaul/login");
        assert_eq!(world.at("refs/longhaul/features/shop-1a2b3c/login/1"), second);
        assert_eq!(
            world.run(&["show", "refs/longhaul/rescue/shop-1a2b3c/login/2/rewind:late.txt"]),
            "late"
        );
    }
}

#[tokio::test]
async fn a_closed_feature_is_opened_again() {
    let world = World::new();
    let (first, _) = two_steps(&world).await;
    world.close("login").await;
    world.git.rewind_feature(&to(&world, Some(&first))).await.unwrap();
    assert_eq!(world.at("refs/heads/longhaul/login"), first);
    assert_eq!(read(&world.tree("login"), "work.txt"), "one\n");
}

#[tokio::test]
async fn before_the_first_step_there_is_no_work_tree() {
    let world = World::new();
    let (_, second) = two_steps(&world).await;
    for _ in 0..2 {
        world.git.rewind_feature(&to(&world, None)).await.unwrap();
        assert!(!world.tree("login").exists() && !world.exists("refs/heads/longhaul/login"));
        assert_eq!(world.at("refs/longhaul/features/shop-1a2b3c/login/1"), second);
    }
}

#[tokio::test]
async fn a_commit_that_is_gone_is_named_and_nothing_is_touched() {
    let world = World::new();
    let (_, second) = two_steps(&world).await;
    let gone = "0123456789012345678901234567890123456789";
    let failure = world.git.rewind_feature(&to(&world, Some(gone))).await.unwrap_err();
    assert!(failure.message.contains(gone), "{failure}");
    assert_eq!(world.at("refs/heads/longhaul/login"), second);
    assert_eq!(read(&world.tree("login"), "late.txt"), "late\n");
}

#[tokio::test]
async fn what_was_begun_without_a_run_is_undone() {
    let world = World::new();
    let (first, second) = two_steps(&world).await;
    let (project, next, tree) = (world.project(), to(&world, None).next, world.tree("login"));
    for commit in [Some(first.as_str()), None] {
        world.git.rewind_feature(&to(&world, commit)).await.unwrap();
        assert_eq!(world.git.pending_rewinds(&project).await.unwrap(), std::slice::from_ref(&next));
        world.git.settle_rewind(&project, &next, false).await.unwrap();
        assert_eq!(world.at("refs/heads/longhaul/login"), second);
        assert!(
            !tree.exists()
                || (read(&tree, "work.txt"), status(&tree)) == ("two\n".into(), String::new())
        );
        assert_eq!(world.git.pending_rewinds(&project).await.unwrap(), []);
    }
    assert_eq!(
        world.run(&["show", "refs/longhaul/rescue/shop-1a2b3c/login/2/rewind:late.txt"]),
        "late"
    );

    // The rewind began twice: undoing it restores the first state.
    world.git.rewind_feature(&to(&world, Some(&first))).await.unwrap();
    world.git.rewind_feature(&to(&world, Some(&first))).await.unwrap();
    world.git.settle_rewind(&project, &next, false).await.unwrap();
    assert_eq!(world.at("refs/heads/longhaul/login"), second);
    world.git.rewind_feature(&to(&world, Some(&first))).await.unwrap();
    world.git.settle_rewind(&project, &next, true).await.unwrap();
    assert_eq!(world.at("refs/heads/longhaul/login"), first);

    let world = World::new();
    let (first, _) = two_steps(&world).await;
    world.close("login").await;
    world.git.rewind_feature(&to(&world, Some(&first))).await.unwrap();
    world.git.settle_rewind(&world.project(), &next, false).await.unwrap();
    let tree = world.tree("login");
    assert!(!tree.exists() && !world.exists("refs/heads/longhaul/login"), "there was none");
}
