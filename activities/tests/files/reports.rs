//! The exact text of every file; unchanged files are not written.

use longhaul_engine::event::Cause;
use longhaul_engine::{CommandDigest, EventKind, Failure, Payload, RequestedBy};
use longhaul_workflows::contracts::{RunSession, SessionEnding, SessionReason};
use longhaul_workflows::project::Phase;

use crate::story::{self, RUN};
use crate::world::{PROJECT, World, blocked, headers, in_progress};

/// Compares a file with the one in `golden/`; with `LONGHAUL_RECORD=1`, replaces that one.
fn check_golden(world: &World, name: &str, golden: &str) {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/golden").join(golden);
    let text = world.read(name);
    if std::env::var_os("LONGHAUL_RECORD").is_some() {
        std::fs::write(path, text).unwrap();
    } else {
        assert_eq!(text, std::fs::read_to_string(path).unwrap(), "{name}");
    }
}

fn check_all(world: &World) {
    check_golden(world, "claude-progress.txt", "claude-progress.txt");
    check_golden(world, ".longhaul/progress.md", "progress.md");
    check_golden(world, ".longhaul/state.json", "state.json");
    check_golden(world, ".longhaul/session-log.txt", "session-log.txt");
    check_golden(world, ".longhaul/history.json", "history.json");
    check_golden(world, ".longhaul/sessions/session-001.json", "session-001.json");
    check_golden(world, ".longhaul/sessions/session-003.json", "session-003.json");
}

#[tokio::test]
async fn a_landed_feature_is_in_every_report() {
    let mut world = World::with_project().await;
    story::record(&mut world).await;
    world.refresh_afresh().await.unwrap();
    check_all(&world);
    assert!(!world.path(".longhaul/sessions/session-004.json").exists());
}

#[tokio::test]
async fn the_same_log_gives_the_same_bytes_however_it_is_read() {
    let mut world = World::with_project().await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    story::prepare(&mut world).await;
    projector.refresh().await.unwrap();
    story::first_session(&mut world).await;
    projector.refresh().await.unwrap();
    story::second_session(&mut world).await;
    drop(projector);
    world.refresh_afresh().await.unwrap();
    story::third_session(&mut world).await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    story::land(&mut world).await;
    projector.refresh().await.unwrap();
    projector.refresh().await.unwrap();
    check_all(&world);
}

#[tokio::test]
async fn files_in_the_middle_of_the_work_say_what_is_going_on() {
    let mut world = World::with_project().await;
    story::prepare(&mut world).await;
    story::first_session(&mut world).await;
    story::enter(&mut world, story::at_session(2, SessionReason::Continue), 2).await;
    story::begin(&mut world, RUN, &story::session(2, SessionReason::Continue)).await;
    world.feature("logout", blocked("no | check\nat all")).await;
    world
        .project(|view| {
            (view.in_progress, view.blocked, view.problem) = (1, 1, Some("bad\nlist".into()));
        })
        .await;
    world.refresh_afresh().await.unwrap();
    check_golden(&world, ".longhaul/progress.md", "progress-working.md");
    check_golden(&world, ".longhaul/sessions/session-002.json", "session-active.json");
    assert!(world.read(".longhaul/history.json").contains("list_problem"));
}

#[tokio::test]
async fn a_refresh_without_news_writes_nothing() {
    let mut world = World::with_project().await;
    story::record(&mut world).await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    std::fs::remove_dir_all(world.path(".longhaul")).unwrap();
    projector.refresh().await.unwrap();
    assert!(!world.path(".longhaul").exists());
}

#[tokio::test]
async fn a_file_that_holds_the_right_text_is_not_written_again() {
    use std::os::unix::fs::MetadataExt as _;
    let mut world = World::with_project().await;
    story::record(&mut world).await;
    world.refresh_afresh().await.unwrap();
    let inode = |name| std::fs::metadata(world.path(name)).unwrap().ino();
    let names =
        [".longhaul/state.json", ".longhaul/history.json", ".longhaul/sessions/session-002.json"];
    let before = names.map(inode);
    world.refresh_afresh().await.unwrap();
    assert_eq!(names.map(inode), before);
}

