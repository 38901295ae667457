//! Data that a log on disk keeps across owners.

use crate::common::{append, creation, end, large, now, run, signal, start, values};
use longhaul_engine::store::Commit;
use longhaul_engine::{
    Event, EventKind, EventLog, MessageBody, Payload, RequestedBy, RunId, RunReader, StoreError,
};
use longhaul_storage::SledStore;

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/data");
    let store = SledStore::open(&path).unwrap();
    assert_eq!(store.epoch(), 1);
    let value = large(1, 9000);
    store.commit(start("a")).await.unwrap();
    store.commit(start("over")).await.unwrap();
    store.commit(end("over")).await.unwrap();
    let first = store.deliver(signal("a", "first")).await.unwrap().unwrap();
    let commit = Commit {
        published: vec![("plan".into(), Some(value.clone()))],
        creations: vec![creation("child")],
        ..append("a", 1, &value)
    };
    store.commit(commit).await.unwrap();
    store.close();

    let store = SledStore::open(&path).unwrap();
    assert_eq!(store.epoch(), 2);
    assert_eq!(values(&store.read(&run("a"), 0).await.unwrap()), std::slice::from_ref(&value));
    assert_eq!(store.published(&run("a")).await.unwrap()["plan"], value);
    assert_eq!(store.mailbox(&run("a")).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(store.runs("").await.unwrap().len(), 3);
    let second = store.deliver(signal("a", "second")).await.unwrap().unwrap();
    assert!(second.seq > first.seq);
    assert_eq!(store.deliver(signal("over", "late")).await, Ok(None));
    let stale = store.commit(append("a", 1, &value)).await;
    assert_eq!(stale, Err(StoreError::Conflict { run: run("a"), position: 1, end: 2 }));
    store.commit(append("a", 2, &value)).await.unwrap();
    let again = Commit { creations: vec![creation("child")], ..append("a", 3, &Payload::null()) };
    assert_eq!(store.commit(again).await.unwrap().created, [false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_wait_share_a_group() {
    let directory = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(SledStore::open(directory.path()).unwrap());
    let tasks = (0..64).map(|writer| {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move {
            let id = format!("w{writer}");
            store.commit(start(&id)).await.unwrap();
            for position in 1..20 {
                store.commit(append(&id, position, &Payload::null())).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let statistics = store.statistics();
    assert_eq!((statistics.commits, statistics.events), (1280, 1280));
    assert!(statistics.mean_group() > 1.0, "{statistics:?}");
}

#[tokio::test]
async fn a_commit_that_was_sent_is_finished_before_the_log_closes() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let store = SledStore::open(directory.path()).unwrap();
        store.commit(start(&format!("r{round}"))).await.unwrap();
        store.close();
    }
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.runs("r").await.unwrap().len(), 10);
    assert_eq!(store.epoch(), 11);
}

/// sled never syncs the data that it moves out of its log, so this must not happen: not with the
/// longest records under the longest keys, in order and out of order, added and removed.
#[tokio::test]
async fn sled_moves_nothing_out_of_its_log() {
    const LONGEST: usize = 5100;
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    let id = "r".repeat(RunId::MAX_LEN);
    store.commit(start(&id)).await.unwrap();
    let parked = |position| Event {
        position,
        at: now(),
        kind: EventKind::VersionMarked { command: 1, change: "r".repeat(LONGEST), version: 1 },
    };
    store.commit(Commit::of(run(&id), (1..400).map(parked).collect())).await.unwrap();
    for position in 400..500 {
        store.commit(Commit::of(run(&id), vec![parked(position)])).await.unwrap();
    }
    for number in 0..300_u64 {
        let mut delivery = signal(&id, "x");
        delivery.body =
            MessageBody::Pause(RequestedBy { by: "b".repeat(LONGEST), why: String::new() });
        let message = store.deliver(delivery).await.unwrap().unwrap();
        let name = format!("{:0512}", (number * 7919) % 300);
        let published = vec![(name, Some(Payload::of(&"v".repeat(4000))))];
        let consumed = (number % 8 != 0).then_some(message.seq).into_iter().collect();
        store
            .commit(Commit { published, consumed, ..Commit::of(run(&id), Vec::new()) })
            .await
            .unwrap();
    }
    let count = |path: &str| std::fs::read_dir(directory.path().join(path)).unwrap().count();
    assert_eq!((count("log/blobs"), count("blobs")), (0, 0));
    store.close();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.read(&run(&id), 0).await.unwrap().len(), 500);
    assert_eq!(store.published(&run(&id)).await.unwrap().len(), 300);
    assert_eq!(count("log/blobs"), 0);
}
