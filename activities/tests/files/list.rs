//! The feature list: Longhaul's states in the user's text.

use serde_json::{Value, json};

use crate::story;
use crate::world::World;

const NAME: &str = "feature_list.json";

/// Unusual formatting, so that any rewrite shows.
const UNTOUCHED: &str = r#"{"meta": {"version": 1, "lastModified": "2026-01-01T00:00:00Z"},
 "features": [
  {"id": "login",  "name": "Login",  "status": "todo", "passes": false,
   "depends_on": [], "mood": "good"},
  {"id": "logout", "name": "Logout", "passes": false}
 ]}"#;

fn entry(world: &World, index: usize) -> Value {
    let list: Value = serde_json::from_str(&world.read(NAME)).unwrap();
    list["features"][index].clone()
}

#[tokio::test]
async fn a_list_that_is_right_is_not_reformatted() {
    let world = World::with_project().await;
    world.write(NAME, UNTOUCHED);
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    projector.refresh().await.unwrap();
    assert_eq!(world.read(NAME), UNTOUCHED);
}

#[tokio::test]
async fn states_of_the_log_are_written_into_the_list() {
    let mut world = World::with_project().await;
    world.write(NAME, UNTOUCHED);
    let mut projector = world.projector();
    story::prepare(&mut world).await;
    projector.refresh().await.unwrap();
    assert_eq!(entry(&world, 0)["status"], "in_progress");
    story::first_session(&mut world).await;
    story::second_session(&mut world).await;
    projector.refresh().await.unwrap();
    // The time of the failed gates.
    assert_eq!(entry(&world, 0)["lastTested"], "2026-01-31T09:00:18Z");

    story::third_session(&mut world).await;
    story::land(&mut world).await;
    projector.refresh().await.unwrap();
    // The time in the landed commit's own list: the checkout does not differ from it.
    let login = json!({"id": "login", "name": "Login", "status": "completed", "passes": true,
        "depends_on": [], "mood": "good", "lastTested": "2026-01-31T08:59:59Z"});
    assert_eq!(entry(&world, 0), login);
    assert_eq!(entry(&world, 1), json!({"id": "logout", "name": "Logout", "passes": false}));
}

#[tokio::test]
async fn edits_of_a_person_survive() {
    let mut world = World::with_project().await;
    world.write(NAME, UNTOUCHED);
    let mut projector = world.projector();
    story::prepare(&mut world).await;
    projector.refresh().await.unwrap();
    let edited = world.read(NAME).replace("\"Logout\"", "\"Sign out\"").replace(
        "\"features\": [",
        "\"features\": [{\"id\": \"new\", \"name\": \"New\", \"passes\": true, \"last_tested\": \
         \"2026-01-01\"},",
    );
    world.write(NAME, &edited);
    projector.refresh().await.unwrap();
    assert_eq!(
        world.read(NAME),
        edited,
        "an entry that the project has not read yet is left alone"
    );
    story::first_session(&mut world).await;
    story::second_session(&mut world).await;
    projector.refresh().await.unwrap();
    assert_eq!(
        entry(&world, 0),
        json!({"id": "new", "name": "New", "passes": true, "last_tested": "2026-01-01"})
    );
    assert_eq!(entry(&world, 1)["status"], "in_progress");
    assert_eq!(entry(&world, 2)["name"], "Sign out");
}

#[tokio::test]
async fn a_claim_set_by_hand_goes_back() {
    let world = World::with_project().await;
    world.write(NAME, UNTOUCHED);
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    let claimed = UNTOUCHED
        .replace(
            r#""todo", "passes": false"#,
            r#""done", "passes": true, "last_tested": "2026-01-30""#,
        )
        .replace(r#""Logout", "passes": false"#, r#""Logout", "passes": true"#);
    world.write(NAME, &claimed);
    projector.refresh().await.unwrap();
    assert_eq!(
        entry(&world, 0),
        json!({"id": "login", "name": "Login", "status": "pending", "passes": false,
            "last_tested": null, "depends_on": [], "mood": "good"})
    );
    assert_eq!(entry(&world, 1), json!({"id": "logout", "name": "Logout", "passes": false}));
}

#[tokio::test]
async fn a_test_that_the_list_tells_of_stays_until_there_is_one_of_ours() {
    let world = World::with_project().await;
    let tested = UNTOUCHED.replace(r#""mood": "good""#, r#""last_tested": "2026-01-30""#);
    world.write(NAME, &tested);
    world.refresh_afresh().await.unwrap();
    assert_eq!(world.read(NAME), tested);
}

#[tokio::test]
async fn a_list_in_the_middle_of_an_edit_is_left_alone() {
    let mut world = World::with_project().await;
    let half = &UNTOUCHED[..UNTOUCHED.len() / 2];
    world.write(NAME, half);
    let mut projector = world.projector();
    story::prepare(&mut world).await;
    projector.refresh().await.unwrap();
    assert_eq!(world.read(NAME), half);
    world.write(NAME, UNTOUCHED);
    projector.refresh().await.unwrap();
    assert_eq!(entry(&world, 0)["status"], "in_progress");
}

#[tokio::test]
async fn a_program_that_opened_the_list_before_it_was_replaced_still_edits_it() {
    let mut world = World::with_project().await;
    world.write(NAME, UNTOUCHED);
    let mut editor = std::fs::File::options().write(true).open(world.path(NAME)).unwrap();
    let mut projector = world.projector();
    story::prepare(&mut world).await;
    projector.refresh().await.unwrap();
    let edited = UNTOUCHED.replace("Logout", "Log-out");
    std::io::Write::write_all(&mut editor, edited.as_bytes()).unwrap();
    projector.refresh().await.unwrap();
    assert_eq!(entry(&world, 0)["status"], "in_progress");
    assert_eq!(entry(&world, 1)["name"], "Log-out");

    // Meanwhile the list was edited once more: both edits are kept.
    let mut editor = std::fs::File::options().write(true).open(world.path(NAME)).unwrap();
    let before = world.read(NAME);
    story::first_session(&mut world).await;
    story::second_session(&mut world).await;
    projector.refresh().await.unwrap();
    let newer = world.read(NAME).replace("Log-out", "Sign-off");
    world.write(NAME, &newer);
    std::io::Write::write_all(&mut editor, before.replace("Log-out", "Go away").as_bytes())
        .unwrap();
    projector.refresh().await.unwrap();
    assert_eq!(entry(&world, 1)["name"], "Sign-off");
    assert!(world.read("feature_list.json.edit-1").contains("\"Go away\""));
}

#[tokio::test]
async fn a_list_that_is_missing_is_not_made() {
    let mut world = World::with_project().await;
    story::record(&mut world).await;
    world.refresh_afresh().await.unwrap();
    assert!(!world.path(NAME).exists());
}

#[tokio::test]
async fn nothing_is_written_before_the_project_has_read_the_list() {
    let mut world = World::empty();
    world.start("shop").await;
    world.project(|view| view.list_file = String::new()).await;
    let claimed = UNTOUCHED.replace("false", "true");
    world.write(NAME, &claimed);
    world.refresh_afresh().await.unwrap();
    assert_eq!(world.read(NAME), claimed);
}
