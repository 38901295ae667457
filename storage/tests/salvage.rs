//! A damaged byte anywhere in sled's file: the log is refused before sled truncates it, and the
//! readable part is saved.

use std::fs;
use std::path::Path;

use longhaul_engine::store::Commit;
use longhaul_engine::{Event, EventKind, EventLog, Payload, RunReader, StoreError};
use longhaul_storage::{SledStore, salvage};

use crate::common::{large, now, run, signal, start};

const RUNS: [&str; 3] = ["first", "second/feature/1", "third"];
const EVENTS_A_STEP: u64 = 4;

/// A log with three runs of `steps` steps; each step takes a message, publishes two values and
/// removes one.
pub(crate) async fn fill(directory: &Path, steps: u64, bytes: usize) {
    let store = SledStore::open(directory).unwrap();
    for id in RUNS {
        store.commit(start(id)).await.unwrap();
    }
    for step in 1..=steps {
        for id in RUNS {
            let message = store.deliver(signal(id, "x")).await.unwrap().unwrap();
            let consumed = vec![message.seq];
            let published = [
                ("value".to_owned(), large(step, bytes)),
                (format!("at-{step}"), Payload::of(&step)),
                (format!("at-{}", step - 1), Payload::null()),
            ];
            let said = published.clone().map(|(key, value)| EventKind::StatusPublished {
                command: 1,
                key,
                value,
            });
            let received = EventKind::MessageReceived { command: 1, message: Some(message) };
            let kinds = std::iter::once(received).chain(said);
            let event = |(kind, position)| Event { position, at: now(), kind };
            let events = kinds.zip(EVENTS_A_STEP * (step - 1) + 1..).map(event).collect();
            let published = published
                .map(|(key, value)| (key, (value != Payload::null()).then_some(value)))
                .into();
            store
                .commit(Commit { consumed, published, ..Commit::of(run(id), events) })
                .await
                .unwrap();
        }
    }
    store.close();
}

fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let there = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &there);
        } else {
            fs::copy(&path, &there).unwrap();
        }
    }
}

/// A copy of a log with one bit of its file flipped, and the readable content of the file.
fn damaged(whole: &Path, db: &[u8], at: usize) -> (tempfile::TempDir, Vec<u8>) {
    let hurt = tempfile::tempdir().unwrap();
    copy(whole, hurt.path());
    let mut bytes = db.to_vec();
    bytes[at] ^= 0x10;
    fs::write(hurt.path().join("log/db"), &bytes).unwrap();
    (hurt, bytes)
}

/// The number of complete runs, each with an empty mailbox and its final values.
async fn whole_runs(store: &SledStore, steps: u64) -> usize {
    let mut whole = 0;
    for id in RUNS {
        let Ok(events) = store.read(&run(id), 0).await else { continue };
        if events.len() as u64 == EVENTS_A_STEP * steps + 1 {
            whole += 1;
            assert!(
                store.mailbox(&run(id)).await.unwrap().is_empty(),
                "taken messages do not reappear"
            );
            let published = store.published(&run(id)).await.unwrap();
            let names: Vec<_> = published.keys().cloned().collect();
            assert_eq!(
                names,
                [format!("at-{steps}"), "value".into()],
                "removed values do not reappear"
            );
        }
    }
    whole
}

/// The number of runs whose last step lacks its end: no other record tells how long it was.
async fn runs_without_an_end(store: &SledStore, steps: u64) -> usize {
    let mut short = 0;
    for id in RUNS {
        let events = store.read(&run(id), 0).await.unwrap_or_default().len() as u64;
        let last_step = EVENTS_A_STEP * (steps - 1) + 1..EVENTS_A_STEP * steps + 1;
        short += usize::from(last_step.contains(&events));
    }
    short
}

#[tokio::test]
async fn one_damaged_byte_of_a_small_log_costs_one_record_at_most() {
    let whole = tempfile::tempdir().unwrap();
    fill(whole.path(), 15, 200).await;
    let db = fs::read(whole.path().join("log/db")).unwrap();
    let (mut refused, mut complete) = (0, 0);
    for at in (0..used(&db)).step_by(used(&db) / 40) {
        let (hurt, _) = damaged(whole.path(), &db, at);
        let error = SledStore::open(hurt.path()).unwrap_err();
        assert!(matches!(error, StoreError::Unopenable { .. }), "byte {at}: {error}");
        refused += 1;
        let found = salvage(hurt.path(), false).unwrap();
        assert_eq!(found.kept, None);
        let kept = salvage(hurt.path(), true).unwrap().kept.unwrap();
        assert!(kept.join("db").exists(), "the damaged log is kept");
        let store = SledStore::open(hurt.path()).unwrap();
        let report = store.check(true).await.unwrap();
        let left = whole_runs(&store, 15).await;
        let moved = report.damages.iter().filter(|one| one.repair.starts_with("move the run"));
        let lost = moved.count() + runs_without_an_end(&store, 15).await;
        assert_eq!(left + lost, RUNS.len(), "byte {at}: {report:?}");
        assert!(lost < 2, "byte {at}: {report:?}");
        assert!(lost == 0 || found.places > 0, "byte {at}: a loss is not said");
        complete += usize::from(lost == 0);
        assert_eq!(store.check(false).await.unwrap().damages, [], "byte {at}");
        store.close();
    }
    assert!(
        complete * 10 > refused * 8,
        "nearly always an older message says the same: {complete} of {refused}"
    );
}

#[tokio::test]
async fn a_damaged_byte_of_a_log_is_never_a_silent_loss() {
    let whole = tempfile::tempdir().unwrap();
    fill(whole.path(), 120, 4000).await;
    let db = fs::read(whole.path().join("log/db")).unwrap();
    assert!(used(&db) > 3 * 512 * 1024, "it has several segments");
    let mut refused = 0;
    for at in (0..used(&db)).step_by(used(&db) / 40) {
        let (hurt, bytes) = damaged(whole.path(), &db, at);
        match SledStore::open(hurt.path()) {
            Ok(store) => {
                let report = store.check(false).await.unwrap();
                assert!(
                    !report.damages.is_empty() || whole_runs(&store, 120).await == RUNS.len(),
                    "byte {at}"
                );
                store.close();
            }
            Err(StoreError::Unopenable { .. }) => {
                refused += 1;
                let now = fs::read(hurt.path().join("log/db")).unwrap();
                let cut = now.iter().zip(&bytes).filter(|(now, before)| now != before).count();
                assert!(cut < 64 * 1024, "byte {at}: {cut} bytes are overwritten");
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    assert!(refused > 0, "some of it is read again when the log is opened");
}

#[tokio::test]
async fn who_dies_before_the_new_log_is_in_its_place_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path(), 3, 100).await;
    let kept = salvage(directory.path(), true).unwrap().kept.unwrap();
    SledStore::open(directory.path()).unwrap().close();
    fs::rename(directory.path().join("log"), directory.path().join("log.next")).unwrap();
    fs::write(directory.path().join("shutdown_marker"), "99 closed\n").unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(whole_runs(&store, 3).await, RUNS.len());
    assert_eq!(store.check(false).await.unwrap().damages, []);
    assert!(kept.exists());
}

#[test]
fn files_of_another_user_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert!(matches!(salvage(directory.path(), true), Err(StoreError::Owned { .. })));
    store.close();
}
