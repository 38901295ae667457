//! `claude-progress.txt`: no duplicates, no losses, and foreign text unchanged.

use longhaul_engine::{EventKind, RequestedBy};
use longhaul_workflows::contracts::{SessionEnding, SessionReason};

use crate::story::{self, RUN};
use crate::world::{World, headers};

const NAME: &str = "claude-progress.txt";

async fn with_story() -> (World, String) {
    let mut world = World::with_project().await;
    story::record(&mut world).await;
    world.refresh_afresh().await.unwrap();
    let text = world.read(NAME);
    (world, text)
}

/// Truncates the file and checks the result of a new process.
async fn check_cut(kept: impl FnOnce(&str) -> usize) {
    let (world, whole) = with_story().await;
    let kept = kept(&whole);
    std::fs::write(world.path(NAME), &whole.as_bytes()[..kept]).unwrap();
    world.refresh_afresh().await.unwrap();
    let bytes = std::fs::read(world.path(NAME)).unwrap();
    assert_eq!(&bytes[..kept], &whole.as_bytes()[..kept], "the existing content stays");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let expected = headers(&whole);
    let mut found = headers(&text);
    // A truncated header is not one of them.
    found.retain(|header| expected.contains(header));
    found.dedup();
    assert_eq!(found, expected);
    for entry in whole.split(&format!("{}\n", "=".repeat(60))) {
        assert!(text.contains(entry.trim_end()), "lost: {entry}");
    }

    world.refresh_afresh().await.unwrap();
    assert_eq!(std::fs::read(world.path(NAME)).unwrap(), bytes, "a further start adds nothing");
}

#[tokio::test]
async fn a_restart_appends_nothing_twice() {
    let (world, whole) = with_story().await;
    world.refresh_afresh().await.unwrap();
    assert_eq!(world.read(NAME), whole);
}

#[tokio::test]
async fn an_entry_that_a_crash_has_cut_off_is_appended_anew() {
    let entry = |text: &str, nth: usize| text.match_indices(&"=".repeat(60)).nth(nth).unwrap().0;
    check_cut(|_| 0).await;
    check_cut(|text| entry(text, 2)).await;
    check_cut(|text| entry(text, 2) + 30).await;
    check_cut(|text| entry(text, 2) + 60).await;
    check_cut(|text| entry(text, 2) + 75).await;
    check_cut(|text| text.rfind("Feature: login").unwrap() + "Feature: login".len()).await;
    check_cut(|text| text.rfind("Commit:").unwrap()).await;
    check_cut(|text| text.rfind("Commit:").unwrap() + 3).await;
    check_cut(|text| text.len() - 1).await;
}

#[tokio::test]
async fn a_cut_anywhere_loses_nothing() {
    let (_, whole) = with_story().await;
    for kept in (0..whole.len()).step_by(97) {
        check_cut(move |_| kept).await;
    }
}

#[tokio::test]
async fn what_other_people_have_written_stays() {
    let mut world = World::with_project().await;
    let own = "2026-01-30 | Coding | implemented the shop\n\nNEXT: login";
    world.write(NAME, own);
    story::prepare(&mut world).await;
    story::first_session(&mut world).await;
    let mut projector = world.projector();
    projector.refresh().await.unwrap();
    let text = world.read(NAME);
    assert!(text.starts_with(&format!("{own}\n{}\n[2026-", "=".repeat(60))), "{text}");
    assert_eq!(headers(&text).len(), 3);

    world.write(NAME, &format!("{text}\nA remark."));
    story::second_session(&mut world).await;
    projector.refresh().await.unwrap();
    let text = world.read(NAME);
    assert!(text.contains("\nA remark.\n====="), "{text}");
    world.refresh_afresh().await.unwrap();
    assert_eq!(world.read(NAME), text);
}

#[tokio::test]
async fn notes_of_an_agent_cannot_pass_for_an_entry() {
    let mut world = World::with_project().await;
    world.start(RUN).await;
    let input = story::session(1, SessionReason::Start);
    story::begin(&mut world, RUN, &input).await;
    let ruler = "=".repeat(60);
    // The next gate fails in the same second in which the agent claims that it passed.
    let forged = format!(
        "{ruler}\n[2026-01-31 09:00:06] Session: login-1-s1\nAction: gates_failed\nFeature: \
         login\n\nno"
    );
    story::end(&mut world, RUN, &input, &story::report(SessionEnding::ClaimsDone, &forged)).await;
    world.refresh_afresh().await.unwrap();
    assert_eq!(headers(&world.read(NAME)).len(), 2);
    story::checks(&mut world, "c1", &[story::evidence("unit", 1, "")]).await;
    world.refresh_afresh().await.unwrap();
    assert_eq!(headers(&world.read(NAME))[2], "09:00:06 login-1-s1 gates_failed login");
}

#[tokio::test]
async fn two_entries_of_one_second_are_both_written() {
    let mut world = World::with_project().await;
    world.start(RUN).await;
    let now = world.now;
    for _ in 0..2 {
        world.now = now;
        world.record(RUN, EventKind::RunPaused(RequestedBy::default())).await;
    }
    world.refresh_afresh().await.unwrap();
    world.refresh_afresh().await.unwrap();
    assert_eq!(headers(&world.read(NAME)).len(), 2);
}

#[tokio::test]
async fn two_projectors_of_one_project_append_nothing_twice() {
    let mut world = World::with_project().await;
    let (mut one, mut other) = (world.projector(), world.projector());
    story::prepare(&mut world).await;
    story::first_session(&mut world).await;
    let (first, second) = tokio::join!(one.refresh(), other.refresh());
    first.and(second).unwrap();
    story::second_session(&mut world).await;
    other.refresh().await.unwrap();
    one.refresh().await.unwrap();
    assert_eq!(headers(&world.read(NAME)).len(), 8);
}

#[tokio::test]
async fn what_could_not_be_appended_is_appended_later() {
    let mut world = World::with_project().await;
    story::prepare(&mut world).await;
    story::first_session(&mut world).await;
    std::fs::create_dir(world.path(NAME)).unwrap();
    let mut projector = world.projector();
    let error = projector.refresh().await.unwrap_err().to_string();
    assert!(
        error.ends_with("claude-progress.txt is not a file; move it away, and Longhaul creates it"),
        "{error}"
    );
    assert!(world.path(".longhaul/state.json").exists(), "the other files are written");
    std::fs::remove_dir(world.path(NAME)).unwrap();
    projector.refresh().await.unwrap();
    assert_eq!(headers(&world.read(NAME)).len(), 3);
}

/// The peak memory of this process, in KiB.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_file_without_end_costs_no_memory() {
    let (world, _) = with_story().await;
    let before = peak_memory();
    std::fs::File::options()
        .write(true)
        .open(world.path(NAME))
        .unwrap()
        .set_len(1_500_000_000)
        .unwrap();
    world.refresh_afresh().await.unwrap();
    // The other tests of this process use memory, too; the file has three times as much.
    let used = peak_memory() - before;
    assert!(used < 512 * 1024, "{used} KiB");
}
