//! Damage, other owners, full disks and failing writes: each gives a clear error, never a panic or
//! a silent loss.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_engine::{EventLog, Payload, RunReader, Status, StoreError};
use longhaul_storage::{OpenOptions, RESERVE, SledStore};

use crate::common::{append, end, large, run, signal, start, values};

/// A log with a healthy run, a run to damage, and a run with a blob.
async fn sample(directory: &Path) {
    let store = SledStore::open(directory).unwrap();
    for id in ["good", "hurt", "big"] {
        store.commit(start(id)).await.unwrap();
    }
    for position in 1..5 {
        store.commit(append("good", position, &Payload::of(&position))).await.unwrap();
        store.commit(append("hurt", position, &Payload::of(&position))).await.unwrap();
    }
    store.commit(append("big", 1, &large(1, 20_000))).await.unwrap();
}

/// Changes stored bytes without the store.
pub(crate) fn tamper(directory: &Path, change: impl FnOnce(&sled::Db)) {
    let db = loop {
        match sled::open(directory.join("log")) {
            Ok(db) => break db,
            // The threads of the store just closed may still hold the file.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    change(&db);
    db.flush().unwrap();
}

pub(crate) fn event_key(id: &str, position: u64) -> Vec<u8> {
    [b"e", id.as_bytes(), &[0], &position.to_be_bytes()].concat()
}

pub(crate) fn summary_key(id: &str) -> Vec<u8> {
    [b"s", id.as_bytes(), &[0]].concat()
}

pub(crate) fn change_value(db: &sled::Db, key: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
    let mut value = db.get(key).unwrap().unwrap().to_vec();
    change(&mut value);
    db.insert(key, value).unwrap();
}

/// Writes a frame with a valid checksum.
pub(crate) fn forge(db: &sled::Db, key: &[u8], frame: &[u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(frame);
    let value = [frame, &hasher.finalize().to_le_bytes()].concat();
    db.insert(key, value).unwrap();
}

#[tokio::test]
async fn a_damaged_event_is_named_and_harms_no_other_run() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 3] = [
        ("checksum", |value| value[8] ^= 4),
        ("checksum", |value| value.truncate(20)),
        ("only 3 bytes", |value| value.truncate(3)),
    ];
    for (reason, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        sample(directory.path()).await;
        tamper(directory.path(), |db| change_value(db, &event_key("hurt", 2), change));
        let store = SledStore::open(directory.path()).unwrap();
        let error = store.read(&run("hurt"), 0).await.unwrap_err();
        assert!(
            error.to_string().contains("event 2 of run hurt") && error.to_string().contains(reason),
            "{error}"
        );
        assert_eq!(
            store.read(&run("hurt"), 3).await.unwrap().len(),
            2,
            "later events can still be read"
        );
        assert_eq!(store.read(&run("good"), 0).await.unwrap().len(), 5);
        assert_eq!(store.runs("").await.unwrap().len(), 3);
        store.commit(append("good", 5, &Payload::null())).await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_event_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    tamper(directory.path(), |db| drop(db.remove(event_key("hurt", 0)).unwrap()));
    let store = SledStore::open(directory.path()).unwrap();
    let error = store.read(&run("hurt"), 0).await.unwrap_err();
    assert!(error.to_string().contains("event 0 of run hurt: it is missing"), "{error}");
}

#[tokio::test]
async fn a_record_of_an_unknown_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    tamper(directory.path(), |db| forge(db, &event_key("hurt", 4), &[9, 1, 1, 0, 0, 0, 77]));
    let store = SledStore::open(directory.path()).unwrap();
    let error = store.read(&run("hurt"), 0).await.unwrap_err().to_string();
    assert!(error.contains("format 9 is not known to this version"), "{error}");
}

#[tokio::test]
async fn a_damaged_summary_is_folded_anew() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    let store = SledStore::open(directory.path()).unwrap();
    store.commit(start("over")).await.unwrap();
    store.commit(end("over")).await.unwrap();
    let before = store.runs("").await.unwrap();
    store.close();
    tamper(directory.path(), |db| {
        for id in ["good", "over"] {
            change_value(db, &summary_key(id), |value| value[7] ^= 1);
        }
    });
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.runs("").await.unwrap(), before);
    assert_eq!(store.summary(&run("over")).await.unwrap().unwrap().status, Status::Completed);
    assert_eq!(
        store.deliver(signal("over", "late")).await,
        Ok(None),
        "it is known to be over by its last event"
    );
    assert!(store.deliver(signal("good", "hello")).await.unwrap().is_some());
    store.close();

    tamper(directory.path(), |db| change_value(db, &event_key("good", 1), |value| value[7] ^= 1));
    let store = SledStore::open(directory.path()).unwrap();
    assert!(matches!(store.summary(&run("good")).await, Err(StoreError::Damaged { .. })));
    assert_eq!(
        store.runs("").await.unwrap().len(),
        before.len() - 1,
        "the others are still listed"
    );
}

