//! A claim passes on the target or not at all.

use std::collections::BTreeMap;

use longhaul_engine::{Engine, MessageBody, NewRun, Payload, RequestedBy, RunReader};
use longhaul_tests::script::{block, id, sync, until};
use longhaul_workflows::backlog::{Check, Feature, FeatureStatus};
use longhaul_workflows::contracts::ProjectRef;
use longhaul_workflows::project::{ProjectInput, ProjectWorkflow, signal};

use super::world::{PROJECT, World, claimed, feature};

#[tokio::test]
async fn a_claim_that_holds_on_the_target_needs_no_session() {
    let world = World::new(vec![claimed("login", "true"), claimed("logout", "true")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.until_passes("logout").await;
    let commit = world.view("login").await.unwrap().commit;
    assert_eq!(commit.as_ref(), Some(&world.state().target));
    assert!(world.state().sessions.is_empty() && world.state().landed.is_empty());
    world.end(&engine).await;
}

#[tokio::test]
async fn work_on_the_branch_of_a_claimed_feature_lands_before_it_passes() {
    let world = World::new(vec![claimed("login", "has login")]);
    world.state().branch("login", &["login"]);
    world.hold("seal login");
    let engine = world.begin().await;
    world.until_begun("seal login", 1).await;
    assert!(!world.view("login").await.unwrap().passes, "its gates pass on its branch only");
    world.let_go("seal login");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login"]);
    assert!(world.state().sessions.is_empty(), "the work was there");
    world.end(&engine).await;
}

#[tokio::test]
async fn a_claim_that_does_not_hold_is_worked_on() {
    let world = World::new(vec![claimed("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    assert_eq!((world.target(), world.state().landed.len()), (vec!["login".to_owned()], 1));
    world.end(&engine).await;
}

#[tokio::test]
async fn a_claim_whose_run_was_cancelled_is_judged_on_the_target_again() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    // Edited after it passed, blocked in the session of its second run, and tried again.
    world.hold("run_session login");
    world.edit(&engine, vec![feature("login", "has more")]).await;
    world.until_begun("run_session login", 2).await;
    world.tell(&engine, signal::BLOCK, block("login", "not now")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.state().branch("login", &["more"]);
    world.hold("land ");
    world.let_go("run_session login");
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    until("it is about to land", async || world.count("land ") == 2).await;
    assert!(!world.view("login").await.unwrap().passes);
    world.let_go("land ");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login", "more"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn what_was_blocked_after_it_passed_is_a_claim_when_it_is_unblocked() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    world.tell(&engine, signal::BLOCK, block("login", "wait")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    world.until_passes("login").await;
    assert_eq!(world.state().sessions, ["p/login/1/1"]);
    world.end(&engine).await;
}

/// Has a session of `login` end well, and holds what comes next: `times` is how often that has
/// begun then.
async fn finished(world: &World, at: &str, times: usize) -> Engine {
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.hold(at);
    world.let_go("run_session login");
    world.until_begun(at, times).await;
    engine
}

/// The work that the only session did lands.
async fn lands_unpaid(world: &World, engine: &Engine) {
    world.until_passes("login").await;
    assert_eq!(world.target(), ["login"]);
    assert_eq!(world.state().sessions, ["p/login/1/1"], "the work was there");
    world.end(engine).await;
}

async fn blocked_and_unblocked(at: &str, times: usize) {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = finished(&world, at, times).await;
    world.tell(&engine, signal::BLOCK, block("login", "not now")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.let_go(at);
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    lands_unpaid(&world, &engine).await;
}

#[tokio::test]
async fn finished_work_that_was_blocked_in_its_gates_is_not_paid_again() {
    blocked_and_unblocked("run_checks login", 2).await;
}

#[tokio::test]
async fn finished_work_that_was_blocked_before_it_was_sealed_is_not_paid_again() {
    blocked_and_unblocked("seal login", 1).await;
}

#[tokio::test]
async fn a_session_that_ended_while_its_feature_was_paused_is_not_paid_again_after_a_cancel() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("run_session login");
    world.hold("seal login");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.pause(&engine, "p/login/1", true).await;
    world.let_go("run_session login");
    engine.outcome(&id("p/login/1/1")).await.unwrap();
    let cancel = || MessageBody::Cancel(RequestedBy { by: "ann".into(), why: String::new() });
    engine.deliver(&id("p/login/1"), cancel()).await.unwrap();
    world.until_begun("seal login", 1).await;
    // As `cancel` of the project sends another one.
    engine.deliver(&id("p/login/1"), cancel()).await.unwrap();
    world.let_go("seal login");
    world.until_status("login", FeatureStatus::Blocked).await;
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    lands_unpaid(&world, &engine).await;
}

#[tokio::test]
async fn what_a_cancelled_session_has_left_is_sealed() {
    let world = World::new(vec![feature("login", "has login")]);
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    let request = RequestedBy { by: "ann".into(), why: String::new() };
    engine.deliver(&id("p/login/1"), MessageBody::Cancel(request)).await.unwrap();
    world.until_status("login", FeatureStatus::Blocked).await;
    assert_eq!(world.count("seal login"), 1);
    world.end(&engine).await;
}

#[tokio::test]
async fn finished_work_that_was_blocked_while_it_merged_is_not_paid_again() {
    blocked_and_unblocked("run_checks login merged", 1).await;
}

#[tokio::test]
async fn finished_work_whose_run_was_cancelled_is_not_paid_again() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = finished(&world, "run_checks login merged", 1).await;
    let request = RequestedBy { by: "ann".into(), why: String::new() };
    engine.deliver(&id("p/login/1"), MessageBody::Cancel(request)).await.unwrap();
    world.until_status("login", FeatureStatus::Blocked).await;
    world.let_go("run_checks login merged");
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    lands_unpaid(&world, &engine).await;
}

#[tokio::test]
async fn finished_work_whose_feature_was_removed_and_restored_is_not_paid_again() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = finished(&world, "run_checks login merged", 1).await;
    world.edit(&engine, Vec::new()).await;
    until("it is gone", async || world.view("login").await.is_none()).await;
    world.let_go("run_checks login merged");
    world.edit(&engine, vec![feature("login", "has login")]).await;
    lands_unpaid(&world, &engine).await;
}

/// The checks are edited, the work is the same; other work under the same id is another feature.
#[tokio::test]
async fn a_landed_feature_that_is_restored_with_other_checks_is_checked_first() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = world.begin().await;
    world.until_passes("login").await;
    let described =
        |text: &str| Feature { description: text.into(), ..feature("login", "has other") };
    for (restored, sessions) in [
        (feature("login", "true"), 1),
        (feature("login", "has more"), 2),
        (described("Other work."), 3),
    ] {
        world.edit(&engine, Vec::new()).await;
        until("it is gone", async || world.view("login").await.is_none()).await;
        world.edit(&engine, vec![restored]).await;
        world.until_passes("login").await;
        assert_eq!(world.state().sessions.len(), sessions);
    }
    world.end(&engine).await;
}

#[tokio::test]
async fn finished_work_of_a_project_that_was_terminated_is_not_paid_again() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = finished(&world, "run_checks login merged", 1).await;
    for run in [PROJECT, "p/login/1"] {
        let request = RequestedBy { by: "ann".into(), why: String::new() };
        engine.deliver(&id(run), MessageBody::Terminate(request)).await.unwrap();
        engine.outcome(&id(run)).await.unwrap();
    }
    world.let_go("run_checks login merged");
    let published = world.memory.published(&id(PROJECT)).await.unwrap();
    let project = ProjectRef { id: PROJECT.into(), root: "/p".into() };
    let input = Payload::of(&ProjectInput::recovered(project, &published, BTreeMap::new()));
    let workflow = ProjectWorkflow::NAME.into();
    engine
        .restart(NewRun { run: id(PROJECT), workflow, input, labels: BTreeMap::new() })
        .await
        .unwrap();
    world.tell(&engine, signal::SYNC, sync("second")).await;
    lands_unpaid(&world, &engine).await;
}

/// Its checks may not show what was asked for besides.
#[tokio::test]
async fn finished_work_whose_description_was_edited_gets_another_session() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = finished(&world, "run_checks login merged", 1).await;
    world.tell(&engine, signal::BLOCK, block("login", "not now")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.let_go("run_checks login merged");
    let edited = Feature { description: "Also log out.".into(), ..feature("login", "has login") };
    world.edit(&engine, vec![edited]).await;
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    world.until_passes("login").await;
    assert_eq!(world.state().sessions, ["p/login/1/1", "p/login/2/1"]);
    world.end(&engine).await;
}

/// Gates that show no more than that nothing is broken pass on half of the work.
#[tokio::test]
async fn work_that_no_agent_called_done_gets_another_session() {
    let world = World::new(vec![feature("login", "true")]);
    world.hold("run_session login");
    let engine = world.begin().await;
    world.until_begun("run_session login", 1).await;
    world.tell(&engine, signal::BLOCK, block("login", "not now")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.state().branch("login", &["half"]);
    world.let_go("run_session login");
    world.tell(&engine, signal::UNBLOCK, Payload::of(&"login")).await;
    world.until_passes("login").await;
    assert_eq!(world.state().sessions, ["p/login/1/1", "p/login/2/1"]);
    world.end(&engine).await;
}

#[tokio::test]
async fn finished_work_that_does_not_pass_the_baseline_is_repaired_first() {
    let world = World::new(vec![feature("login", "has login")]);
    let engine = finished(&world, "run_checks login merged", 1).await;
    world.tell(&engine, signal::BLOCK, block("login", "not now")).await;
    world.until_status("login", FeatureStatus::Blocked).await;
    world.let_go("run_checks login merged");
    world.state().baseline =
        vec![Check { name: "builds".into(), run: "has base".into(), ..Check::default() }];
    world.hold("run_session login");
    world.edit(&engine, vec![feature("login", "has more")]).await;
    world.until_begun("run_session login", 2).await;
    let published = world.memory.published(&id("p/login/2")).await.unwrap();
    assert!(
        published.values().any(|value| value.preview(200).contains(r#""reason":"repair""#)),
        "{published:?}"
    );
    world.let_go("run_session login");
    world.until_passes("login").await;
    assert_eq!(world.target(), ["base", "login", "more"]);
    world.end(&engine).await;
}
