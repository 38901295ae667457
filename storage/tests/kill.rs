//! A process killed at any moment, even while opening, loses no acknowledged commit.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{EventLog, Payload, RunReader};
use longhaul_storage::SledStore;

use crate::common::{append, large, run, start, values};

const ROUNDS: u64 = 30;
const RUNS: u64 = 8;

#[test]
#[ignore = "runs as the child of the other test"]
fn kill_child() {
    let directory = PathBuf::from(std::env::var_os("LONGHAUL_TEST_DIRECTORY").unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let store = Arc::new(SledStore::open(&directory).unwrap());
    let tasks = (0..RUNS).map(|number| {
        let store = Arc::clone(&store);
        runtime.spawn(async move {
            let id = format!("r{number}");
            let mut position = store.read(&run(&id), 0).await.unwrap().len() as u64;
            loop {
                let commit = match position {
                    0 => start(&id),
                    _ => append(&id, position, &value(number, position)),
                };
                store.commit(commit).await.unwrap();
                println!("acknowledged {number} {position}");
                position += 1;
            }
        })
    });
    let tasks = tasks.collect::<Vec<_>>();
    runtime.block_on(futures_util::future::join_all(tasks));
}

fn value(number: u64, position: u64) -> Payload {
    let seed = number * 100_000 + position;
    if position.is_multiple_of(10) { large(seed, 9_000) } else { Payload::of(&seed) }
}

fn child(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::kill_child", "--ignored", "--nocapture"])
        .env("LONGHAUL_TEST_DIRECTORY", directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::<u64, u64>::new();
    // A busy machine starts the work later than an idle one.
    let mut patience = 0;
    let enough = |acknowledged: &BTreeMap<u64, u64>| acknowledged.values().sum::<u64>() > 100;
    for round in 0.. {
        if round >= ROUNDS && enough(&acknowledged) {
            break;
        }
        assert!(round < 10 * ROUNDS, "hardly anything is acknowledged: {acknowledged:?}");
        let mut child = child(directory.path());
        let output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).collect::<Vec<_>>()
        });
        // From the start of opening to the middle of the work.
        std::thread::sleep(Duration::from_millis(2 + (round * 7) % 60 + patience));
        child.kill().unwrap();
        child.wait().unwrap();
        let before = acknowledged.clone();
        for line in reader.join().unwrap() {
            // The test harness prints on the same lines.
            let Some((_, rest)) = line.split_once("acknowledged ") else {
                continue;
            };
            let Some((number, position)) = rest.split_once(' ') else {
                continue;
            };
            let known = acknowledged.entry(number.parse().unwrap()).or_default();
            *known = (*known).max(position.parse::<u64>().unwrap() + 1);
        }
        if acknowledged == before {
            patience = patience * 2 + 20;
        }
    }
    let store = SledStore::open(directory.path()).unwrap();
    for (number, expected) in acknowledged {
        let events = store.read(&run(&format!("r{number}")), 0).await.unwrap();
        assert!(events.len() as u64 >= expected, "run {number}: {} of {expected}", events.len());
        let right: Vec<_> =
            (1..events.len() as u64).map(|position| value(number, position)).collect();
        assert_eq!(values(&events), right);
    }
}