#[tokio::test]
async fn a_newer_log_is_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    tamper(directory.path(), |db| forge(db, b"@format", &[1, 6, 1, 0, 0, 0, 2]));
    let error = SledStore::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("has format 2") && error.contains("use the newer longhaul"), "{error}");
}

#[tokio::test]
async fn a_second_owner_is_refused_with_the_pid_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    let error = SledStore::open(directory.path()).unwrap_err();
    let pid = std::process::id().to_string();
    assert!(matches!(&error, StoreError::Owned { owner, .. } if *owner == pid), "{error}");
    store.commit(start("a")).await.unwrap();
    store.close();
    SledStore::open(directory.path()).unwrap();
}

#[test]
fn a_place_that_cannot_hold_a_log_is_a_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = SledStore::open(&path).unwrap_err().to_string();
        assert!(error.contains("file"), "{error}");
    }
    let read_only = Path::new("/proc/longhaul");
    let error = SledStore::open(read_only).unwrap_err().to_string();
    assert!(error.contains("creating the directory /proc/longhaul"), "{error}");
}

#[tokio::test]
async fn a_missing_or_damaged_blob_is_named() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    let blob = the_blob(directory.path());
    let whole = std::fs::read(&blob).unwrap();
    for (reason, content) in
        [("hash", flipped(&whole)), ("cut short", vec![1]), ("missing", Vec::new())]
    {
        if content.is_empty() {
            std::fs::remove_file(&blob).unwrap();
        } else {
            std::fs::write(&blob, content).unwrap();
        }
        let store = SledStore::open(directory.path()).unwrap();
        let error = store.read(&run("big"), 0).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Damaged { record, .. } if record == "event 1 of run big"),
            "{error}"
        );
        assert!(error.to_string().contains(reason) || reason == "hash", "{error}");
        assert_eq!(store.read(&run("good"), 0).await.unwrap().len(), 5);
    }
    std::fs::write(&blob, whole).unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(values(&store.read(&run("big"), 0).await.unwrap()), [large(1, 20_000)]);
}

fn flipped(whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

pub(crate) fn the_blob(directory: &Path) -> PathBuf {
    let shards = std::fs::read_dir(directory.join("blobs")).unwrap();
    let files = shards.flat_map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap());
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    files[0].clone()
}

#[tokio::test]
async fn a_half_written_snapshot_does_not_keep_a_log_shut() {
    let directory = tempfile::tempdir().unwrap();
    sample(directory.path()).await;
    std::fs::write(directory.path().join("log/snap.00000000000FFFFF.generating"), "half").unwrap();
    std::fs::create_dir(directory.path().join("log.new")).unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.read(&run("good"), 0).await.unwrap().len(), 5);
}

