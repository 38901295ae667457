//! Features that are edited, removed, restored, blocked and unblocked while they are worked on.

use longhaul_engine::{Payload, RunReader, Status};
use longhaul_tests::script::{block, id, until};
use longhaul_workflows::backlog::{Check, Feature, FeatureStatus};
use longhaul_workflows::project::signal;

use super::world::{PROJECT, World, feature};

#[tokio::test]
async fn another_feature_under_an_old_id_joins_no_run_and_passes_by_no_old_work() {
    let world = World::new(vec![feature("login", "has login"), feature("other", "true")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.edit(&engine, vec![feature("other", "true")]).await;
    until("it is gone", async || world.view("login").await.is_none()).await;
    world.edit(&engine, vec![feature("login", "false"), feature("other", "true")]).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    let view = world.view("login").await.unwrap();
    assert_eq!((view.passes, view.run), (false, Some(id("p/login/2"))));
    world.end(&engine).await;
}

#[tokio::test]
async fn what_an_earlier_feature_left_on_the_branch_of_an_id_is_put_aside() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("seal login");
    let engine = world.begin().await;
    world.until_begun("seal login", 1).await;
    world.edit(&engine, Vec::new()).await;
    // The work is sealed although the run is cancelled.
    world.until_begun("seal login", 2).await;
    world.let_go("seal login");
    until("its run has ended", async || {
        world.memory.summary(&id("p/login/1")).await.unwrap().unwrap().status.is_terminal()
    })
    .await;
    assert!(world.state().branches.contains_key("login"));
    let other = Feature { name: "The shop".into(), ..feature("login", "has shop") };
    world.edit(&engine, vec![other]).await;
    world.until_passes("login").await;
    assert_eq!(world.target(), ["shop"], "nothing of the old feature lands");
    world.end(&engine).await;
}

#[tokio::test]
async fn a_feature_that_comes_back_unchanged_is_a_claim() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    for back in 2..4 {
        world.edit(&engine, Vec::new()).await;
        until("it is gone", async || world.view("login").await.is_none()).await;
        world.edit(&engine, vec![feature("login", "has login")]).await;
        world.until_passes("login").await;
        assert_eq!(world.view("login").await.unwrap().run, Some(id(&format!("p/login/{back}"))));
    }
    assert_eq!(world.state().sessions, ["p/login/1/1"], "it was paid for once");
    // The target went back meanwhile: nothing is taken for granted.
    world.edit(&engine, Vec::new()).await;
    until("it is gone", async || world.view("login").await.is_none()).await;
    let first = "c0".to_owned();
    world.state().target = first;
    world.edit(&engine, vec![feature("login", "has login")]).await;
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_feature_that_is_removed_and_restored_at_work_is_resumed_when_its_run_has_ended() {
    let world = World::new(vec![feature("login", "has login"), feature("other", "true")]);
    world.hold("run_session login!");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.edit(&engine, vec![feature("other", "true")]).await;
    until("it is gone", async || world.view("login").await.is_none()).await;
    world.edit(&engine, vec![feature("login", "has login"), feature("other", "true")]).await;
    world.until_status("login", FeatureStatus::Pending).await;
    world.until_passes("other").await;
    assert_eq!(world.count("run_session login"), 1, "its first session has not ended");
    world.let_go("run_session login!");
    world.until_passes("login").await;
    assert_eq!(world.state().sessions.iter().filter(|run| run.contains("login")).count(), 2);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_block_that_is_lifted_at_once_starts_no_second_run_beside_the_first() {
    let world = World::new(vec![feature("login", "has login"), feature("other", "true")]);
    world.hold("run_session login!");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.tell(&engine, signal::BLOCK, block("login", "too early")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    world.until_status("login", FeatureStatus::Pending).await;
    world.until_passes("other").await;
    assert_eq!(world.count("run_session login"), 1);
    world.let_go("run_session login!");
    world.until_passes("login").await;
    assert_eq!(world.state().sessions.iter().filter(|run| run.contains("login")).count(), 2);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_blocked_feature_stays_blocked_when_its_run_ends_and_a_landed_one_passes() {
    let world = World::new(vec![feature("login", "has login"), feature("shop", "has shop")]);
    world.hold("run_session login");
    world.hold("close_worktree shop!");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.until_begun("close_worktree shop", 1).await;
    for id in ["login", "shop"] {
        world.tell(&engine, signal::BLOCK, block(id, "no budget")).await;
        world.until_status(id, FeatureStatus::Blocked).await;
    }
    until("the run has ended", async || {
        world.memory.summary(&id("p/login/1")).await.unwrap().unwrap().status == Status::Cancelled
    })
    .await;
    assert_eq!(world.view("login").await.unwrap().reason.as_deref(), Some("no budget"));
    world.let_go("close_worktree shop!");
    world.until_passes("shop").await;
    assert_eq!(world.target(), ["shop"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn checks_that_are_edited_in_a_session_are_those_that_decide() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.edit(&engine, vec![feature("login", "has more")]).await;
    until("its run was notified", async || {
        !world.memory.mailbox(&id("p/login/1")).await.unwrap().is_empty()
    })
    .await;
    world.let_go("run_session login");
    world.until_passes("login").await;
    assert!(world.target().contains(&"more".to_owned()), "{:?}", world.target());
    world.end(&engine).await;
}

/// A person who corrects a wrong check does not want a session to be paid for it: neither while the
/// agent works, nor while the check runs.
#[tokio::test]
async fn a_check_that_is_corrected_before_it_has_failed_costs_no_session() {
    for step in ["run_session login", "run_checks login"] {
        let world = World::new(vec![feature("login", "false")]);
        world.hold(step);
        let engine = world.begin().await;
        world.until_begun(step, 1).await;
        world.edit(&engine, vec![feature("login", "true")]).await;
        until("its run was notified", async || {
            !world.memory.mailbox(&id("p/login/1")).await.unwrap().is_empty()
        })
        .await;
        world.let_go(step);
        world.until_passes("login").await;
        assert_eq!(world.state().sessions, ["p/login/1/1"], "{step}");
        world.end(&engine).await;
    }
}

/// The edit is in the list, and the project was not notified.
#[tokio::test]
async fn an_edit_of_the_last_moment_decides() {
    for step in ["run_checks login", "run_checks login merged", "land "] {
        let world = World::new(vec![feature("login", "has login")]);
        world.hold(step);
        let engine = world.begin().await;
        world.until_begun(step, 1).await;
        world.state().list = vec![feature("login", "has more")];
        world.let_go(step);
        world.until_passes("login").await;
        assert_eq!(world.target(), ["login", "more"], "{step}");
        assert_eq!(world.state().sessions, ["p/login/1/1", "p/login/1/2"], "{step}");
        assert_eq!(world.state().landed, ["p/login/1"], "{step}: nothing else has landed");
        world.end(&engine).await;
    }
    let world = World::new(vec![feature("login", "false")]);
    world.hold("run_checks login");
    let engine = world.begin().await;
    world.until_begun("run_checks login", 1).await;
    world.state().list = vec![feature("login", "true")];
    world.let_go("run_checks login");
    world.until_passes("login").await;
    assert_eq!(world.state().sessions, ["p/login/1/1"], "a corrected check costs no session");
    world.end(&engine).await;
}

#[tokio::test]
async fn a_check_that_is_corrected_after_it_has_failed_costs_no_session() {
    let corrected = feature("login", "has login");
    let mut wrong = corrected.clone();
    wrong.checks.push(Check { name: "typo".into(), run: "false".into(), ..Check::default() });
    let world = World::new(vec![wrong]);
    let engine = world.begin().await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.edit(&engine, vec![corrected]).await;
    world.until_passes("login").await;
    assert_eq!(world.state().sessions, ["p/login/1/1", "p/login/1/2"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_pass_of_other_checks_than_the_list_has_is_a_claim() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("land ");
    let engine = world.begin().await;
    world.until_begun("land ", 1).await;
    world.edit(&engine, vec![feature("login", "has more")]).await;
    until("its run was notified", async || {
        !world.memory.mailbox(&id("p/login/1")).await.unwrap().is_empty()
    })
    .await;
    world.hold("run_session login");
    world.let_go("land ");
    world.until_begun("run_session login", 2).await;
    assert!(
        !world.view("login").await.unwrap().passes,
        "nothing has shown that the new check passes"
    );
    world.let_go("run_session login");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login", "more"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn gates_that_are_added_while_a_feature_lands_run_before_it_passes() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("land ");
    let engine = world.begin().await;
    world.until_begun("land ", 1).await;
    world.state().gates =
        vec![Check { name: "lint".into(), run: "has tidy".into(), ..Check::default() }];
    world.tell(&engine, signal::RELOAD, Payload::of(&"edit")).await;
    until("its run was notified", async || {
        !world.memory.mailbox(&id("p/login/1")).await.unwrap().is_empty()
    })
    .await;
    world.let_go("land ");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login", "tidy"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn a_baseline_that_is_added_in_a_session_decides() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.state().baseline =
        vec![Check { name: "builds".into(), run: "has build".into(), ..Check::default() }];
    world.tell(&engine, signal::RELOAD, Payload::of(&"edit")).await;
    until("its run was notified", async || {
        !world.memory.mailbox(&id("p/login/1")).await.unwrap().is_empty()
    })
    .await;
    world.let_go("run_session login");
    until("the baseline has failed", async || {
        world.count("run_checks login merged") > 0 && world.count("run_session login") > 1
    })
    .await;
    assert!(!world.target().contains(&"login".to_owned()), "{:?}", world.target());
    engine.stop().await;
}

#[tokio::test]
async fn gates_that_are_added_after_features_passed_are_checked_once_on_the_target() {
    let world = World::new(vec![feature("login", "has login"), feature("shop", "has shop")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.until_passes("shop").await;
    let gate = |run: &str| vec![Check { name: "lint".into(), run: run.into(), ..Check::default() }];
    let judged = || world.count("check_out_tip ");
    // They hold: nothing is paid.
    world.edit_gates(&engine, gate("has shop")).await;
    until("the gates ran on the target", async || judged() == 1).await;
    world.until_passes("shop").await;
    assert_eq!(world.state().sessions.len(), 2);
    // They do not: one feature is worked on, and the others are not.
    world.hold("run_session shop");
    world.edit_gates(&engine, gate("has tidy")).await;
    world.until_begun("run_session shop", 2).await;
    assert!(!world.view("shop").await.unwrap().passes, "its gates fail on the target");
    assert!(world.view("login").await.unwrap().passes);
    // Edited again meanwhile, they are judged by the same feature.
    world.edit_gates(&engine, gate("has neat")).await;
    until("its run was notified", async || {
        !world.memory.mailbox(&id("p/shop/3")).await.unwrap().is_empty()
    })
    .await;
    world.let_go("run_session shop");
    world.until_passes("shop").await;
    assert!(world.target().contains(&"neat".to_owned()), "{:?}", world.target());
    assert_eq!(judged(), 2, "once for each edit that no run took up");
    assert!(
        !world.state().sessions.iter().any(|run| run == "p/login/2/1"),
        "{:?}",
        world.state().sessions
    );
    // One that is taken away needs no proof.
    world.edit_gates(&engine, Vec::new()).await;
    until("it was read", async || world.memory.mailbox(&id(PROJECT)).await.unwrap().is_empty())
        .await;
    world.until_passes("shop").await;
    assert_eq!(judged(), 2);
    world.end(&engine).await;
}
