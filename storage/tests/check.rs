//! Checks of a log: each damage is named, every possible repair is done, and no readable data is
//! lost.

use std::path::Path;

use longhaul_engine::store::Commit;
use longhaul_engine::{
    Event, EventKind, EventLog, Message, MessageBody, Outcome, Payload, Position, RunReader, Status,
};
use longhaul_storage::{CheckReport, SledStore};

use crate::common::{append, completed, large, now, run, signal, start, started, summary_of};
use crate::damage::{change_value, event_key, forge, summary_key, tamper, the_blob};

/// A log with runs of every kind, each consistent with its history.
async fn sample(directory: &Path) {
    let store = SledStore::open(directory).unwrap();
    for id in ["good", "hurt", "big"] {
        store.commit(start(id)).await.unwrap();
    }
    for position in 1..5 {
        for id in ["good", "hurt"] {
            let value = Payload::of(&position);
            let published = vec![("value".into(), Some(value.clone()))];
            store.commit(Commit { published, ..append(id, position, &value) }).await.unwrap();
        }
    }
    let value = large(1, 20_000);
    let published = vec![("value".into(), Some(value.clone()))];
    store.commit(Commit { published, ..append("big", 1, &value) }).await.unwrap();
    store.deliver(signal("hurt", "unread")).await.unwrap();
    store.commit(start("over")).await.unwrap();
    let summary = summary_of(&[started(), completed(1)]);
    store
        .commit(Commit { summary: Some(summary), ..Commit::of(run("over"), vec![completed(1)]) })
        .await
        .unwrap();
}

/// The findings of a check, one line for each damage.
pub(crate) async fn said(directory: &Path, repair: bool) -> (Vec<String>, CheckReport) {
    let store = SledStore::open(directory).unwrap();
    let report = store.check(repair).await.unwrap();
    let lines = report.damages.iter().map(|damage| format!("{}: {}", damage.record, damage.what));
    (lines.collect(), report)
}

