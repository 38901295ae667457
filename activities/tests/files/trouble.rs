//! Obstacles to writing one file do not stop the others.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use longhaul_engine::{EventKind, Payload};

use crate::story::{self, RUN};
use crate::world::World;

/// A world with the recorded story, and a directory outside of the project.
async fn with_story() -> (World, tempfile::TempDir) {
    let mut world = World::with_project().await;
    story::record(&mut world).await;
    (world, tempfile::tempdir().unwrap())
}

async fn check_refused(world: &World, end: &str) {
    let error = world.refresh_afresh().await.unwrap_err().to_string();
    assert!(error.ends_with(end), "{error}");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_folder_is_not_followed() {
    let (world, outside) = with_story().await;
    symlink(outside.path(), world.path(".longhaul")).unwrap();
    check_refused(
        &world,
        ".longhaul is a symbolic link, and Longhaul does not write through it; remove it",
    )
    .await;
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(world.path("claude-progress.txt").exists(), "the other files are written");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_sessions_costs_only_the_sessions() {
    let (world, outside) = with_story().await;
    std::fs::create_dir(world.path(".longhaul")).unwrap();
    symlink(outside.path(), world.path(".longhaul/sessions")).unwrap();
    check_refused(
        &world,
        "sessions is a symbolic link, and Longhaul does not write through it; remove it",
    )
    .await;
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(world.path(".longhaul/state.json").exists());
}

#[tokio::test]
async fn a_link_in_the_place_of_a_file_is_replaced() {
    let (world, outside) = with_story().await;
    let target = outside.path().join("precious");
    std::fs::write(&target, "precious").unwrap();
    std::fs::create_dir(world.path(".longhaul")).unwrap();
    symlink(&target, world.path(".longhaul/state.json")).unwrap();
    world.refresh_afresh().await.unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    assert!(std::fs::symlink_metadata(world.path(".longhaul/state.json")).unwrap().is_file());
}

#[tokio::test]
async fn a_link_in_the_place_of_the_progress_file_is_refused() {
    let (world, outside) = with_story().await;
    let target = outside.path().join("precious");
    std::fs::write(&target, "precious").unwrap();
    symlink(&target, world.path("claude-progress.txt")).unwrap();
    check_refused(
        &world,
        "claude-progress.txt is a symbolic link, and Longhaul does not write \
        through it; remove it",
    )
    .await;
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
}

#[tokio::test]
async fn a_list_is_written_through_a_link_within_the_project_only() {
    let (world, outside) = with_story().await;
    let list = r#"[{"id": "login", "name": "Login", "status": "pending", "passes": false}]"#;
    std::fs::create_dir(world.path("plans")).unwrap();
    world.write("plans/list.json", list);
    symlink("plans/list.json", world.path("feature_list.json")).unwrap();
    world.refresh_afresh().await.unwrap();
    assert!(world.read("plans/list.json").contains("completed"));
    assert!(std::fs::symlink_metadata(world.path("feature_list.json")).unwrap().is_symlink());

    std::fs::remove_file(world.path("feature_list.json")).unwrap();
    std::fs::write(outside.path().join("list.json"), list).unwrap();
    symlink(outside.path().join("list.json"), world.path("feature_list.json")).unwrap();
    check_refused(&world, "name a file of the project as `list` under [project] in longhaul.toml")
        .await;
    assert_eq!(std::fs::read_to_string(outside.path().join("list.json")).unwrap(), list);
}

#[tokio::test]
async fn a_list_keeps_its_permissions() {
    let (world, _) = with_story().await;
    world.write(
        "feature_list.json",
        r#"[{"id": "login", "name": "Login", "status": "pending", "passes": false}]"#,
    );
    std::fs::set_permissions(
        world.path("feature_list.json"),
        std::fs::Permissions::from_mode(0o660),
    )
    .unwrap();
    world.refresh_afresh().await.unwrap();
    let mode = std::fs::metadata(world.path("feature_list.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
}

#[tokio::test]
async fn a_file_that_could_not_be_written_is_written_later() {
    let (world, _) = with_story().await;
    std::fs::create_dir_all(world.path(".longhaul/state.json/in-the-way")).unwrap();
    let mut projector = world.projector();
    let error = projector.refresh().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("state.json: "), "{error}");
    assert!(world.path(".longhaul/sessions/session-003.json").exists());
    std::fs::remove_dir_all(world.path(".longhaul/state.json")).unwrap();
    projector.refresh().await.unwrap();
    assert!(world.path(".longhaul/state.json").exists());
}

#[tokio::test]
async fn events_that_cannot_be_understood_are_left_out() {
    let mut world = World::with_project().await;
    story::prepare(&mut world).await;
    for name in ["run_session", "seal", "run_checks", "a_later_activity"] {
        let (slot, name, output) = (world.slot(), name.to_owned(), Payload::of("?"));
        let kind =
            EventKind::ActivityCompleted { slot, name, input: Payload::null(), attempt: 1, output };
        world.record(RUN, kind).await;
    }
    world.publish("shop", "project", Payload::of("?")).await;
    world.publish("shop", "feature/login", Payload::of("?")).await;
    story::first_session(&mut world).await;
    world.refresh_afresh().await.unwrap();
    assert!(world.read(".longhaul/sessions/session-001.json").contains("Half of the form."));
}
