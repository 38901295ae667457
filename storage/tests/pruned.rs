//! The next open of a pruned log shrinks it on disk; a crash during that loses nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use longhaul_engine::store::Commit;
use longhaul_engine::{Event, EventLog, Position, RunReader};
use longhaul_storage::{Archive, SledStore};

use crate::common::{completed, large, now, publish, run, start, started, summary_of, values};
use crate::salvage::copy;

/// The number of events of each run, without the start and the end.
const EVENTS: Position = 12;

/// A log with finished runs, of which the even ones are pruned, and one active run.
async fn fill(directory: &Path, runs: u64, bytes: usize) {
    let store = SledStore::open(directory).unwrap();
    write(&store, runs, bytes).await;
    prune(&store, runs).await;
    store.close();
}

async fn write(store: &SledStore, runs: u64, bytes: usize) {
    for number in 0..runs {
        let id = format!("over/{number}");
        store.commit(start(&id)).await.unwrap();
        for position in 1..=EVENTS {
            store
                .commit(publish(&id, position, &large(number * 1000 + position, bytes)))
                .await
                .unwrap();
        }
        let summary = summary_of(&[started(), completed(1)]);
        let last = vec![completed(EVENTS + 1)];
        store
            .commit(Commit { summary: Some(summary), ..Commit::of(run(&id), last) })
            .await
            .unwrap();
    }
    store.commit(start("going/on")).await.unwrap();
}

async fn prune(store: &SledStore, runs: u64) {
    for number in (0..runs).step_by(2) {
        assert_eq!(store.prune(&run(&format!("over/{number}")), now()).await.unwrap(), EVENTS + 1);
    }
    store.sweep().await.unwrap();
}

/// The findings in a log; whether runs are pruned may depend on the point of the crash.
async fn wrong(
    store: &SledStore,
    runs: u64,
    bytes: usize,
    is_pruned: Option<bool>,
) -> Option<String> {
    for number in 0..runs {
        let id = format!("over/{number}");
        let events = match store.read(&run(&id), 0).await {
            Ok(events) => events,
            Err(error) => return Some(error.to_string()),
        };
        let summary = store.summary(&run(&id)).await.unwrap();
        let Some(summary) = summary else { return Some(format!("{id} has no summary")) };
        let pruned = summary.pruned.is_some();
        let expected = number % 2 == 0 && is_pruned.unwrap_or(pruned);
        if pruned != expected || !is_right(&events, number, bytes, pruned) {
            return Some(format!("{id}: pruned {pruned}, {} events", events.len()));
        }
    }
    let report = store.check(false).await.unwrap();
    (!report.damages.is_empty()).then(|| format!("{:?}", report.damages))
}

fn is_right(events: &[Event], number: u64, bytes: usize, pruned: bool) -> bool {
    if pruned {
        return *events == [completed(EVENTS + 1)];
    }
    let right: Vec<_> =
        (1..=EVENTS).map(|position| large(number * 1000 + position, bytes)).collect();
    events.len() as u64 == EVENTS + 2 && values(events) == right
}

fn size(path: &Path) -> u64 {
    if path.is_file() {
        return fs::metadata(path).unwrap().len();
    }
    fs::read_dir(path).unwrap().map(|entry| size(&entry.unwrap().path())).sum()
}

#[tokio::test]
async fn a_pruned_log_takes_less_space_once_it_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let runs = 80;
    let store = SledStore::open(directory.path()).unwrap();
    write(&store, runs, 3_000).await;
    store.close();
    let before = size(&log);
    let store = SledStore::open(directory.path()).unwrap();
    prune(&store, runs).await;
    let epoch = store.epoch();
    store.close();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(store.epoch(), epoch + 1);
    assert_eq!(wrong(&store, runs, 3_000, Some(true)).await, None);
    store.close();
    let after = size(&log);
    assert!(after * 3 < before * 2, "the log takes {after} bytes, {before} before");
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["blobs", "lock", "log", "shutdown_marker"]);
    // It is not rewritten at every open.
    let file = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(log.join("db")).unwrap());
    let known = file();
    SledStore::open(directory.path()).unwrap().close();
    assert_eq!(file(), known);
}