/// Damages a log, and checks the findings, that repair fixes them, and that the log is whole
/// afterwards.
async fn check(
    change: impl FnOnce(&sled::Db),
    expected: &[&str],
    repaired: bool,
) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    assert_eq!(said(directory.path(), false).await.0, Vec::<String>::new(), "it is whole before");
    tamper(directory.path(), change);
    let (before, _) = said(directory.path(), false).await;
    assert_eq!(before.len(), expected.len(), "{before:?}");
    for (line, expected) in before.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line:?} does not begin with {expected:?}");
    }
    let (_, report) = said(directory.path(), true).await;
    assert!(report.damages.iter().all(|damage| damage.repaired == repaired), "{report:?}");
    let (after, _) = said(directory.path(), false).await;
    assert_eq!(after.is_empty(), repaired, "{after:?}");
    directory
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_written_anew() {
    let says_paused = |db: &sled::Db| {
        // The summary of an active run under the key of a finished one, with a valid checksum.
        let value = db.get(summary_key("good")).unwrap().unwrap().to_vec();
        forge(db, &summary_key("over"), &value[..value.len() - 4]);
        change_value(db, &summary_key("good"), |value| value[7] ^= 1);
        db.remove(summary_key("hurt")).unwrap();
    };
    let expected = [
        "summary of run good: its checksum does not match",
        "summary of run hurt: it is missing",
        "summary of run over: it says that the run is running, but the history says completed",
    ];
    let directory = check(says_paused, &expected, true).await;
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.summary(&run("over")).await.unwrap().unwrap().status, Status::Completed);
    assert_eq!(store.runs("").await.unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn published_values_are_written_anew() {
    let key = |id: &str| [b"p", id.as_bytes(), b"\0value"].concat();
    let change = |db: &sled::Db| {
        db.remove(key("good")).unwrap();
        change_value(db, &key("hurt"), |value| value[8] ^= 1);
    };
    let expected = [
        "published value `value` of run good: it is missing",
        "published value `value` of run hurt: its checksum does not match",
    ];
    let directory = check(change, &expected, true).await;
    let store = SledStore::open(directory.path()).unwrap();
    for id in ["good", "hurt"] {
        assert_eq!(store.published(&run(id)).await.unwrap()["value"], Payload::of(&4));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_run_is_moved_aside_with_all_that_it_has() {
    let change = |db: &sled::Db| {
        change_value(db, &event_key("hurt", 2), |value| value[8] ^= 4);
        db.remove(event_key("good", 0)).unwrap();
    };
    let expected = [
        "event 0 of run good: it is missing, but later ones exist",
        "event 2 of run hurt: its checksum does not match",
    ];
    let directory = check(change, &expected, true).await;
    let store = SledStore::open(directory.path()).unwrap();
    let left: Vec<_> =
        store.runs("").await.unwrap().into_iter().map(|(run, _)| run.to_string()).collect();
    assert_eq!(left, ["big", "over"]);
    // The same process can start the runs again.
    store.commit(start("hurt")).await.unwrap();
    let kept = kept(directory.path());
    assert_eq!(kept.len(), 2);
    assert!(
        kept[1].starts_with(
            r#"{"schema":"longhaul.quarantine/1","run":"hurt","events":4,"records":8}"#
        ),
        "{kept:?}"
    );
    assert!(kept[1].contains(r#"{"position":3,"#) && !kept[1].contains(r#"{"position":2,"#));
    assert_eq!(kept[1].lines().count(), 1 + 4 + 8);
}

/// The quarantine files, sorted by name.
fn kept(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory.join("quarantine")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// A run that has started two children and received the outcome of one.
fn waiting() -> Vec<Event> {
    let at = |position: Position, kind| Event { position, at: now(), kind };
    let child = |command, id| {
        let workflow = "test".into();
        let input = Payload::of(id);
        EventKind::ChildStarted { command, run: run(id), workflow, input }
    };
    let body = MessageBody::ChildEnded { run: run("one"), outcome: Outcome::Cancelled };
    let message = Some(Message { seq: 1, at: now(), body });
    let taken = EventKind::MessageReceived { command: 2, message };
    vec![started(), at(1, child(0, "one")), at(2, child(1, "two")), at(3, taken)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_waited_for_and_lost_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    let parent = |id: &str, events: Vec<Event>| Commit {
        summary: Some(summary_of(&events)),
        ..Commit::of(run(id), events)
    };
    store.commit(parent("waits", waiting())).await.unwrap();
    store.commit(parent("over", [waiting(), vec![completed(4)]].concat())).await.unwrap();
    store.close();
    let expected = ["event 0 of run two: nothing is left of the run, and waits waits for it"];
    assert_eq!(said(directory.path(), false).await.0, expected);
    let (lines, report) = said(directory.path(), true).await;
    assert_eq!(
        (lines.as_slice(), report.damages[0].repaired),
        (expected.map(str::to_owned).as_slice(), true)
    );
    assert_eq!(said(directory.path(), false).await.0, Vec::<String>::new());
    let store = SledStore::open(directory.path()).unwrap();
    let events = store.read(&run("two"), 0).await.unwrap();
    let [Event { kind: EventKind::RunStarted { input, parent, .. }, .. }] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!((input, parent), (&Payload::of("two"), &Some(run("waits"))));
    assert_eq!(store.summary(&run("two")).await.unwrap(), Some(summary_of(&events)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_message_is_moved_aside_and_its_run_goes_on() {
    let change = |db: &sled::Db| {
        let key = db.scan_prefix(b"mhurt").keys().next().unwrap().unwrap();
        change_value(db, &key, |value| value.truncate(9));
    };
    let directory =
        check(change, &["message 4294967296 of run hurt: it has only 9 bytes"], true).await;
    let store = SledStore::open(directory.path()).unwrap();
    assert!(store.mailbox(&run("hurt")).await.unwrap().is_empty());
    assert_eq!(store.read(&run("hurt"), 0).await.unwrap().len(), 5);
    assert_eq!(kept(directory.path()).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_no_run_is_moved_aside() {
    let change = |db: &sled::Db| drop(db.insert(b"e stray key", b"any value").unwrap());
    check(change, &["`e stray key`: its key names no run"], true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_a_number_is_moved_aside_and_its_run_is_kept() {
    // The last eight bytes of such a key are no position.
    let change = |db: &sled::Db| {
        for key in [&b"ehurt\0x"[..], b"egood\0\0\0\0\0\0\0\0\x04\x04", b"mhurt\0seventh"] {
            db.insert(key, b"any value").unwrap();
        }
    };
    let expected = [
        r"`egood\x00\x00\x00\x00\x00\x00\x00\x00\x04\x04`: its key has no number",
        r"`ehurt\x00x`: its key has no number",
        r"`mhurt\x00seventh`: its key has no number",
    ];
    let directory = check(change, &expected, true).await;
    let store = SledStore::open(directory.path()).unwrap();
    for id in ["good", "hurt"] {
        let events = store.read(&run(id), 0).await.unwrap();
        assert_eq!(events.iter().map(|event| event.position).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
    assert_eq!(store.mailbox(&run("hurt")).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_a_number_has_no_invented_position() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    tamper(directory.path(), |db| drop(db.insert(b"ehurt\0x", b"any value").unwrap()));
    let store = SledStore::open(directory.path()).unwrap();
    let next = |position| append("hurt", position, &Payload::of(&position));
    store.commit(next(0)).await.unwrap_err();
    store.commit(next(5)).await.unwrap();
    let refused = store.read(&run("hurt"), 0).await.unwrap_err();
    assert_eq!(refused.to_string(), r"damaged record `ehurt\x00x`: its key has no number");
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_are_looked_at_too() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    let blob = the_blob(directory.path());
    let orphan = directory.path().join("blobs/00").join("0".repeat(64));
    std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
    std::fs::copy(&blob, &orphan).unwrap();
    let (found, report) = said(directory.path(), false).await;
    assert_eq!((found, report.blobs, report.unused), (Vec::new(), 2, 1), "it is no damage");
    let (found, report) = said(directory.path(), true).await;
    assert_eq!((found, report.unused), (Vec::new(), 0));
    assert!(!orphan.exists() && blob.exists() && said(directory.path(), false).await.1.unused == 0);

    std::fs::remove_file(&blob).unwrap();
    let (found, _) = said(directory.path(), false).await;
    assert!(
        found[0].starts_with("event 1 of run big: its blob ") && found[0].ends_with("missing"),
        "{found:?}"
    );
    said(directory.path(), true).await;
    assert!(said(directory.path(), false).await.0.is_empty());
}

/// Replaces the files of a directory with those of another.
fn put_back(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).unwrap();
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_has_lost_its_end_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let earlier = directory.path().join("earlier");
    sample(directory.path()).await;
    std::fs::create_dir(&earlier).unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    let last = store.epoch();
    // The state while an owner is active: this one has not closed the log.
    put_back(&log, &earlier);
    store.commit(start("later")).await.unwrap();
    store.close();
    SledStore::open(directory.path()).unwrap().close();

    put_back(&earlier, &log);
    let error = SledStore::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("its end is missing"), "{error}");
    std::fs::write(directory.path().join("shutdown_marker"), format!("{} open\n", last + 1))
        .unwrap();
    let error = SledStore::open(directory.path()).unwrap_err().to_string();
    assert!(
        error.contains(&format!("its end is missing: what owner {} wrote", last + 1)),
        "{error}"
    );
    std::fs::write(directory.path().join("shutdown_marker"), format!("{last} closed\n")).unwrap();
    let error = SledStore::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("its end is missing"), "{error}");
    // A person may continue with the rest.
    std::fs::remove_file(directory.path().join("shutdown_marker")).unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.runs("").await.unwrap().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_log_in_use_the_records_of_what_is_worked_on_stay() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    tamper(directory.path(), |db| {
        for id in ["good", "hurt", "over"] {
            change_value(db, &event_key(id, 1), |value| value[8] ^= 4);
        }
        db.remove(summary_key("big")).unwrap();
    });
    let store = SledStore::open(directory.path()).unwrap();
    let report = store.mend_in_use(|run| run.as_str() != "hurt").await.unwrap();
    let repaired: Vec<(&str, bool)> =
        report.damages.iter().map(|damage| (&*damage.record, damage.repaired)).collect();
    let expected = [
        ("summary of run big", true),
        ("event 1 of run good", false),
        ("event 1 of run hurt", true),
        ("event 1 of run over", true),
    ];
    assert_eq!(repaired, expected);
    assert!(report.damages[1].repair.ends_with("when no process works on it"), "{report:?}");
    assert_eq!(report.quarantined.len(), 2);
    let published = vec![("value".into(), None)];
    store.commit(Commit { published, ..append("big", 2, &Payload::null()) }).await.unwrap();
    // Lost data can be created again, and the rest continues.
    store.commit(start("hurt")).await.unwrap();
    assert_eq!(store.read(&run("hurt"), 0).await.unwrap().len(), 1);
    assert_eq!(store.read(&run("good"), 2).await.unwrap().len(), 3);
    let after = store.mend_in_use(|_| false).await.unwrap();
    assert_eq!((after.damages.len(), after.damages[0].repaired), (1, true), "{after:?}");
    assert!(store.check(false).await.unwrap().damages.is_empty());
}
