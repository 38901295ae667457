//! Import, export, pruning and repair, for both stores where both support it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{
    append, completed, creation, end, large, now, published, run, signal, start, started,
    summary_of,
};
use longhaul_engine::store::Commit;
use longhaul_engine::{EventLog, Payload, RunReader, Status, StoreError};
use longhaul_storage::bundle::{Header, Reader, Writer};
use longhaul_storage::{Archive, MemoryStore, RunRecord, Scope, SledStore};

/// A shared log under test.
type Log = Arc<dyn Archive>;

conformance! {
    what_is_imported_is_all_there,
    a_run_that_exists_is_not_imported_over,
    what_does_not_fit_together_is_refused,
    a_pruned_run_stays_over,
    a_run_that_goes_on_is_not_pruned,
    a_pruned_run_is_carried_and_can_be_started_again,
}

/// An event that publishes a value, with the value.
fn publishing(id: &str, position: u64, value: &Payload) -> Commit {
    Commit { published: vec![("value".into(), Some(value.clone()))], ..append(id, position, value) }
}

/// A run with a history, an unread message, a small and a large value.
async fn filled(log: &dyn EventLog, id: &str) {
    log.commit(start(id)).await.unwrap();
    log.commit(publishing(id, 1, &large(3, 9_000))).await.unwrap();
    log.deliver(signal(id, "unread")).await.unwrap().unwrap();
}

async fn over(log: &dyn EventLog, id: &str) {
    log.commit(start(id)).await.unwrap();
    for position in 1..4 {
        log.commit(publishing(id, position, &large(position, 6_000))).await.unwrap();
    }
    let events = [started(), completed(4)];
    let last =
        Commit { summary: Some(summary_of(&events)), ..Commit::of(run(id), vec![completed(4)]) };
    log.commit(last).await.unwrap();
}

async fn what_is_imported_is_all_there(log: Log) {
    let elsewhere = MemoryStore::new();
    filled(&elsewhere, "a").await;
    let mut record = elsewhere.export(&run("a")).await.unwrap().unwrap();
    record.mailbox[0].seq = 77 << 32;
    log.import(record.clone()).await.unwrap();
    assert_eq!(log.export(&run("a")).await.unwrap().unwrap(), record);
    assert_eq!(log.read(&run("a"), 0).await.unwrap(), record.events);
    assert_eq!(log.mailbox(&run("a")).await.unwrap(), record.mailbox);
    assert_eq!(log.published(&run("a")).await.unwrap(), record.published);
    assert_eq!(log.summary(&run("a")).await.unwrap(), Some(record.summary.clone()));
    assert_eq!(log.runs_with_mail().await.unwrap(), [run("a")]);
    let next = log.deliver(signal("a", "next")).await.unwrap().unwrap();
    assert!(next.seq > 77 << 32, "a later message comes after those that were brought");
    log.commit(append("a", 2, &Payload::null())).await.unwrap();
    assert!(log.export(&run("b")).await.unwrap().is_none());
}

async fn a_run_that_exists_is_not_imported_over(log: Log) {
    filled(&*log, "a").await;
    let record = log.export(&run("a")).await.unwrap().unwrap();
    let refused = log.import(record.clone()).await;
    assert_eq!(refused, Err(StoreError::Unusable("run a exists already".into())));
    assert_eq!(log.export(&run("a")).await.unwrap(), Some(record));
}

/// Makes a record invalid.
type Change = fn(&mut RunRecord);

async fn what_does_not_fit_together_is_refused(log: Log) {
    filled(&*log, "a").await;
    let good = RunRecord { run: run("b"), ..log.export(&run("a")).await.unwrap().unwrap() };
    let changes: [(&str, Change); 6] = [
        ("no events", |record| record.events.clear()),
        ("have gaps", |record| record.events[1].position = 5),
        ("summary", |record| record.summary.status = Status::Completed),
        ("summary", |record| drop(record.events.remove(0))),
        ("too large", |record| record.mailbox[0].seq = u64::MAX),
        ("too long", |record| drop(record.published.insert("x".repeat(600), Payload::null()))),
    ];
    for (reason, change) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        let error = log.import(bad).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
        assert!(log.export(&run("b")).await.unwrap().is_none());
    }
    log.import(good).await.unwrap();
}

async fn a_pruned_run_stays_over(log: Log) {
    over(&*log, "a").await;
    assert_eq!(log.prune(&run("a"), now()).await, Ok(4));
    assert_eq!(log.prune(&run("a"), now()).await, Ok(0), "there is nothing left to prune");
    assert_eq!(log.read(&run("a"), 0).await.unwrap(), [completed(4)]);
    let summary = log.summary(&run("a")).await.unwrap().unwrap();
    assert_eq!(summary.status, Status::Completed);
    assert_eq!(summary.pruned_at().unwrap().to_string(), "2023-11-14 22:13:20.123456 UTC");
    assert_eq!(
        log.read(&run("a"), summary.origin).await.unwrap(),
        [completed(4)],
        "how it ended is still known"
    );
    assert_eq!(log.runs("").await.unwrap().len(), 1);
    assert_eq!(log.deliver(signal("a", "late")).await, Ok(None));
    log.commit(start("parent")).await.unwrap();
    let bearing =
        Commit { creations: vec![creation("a")], ..append("parent", 1, &Payload::null()) };
    assert_eq!(
        log.commit(bearing).await.unwrap().created,
        [false],
        "it is not begun again by itself"
    );
    let stale = log.commit(append("a", 1, &Payload::null())).await;
    assert_eq!(stale, Err(StoreError::Conflict { run: run("a"), position: 1, end: 5 }));
}