#[tokio::test]
async fn a_log_without_the_project_makes_no_files() {
    let world = World::empty();
    world.refresh_afresh().await.unwrap();
    assert_eq!(std::fs::read_dir(world.folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn sessions_of_all_features_are_numbered_in_the_order_of_their_start() {
    let mut world = World::with_project().await;
    let input = story::session(1, SessionReason::Start);
    for run in ["shop/logout/1", "shop/login/1"] {
        world.start(run).await;
        story::begin(&mut world, run, &input).await;
    }
    world.start("shop/not-a-feature-run").await;
    world.refresh_afresh().await.unwrap();
    let first = world.read(".longhaul/sessions/session-001.json");
    let second = world.read(".longhaul/sessions/session-002.json");
    assert!(first.contains(r#""id": "logout-1-s1""#), "{first}");
    assert!(second.contains(r#""id": "login-1-s1""#), "{second}");
}

#[tokio::test]
async fn a_session_that_is_cut_off_is_tried_again_under_the_same_id() {
    let mut world = World::with_project().await;
    world.start(RUN).await;
    let input = story::session(1, SessionReason::Start);
    story::begin(&mut world, RUN, &input).await;
    let (slot, name, failure) =
        (world.slot(), "run_session".to_owned(), Failure::retryable("no such program"));
    let retry_at = Some(world.now);
    let kind = EventKind::ActivityFailed {
        slot,
        name,
        input: Payload::of(&input),
        attempt: 1,
        failure,
        retry_at,
    };
    let own = story::run_of(RUN, &input);
    world.record(&own, kind).await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    let status = |world: &World| {
        let session: serde_json::Value =
            serde_json::from_str(&world.read(".longhaul/sessions/session-001.json")).unwrap();
        session["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status(&world), "interrupted");

    world.started::<RunSession>(&own, &input, 2).await;
    projector.refresh().await.unwrap();
    assert_eq!(status(&world), "active");
    assert!(world.read("claude-progress.txt").contains("session 1 (start) begins (attempt 2)\n"));
    assert!(!world.path(".longhaul/sessions/session-002.json").exists());

    let failed = SessionEnding::Failed { reason: "exit code 1".into(), lacks_command: false };
    story::end(&mut world, RUN, &input, &story::report(failed, "")).await;
    projector.refresh().await.unwrap();
    assert_eq!(status(&world), "error");
}

#[tokio::test]
async fn a_run_that_is_cancelled_and_started_again_has_sessions_of_its_own() {
    let mut world = World::with_project().await;
    world.feature("login", in_progress(RUN)).await;
    world.start(RUN).await;
    let input = story::session(1, SessionReason::Start);
    let request = RequestedBy { by: "ann".into(), why: "wrong branch".into() };
    story::begin(&mut world, RUN, &input).await;
    world
        .record(
            RUN,
            EventKind::CancelDelivered { command: 1, digest: CommandDigest([0; 32]), request },
        )
        .await;
    world.record(RUN, EventKind::RunCancelled).await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    assert!(
        world.read(".longhaul/sessions/session-001.json").contains(r#""status": "interrupted""#)
    );

    world.begin(RUN, Cause::Restarted).await;
    let input = story::session(2, SessionReason::Start);
    story::begin(&mut world, RUN, &input).await;
    projector.refresh().await.unwrap();
    let entries = headers(&world.read("claude-progress.txt"));
    let ends: Vec<&str> = entries.iter().map(|entry| entry.split_once(' ').unwrap().1).collect();
    let expected = [
        "login-1-s1 session_started login",
        "login-1-s1 feature_cancelled login",
        "login-1-r2-s2 session_started login",
    ];
    assert_eq!(ends, expected);
    assert!(world.read("claude-progress.txt").contains("\nover: cancelled by ann: wrong branch\n"));
    assert!(world.path(".longhaul/sessions/session-002.json").exists());
}

#[tokio::test]
async fn events_of_the_whole_project_are_reported_once() {
    let mut world = World::with_project().await;
    let halted = RequestedBy { by: "ann".into(), why: "lunch".into() };
    world
        .project(|view| {
            view.halted = Some(halted.clone());
            view.phase = Phase::Halted;
        })
        .await;
    world.feature("logout", blocked("no check")).await;
    world.feature("logout", blocked("no check")).await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    assert!(
        world.read(".longhaul/progress.md").contains("\nThe project is halted by ann: lunch\n")
    );
    world.project(|_| ()).await;
    world.record(PROJECT, EventKind::RunPaused(halted)).await;
    projector.refresh().await.unwrap();
    let expected = [
        "09:00:03 shop paused -",
        "09:00:04 logout feature_blocked logout",
        "09:00:06 shop resumed -",
        "09:00:07 shop paused -",
    ];
    assert_eq!(headers(&world.read("claude-progress.txt")), expected);
}

#[tokio::test]
async fn a_feature_that_its_run_reports_as_blocked_is_reported_once() {
    let mut world = World::with_project().await;
    world.start(RUN).await;
    world.record(RUN, EventKind::RunFailed { failure: Failure::terminal("no agent") }).await;
    world
        .feature(
            "login",
            longhaul_workflows::project::FeatureView {
                run: in_progress(RUN).run,
                cause: Some(longhaul_workflows::backlog::BlockCause::Run),
                ..blocked("no agent")
            },
        )
        .await;
    world.refresh_afresh().await.unwrap();
    assert_eq!(
        headers(&world.read("claude-progress.txt")),
        ["09:00:04 login-1 feature_blocked login"]
    );
}
