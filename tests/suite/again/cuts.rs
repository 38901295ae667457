//! Cutting the recorded histories of features at every event.

use std::path::Path;

use longhaul_engine::{Event, RunId, verify};
use longhaul_storage::history_file;
use longhaul_tests::history::workflows;
use longhaul_workflows::feature::{before_last_receive, checkpoints, prefix};

fn history(story: &str) -> (RunId, Vec<Event>) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("histories").join(format!("{story}.jsonl"));
    history_file::read(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Cuts a history everywhere: the positions at which forks differ. Each must decide as before.
fn check(story: &str, expected: &[u64]) {
    let (run, events) = history(story);
    let mut cuts = Vec::new();
    for event in &events {
        let prefix = prefix(&events, event.position);
        assert!(prefix.position <= event.position, "{story}");
        assert_eq!(
            verify(&workflows(), &run, &prefix.events).unwrap(),
            None,
            "{story} cut at {}",
            event.position
        );
        let is_known =
            |commit: &String| checkpoints(&events).iter().any(|step| step.commit == *commit);
        assert!(prefix.commit.iter().all(is_known), "{story}: {:?}", prefix.commit);
        cuts.push(prefix.position);
    }
    cuts.dedup();
    assert_eq!(cuts, expected, "{story}");
}

#[test]
fn forks_begin_between_commands_and_outside_of_turns_to_merge() {
    // Not between asking for the session (7) and its end (14), and not between asking for the turn
    // (20) and the end.
    check("feature-passes-at-once", &[0, 1, 2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 19]);
}

#[test]
fn a_turn_that_was_given_back_is_history() {
    // The first turn is given back at 26, and a session asked for at 27; the second turn is asked
    // for at 41.
    check(
        "feature-merge-conflict",
        &[0, 1, 2, 3, 4, 5, 6, 14, 15, 16, 17, 18, 19, 26, 35, 36, 37, 38, 39, 40],
    );
}

#[test]
fn a_cancelled_session_is_not_gone_on_from() {
    check("feature-cancelled", &[0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_note_is_read_before_the_next_session() {
    let (_, events) = history("feature-merge-conflict");
    for (last, expected) in
        [(5, 5), (7, 6), (10, 6), (14, 14), (15, 15), (19, 19), (27, 26), (30, 26), (51, 40)]
    {
        assert_eq!(before_last_receive(&events, last), expected, "{last}");
    }
}