async fn a_run_that_goes_on_is_not_pruned(log: Log) {
    filled(&*log, "a").await;
    assert!(log.prune(&run("a"), now()).await.unwrap_err().to_string().contains("is not over"));
    assert_eq!(log.prune(&run("b"), now()).await, Err(StoreError::UnknownRun(run("b"))));
    assert_eq!(log.read(&run("a"), 0).await.unwrap().len(), 2);
}

async fn a_pruned_run_is_carried_and_can_be_started_again(log: Log) {
    over(&*log, "a").await;
    log.prune(&run("a"), now()).await.unwrap();
    let record = log.export(&run("a")).await.unwrap().unwrap();
    assert!(record.is_pruned());
    let other = MemoryStore::new();
    other.import(record.clone()).await.unwrap();
    assert_eq!(other.export(&run("a")).await.unwrap().unwrap(), record);

    let mut again = started();
    again.position = 5;
    let mut summary = record.summary.clone();
    summary.apply(&again);
    log.commit(Commit {
        summary: Some(summary.clone()),
        ..Commit::of(run("a"), vec![again.clone()])
    })
    .await
    .unwrap();
    assert_eq!(log.read(&run("a"), 0).await.unwrap(), [completed(4), again.clone()]);
    assert_eq!(log.read(&run("a"), summary.origin).await.unwrap(), [again]);
}

/// The run after a write to a file, a read, and another write.
async fn bundled(store: &SledStore) -> Vec<u8> {
    let snapshot = store.snapshot(Scope::All).await.unwrap();
    let mut writer = Writer::new(Vec::new(), Header::default()).unwrap();
    for (_, record) in snapshot.iter() {
        writer.write(&record.unwrap()).unwrap();
    }
    writer.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_carried_over_is_the_same_to_the_byte() {
    let here = tempfile::tempdir().unwrap();
    let there = tempfile::tempdir().unwrap();
    let store = SledStore::open(here.path()).unwrap();
    filled(&store, "a").await;
    over(&store, "b").await;
    over(&store, "c/d").await;
    store.prune(&run("b"), now()).await.unwrap();
    let file = bundled(&store).await;
    let other = SledStore::open(there.path()).unwrap();
    for record in Reader::new(&file[..]).unwrap() {
        other.import(record.unwrap()).await.unwrap();
    }
    assert_eq!(String::from_utf8(bundled(&other).await).unwrap(), String::from_utf8(file).unwrap());
    other.close();
    let other = SledStore::open(there.path()).unwrap();
    assert!(other.check(false).await.unwrap().damages.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_messages_are_never_used_twice_after_an_import() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    let events = vec![started()];
    let mut record = RunRecord::of_history(run("a"), events).unwrap();
    let message =
        longhaul_engine::Message { seq: 9 << 32, at: now(), body: signal("a", "old").body };
    record.mailbox.push(message);
    store.import(record).await.unwrap();
    store.follow_on(12).await.unwrap();
    store.close();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.epoch(), 13);
    store.deliver(signal("a", "new")).await.unwrap();
    let names: Vec<_> =
        store.mailbox(&run("a")).await.unwrap().iter().map(|message| message.seq >> 32).collect();
    assert_eq!(names, [9, 13]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_removes_unreferenced_blobs() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    over(&store, "a").await;
    store.commit(start("b")).await.unwrap();
    // Only the blob of event 2 of the other run is removed; that of its event 3 is still published.
    store.commit(append("b", 1, &large(2, 6_000))).await.unwrap();
    assert_eq!(store.sweep().await.unwrap().files, 0);
    store.prune(&run("a"), now()).await.unwrap();
    let swept = store.sweep().await.unwrap();
    assert!(swept.files == 1 && swept.bytes > 0, "{swept:?}");
    assert_eq!(store.read(&run("b"), 0).await.unwrap()[1], published(1, &large(2, 6_000)));
    // A removed blob can be written again.
    store.commit(append("b", 2, &large(1, 6_000))).await.unwrap();
    assert_eq!(store.read(&run("b"), 2).await.unwrap(), [published(2, &large(1, 6_000))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_stay_while_a_snapshot_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SledStore::open(directory.path()).unwrap());
    over(&*store, "a").await;
    let before = store.export(&run("a")).await.unwrap().unwrap();
    let snapshot = store.snapshot(Scope::All).await.unwrap();
    store.prune(&run("a"), now()).await.unwrap();
    let sweeper = Arc::clone(&store);
    let sweeping = tokio::spawn(async move { sweeper.sweep().await.unwrap() });
    tokio::task::yield_now().await;
    assert_eq!(snapshot.iter().next().unwrap().1.unwrap(), before);
    // Writes during the snapshot do not wait for it.
    store.commit(start("b")).await.unwrap();
    store.commit(append("b", 1, &large(9, 9_000))).await.unwrap();
    drop(snapshot);
    assert_eq!(sweeping.await.unwrap().files, 2);
    assert_eq!(store.read(&run("b"), 0).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SledStore::open(directory.path()).unwrap());
    for id in ["a", "b"] {
        store.commit(start(id)).await.unwrap();
    }
    let writer = Arc::clone(&store);
    let writing = tokio::spawn(async move {
        for position in 1..400 {
            let mut commit = append("a", position, &Payload::of(&position));
            commit.deliveries = vec![signal("b", "each")];
            writer.commit(commit).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let snapshot = store.snapshot(Scope::All).await.unwrap();
        let runs: BTreeMap<_, _> =
            snapshot.iter().map(|(run, record)| (run.to_string(), record.unwrap())).collect();
        assert_eq!(
            runs["a"].events.len() - 1,
            runs["b"].mailbox.len(),
            "each event with its message, or neither"
        );
    }
    writing.await.unwrap();
    store.commit(end("b")).await.unwrap();
}