#[tokio::test]
async fn payloads_of_pruned_runs_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path()).unwrap();
    write(&store, 4, 9_000).await;
    let before = size(&directory.path().join("blobs"));
    prune(&store, 4).await;
    assert!(size(&directory.path().join("blobs")) * 3 < before * 2);
    store.close();
    let store = SledStore::open(directory.path()).unwrap();
    assert_eq!(wrong(&store, 4, 9_000, Some(true)).await, None);
}

#[test]
#[ignore = "runs as the child of the other test"]
fn rewriting_child() {
    SledStore::open(&PathBuf::from(std::env::var_os("LONGHAUL_TEST_DIRECTORY").unwrap()))
        .unwrap()
        .close();
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_rewrites_loses_nothing() {
    let whole = tempfile::tempdir().unwrap();
    fill(whole.path(), 30, 3_000).await;
    let mut cut = 0;
    for round in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        copy(whole.path(), directory.path());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pruned::rewriting_child", "--ignored"])
            .env("LONGHAUL_TEST_DIRECTORY", directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Kills after the rewrite has begun, each time a little later.
        let draft = directory.path().join("log.new");
        while !draft.exists()
            && !directory.path().join("log.next").exists()
            && child.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_millis(round * 5 % 70));
        child.kill().unwrap();
        cut += u32::from(!child.wait().unwrap().success());
        let store = SledStore::open(directory.path()).unwrap();
        assert_eq!(wrong(&store, 30, 3_000, Some(true)).await, None, "round {round}");
        store.close();
    }
    assert!(cut > 0, "no process was killed before its end");
}

#[cfg(target_os = "linux")]
mod power {
    use std::path::PathBuf;

    use longhaul_storage::SledStore;

    use super::{prune, write, wrong};
    use crate::power_cut::disk::{Disk, Random, Survival};
    use crate::power_cut::trace::Step;
    use crate::power_cut::traced;

    const RUNS: u64 = 3;
    const BYTES: usize = 3_000;
    const CUTS: u64 = 60;

    #[test]
    #[ignore = "runs as the child of the other test"]
    fn pruning_child() {
        let root = PathBuf::from(std::env::var_os("LONGHAUL_TRACE_ROOT").unwrap());
        let acks = std::fs::File::create(root.join("acks")).unwrap();
        let say = |word: &str| std::io::Write::write_all(&mut &acks, word.as_bytes()).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let store = SledStore::open(&root.join("data")).unwrap();
        runtime.block_on(write(&store, RUNS, BYTES));
        say("written\n");
        runtime.block_on(prune(&store, RUNS));
        say("pruned\n");
        store.close();
        SledStore::open(&root.join("data")).unwrap().close();
        say("rewritten\n");
    }

    #[test]
    fn nothing_is_lost_in_a_power_cut_while_a_log_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let steps = traced(&root, "pruned::power::pruning_child", true);
        let (mut disk, mut random, mut losses) = (Disk::new(&root), Random(11), Vec::new());
        let (mut acknowledged, mut cuts) = (0, 0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let acks = root.join("acks");
        for (number, step) in steps.iter().enumerate() {
            disk.apply(step);
            acknowledged +=
                u32::from(matches!(step, Step::Write { fd, .. } if disk.is_open_on(*fd, &acks)));
            let is_rename = matches!(step, Step::Rename { .. });
            if acknowledged == 0
                || !(is_rename || random.next().is_multiple_of(steps.len() as u64 / CUTS + 1))
            {
                continue;
            }
            for survival in [Survival::Everything, Survival::Nothing, Survival::RandomHalf] {
                cuts += 1;
                let image = tempfile::tempdir().unwrap();
                disk.image(image.path(), survival, &mut random);
                let is_pruned = (acknowledged > 1).then_some(true);
                let loss = match SledStore::open(&image.path().join("data")) {
                    Ok(store) => runtime.block_on(wrong(&store, RUNS, BYTES, is_pruned)),
                    Err(error) => Some(error.to_string()),
                };
                losses
                    .extend(loss.map(|loss| format!("after call {number} ({survival:?}): {loss}")));
            }
        }
        assert_eq!((acknowledged, cuts > 30), (3, true), "{cuts} cuts");
        assert!(losses.is_empty(), "{} losses:\n{}", losses.len(), losses.join("\n"));
    }
}