/// Damage below the record frames: sled may refuse the log or lose its end, but no read may return
/// wrong data or panic.
#[tokio::test]
async fn damage_in_the_files_of_sled_gives_no_wrong_events() {
    let mut opened = 0;
    for round in 0..24_u64 {
        let directory = tempfile::tempdir().unwrap();
        sample(directory.path()).await;
        let path = directory.path().join("log").join(if round % 6 == 5 { "conf" } else { "db" });
        damage(&path, round);
        let Ok(store) = SledStore::open(directory.path()) else {
            continue;
        };
        opened += 1;
        for id in ["good", "hurt"] {
            if let Ok(events) = store.read(&run(id), 0).await {
                let right: Vec<_> =
                    (1..events.len().max(1)).map(|position| Payload::of(&position)).collect();
                assert_eq!(values(&events), right);
            }
        }
        let _ = store.runs("").await;
    }
    assert!(opened < 24, "no damage was noticed at all");
}

fn damage(path: &Path, round: u64) {
    let mut file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    if round.is_multiple_of(4) {
        return file.set_len(length * (round + 1) / 30).unwrap();
    }
    // The data is at the beginning of the file; the rest of a fresh one is empty.
    let at = (round * 397) % length.min(9000);
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte[0] ^ (1 << (round % 8))]).unwrap();
}

#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let probe = Arc::clone(&free);
    let free_space: longhaul_storage::Probe = Arc::new(move || Ok(probe.load(Ordering::Relaxed)));
    let options = OpenOptions { free_space: Some(free_space), ..OpenOptions::default() };
    let store = SledStore::open_with(directory.path(), options).unwrap();
    free.store(RESERVE + 10, Ordering::Relaxed);
    assert!(matches!(store.commit(start("a")).await, Err(StoreError::Full(_))));
    assert!(matches!(store.deliver(signal("a", "x")).await, Err(StoreError::Full(_))));
    assert!(store.read(&run("a"), 0).await.unwrap().is_empty());
    free.store(RESERVE * 2, Ordering::Relaxed);
    store.commit(start("a")).await.unwrap();
    free.store(RESERVE + 4000, Ordering::Relaxed);
    let blobs = || std::fs::read_dir(directory.path().join("blobs")).unwrap().count();
    let before = blobs();
    let large = append("a", 1, &large(1, 2_000_000));
    assert!(matches!(store.commit(large).await, Err(StoreError::Full(_))));
    assert_eq!(blobs(), before, "nothing is written");
    store.commit(append("a", 1, &Payload::null())).await.unwrap();
}

/// Fills the log under a limit on the size of files until a write fails; after that every write
/// must be refused.
#[test]
#[ignore = "runs as the child of the other test"]
fn failing_write_child() {
    let directory = PathBuf::from(std::env::var_os("LONGHAUL_TEST_DIRECTORY").unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let store = SledStore::open(&directory).unwrap();
    runtime.block_on(store.commit(start("a"))).unwrap();
    for position in 1..100_000 {
        if let Err(error) =
            runtime.block_on(store.commit(append("a", position, &large(position, 3_000))))
        {
            assert!(matches!(error, StoreError::Poisoned(_)), "{error}");
            for _ in 0..3 {
                let again = runtime.block_on(store.commit(append("a", position, &Payload::null())));
                assert!(matches!(again, Err(StoreError::Poisoned(_))), "{again:?}");
            }
            println!("acknowledged {position}");
            // Exits without closing the store: sled would wait for a write that cannot succeed.
            std::process::exit(0);
        }
    }
    panic!("no write failed");
}

#[cfg(unix)]
#[tokio::test]
async fn a_failed_write_poisons_the_log_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // The signal for too large files is ignored, so that the writes fail instead; 4096 blocks are 2
    // or 4 MiB.
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "damage::failing_write_child", "--ignored", "--nocapture"])
        .env("LONGHAUL_TEST_DIRECTORY", directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let acknowledged: u64 = text
        .split("acknowledged ")
        .nth(1)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    let events = store.read(&run("a"), 0).await.unwrap();
    assert!(events.len() as u64 >= acknowledged);
    let right: Vec<_> = (1..events.len() as u64).map(|position| large(position, 3_000)).collect();
    assert_eq!(values(&events), right);
    store.commit(append("a", events.len() as u64, &Payload::null())).await.unwrap();
}
