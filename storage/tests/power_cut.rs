//! No append is acknowledged before its data, and the names of the files that hold it, are on
//! stable storage.
//!
//! A child process commits under a shim that logs its system calls. The calls are replayed on a
//! model of a disk that loses unsynced writes, the power is cut at many points, and each image is
//! opened and must hold all commits acknowledged by then. Needs a C compiler (`cc`), which a Rust
//! toolchain needs as its linker anyway.

pub(crate) mod disk;
pub(crate) mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use disk::{Disk, Random, Survival};
use longhaul_engine::{EventLog, Payload, RunReader};
use longhaul_storage::{OpenOptions, SledStore};
use trace::Step;

use crate::common::{append, large, run, start, values};

/// How many runs the child writes at once, and how many events it appends to each per session.
const RUNS: u64 = 4;
const EVENTS: u64 = 25;
const LIVES: u64 = 3;

/// The number of acknowledged events, by run.
type Acknowledged = BTreeMap<u64, u64>;

/// The work of the child: open, commit, close, three times, with a line in `acks` for each
/// acknowledgement.
#[test]
#[ignore = "runs as the child of the other tests"]
fn power_cut_child() {
    let root = PathBuf::from(std::env::var_os("LONGHAUL_TRACE_ROOT").unwrap());
    let sync = std::env::var_os("LONGHAUL_TEST_NO_SYNC").is_none();
    let acks = Arc::new(std::fs::File::create(root.join("acks")).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for life in 0..LIVES {
        let options = OpenOptions { sync, ..OpenOptions::default() };
        let store = Arc::new(SledStore::open_with(&root.join("deep/data"), options).unwrap());
        let tasks = (0..RUNS).map(|number| {
            runtime.spawn(write_run(Arc::clone(&store), Arc::clone(&acks), number, life))
        });
        for task in tasks.collect::<Vec<_>>() {
            runtime.block_on(task).unwrap();
        }
    }
}

async fn write_run(store: Arc<SledStore>, acks: Arc<std::fs::File>, number: u64, life: u64) {
    let id = format!("r{number}");
    for position in life * EVENTS..(life + 1) * EVENTS {
        let commit = match position {
            0 => start(&id),
            _ => append(&id, position, &value(number, position)),
        };
        store.commit(commit).await.unwrap();
        std::io::Write::write_all(&mut &*acks, format!("{number} {position}\n").as_bytes())
            .unwrap();
    }
}

/// Small payloads, payloads that become blobs, and payloads just short enough to stay inline.
fn value(number: u64, position: u64) -> Payload {
    let seed = number * 1000 + position;
    match position % 5 {
        0 => large(seed, 30_000),
        3 => large(seed, 3_900),
        _ => Payload::of(&seed),
    }
}

/// The system calls of a child.
pub(crate) fn traced(root: &Path, test: &str, sync: bool) -> Vec<Step> {
    let work = tempfile::tempdir().unwrap();
    let (source, shim, trace) =
        (work.path().join("shim.c"), work.path().join("shim.so"), work.path().join("trace"));
    std::fs::write(&source, include_str!("power_cut/shim.c")).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&shim, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--ignored", "--nocapture"]);
    child.env("LD_PRELOAD", &shim).env("LONGHAUL_TRACE", &trace).env("LONGHAUL_TRACE_ROOT", root);
    if !sync {
        child.env("LONGHAUL_TEST_NO_SYNC", "1");
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    trace::parse(&std::fs::read(trace).unwrap())
}

/// Cuts the power at many points; returns a line for each loss.
fn losses(sync: bool, cuts: usize) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let steps = traced(&root, "power_cut::power_cut_child", sync);
    let acks = root.join("acks");
    let mut random = Random(7);
    let mut disk = Disk::new(&root);
    let mut acknowledged = Acknowledged::new();
    let mut losses = Vec::new();
    let mut checked = 0;
    let answers = RUNS * EVENTS * LIVES;
    for (number, step) in steps.iter().enumerate() {
        disk.apply(step);
        let answer = match step {
            Step::Write { fd, data, .. } if disk.is_open_on(*fd, &acks) => Some(data),
            _ => None,
        };
        if let Some(data) = answer {
            let text = std::str::from_utf8(data).unwrap();
            let (run, position) = text.trim().split_once(' ').unwrap();
            acknowledged.insert(run.parse().unwrap(), position.parse::<u64>().unwrap() + 1);
        }
        // About half of the cuts follow an acknowledgement, the others are at random points.
        let one_in = if answer.is_some() { answers } else { steps.len() as u64 } * 2 / cuts as u64;
        if !random.next().is_multiple_of(one_in.max(1)) {
            continue;
        }
        for survival in [Survival::Everything, Survival::Nothing, Survival::RandomHalf] {
            checked += 1;
            let image = tempfile::tempdir().unwrap();
            disk.image(image.path(), survival, &mut random);
            if let Err(loss) = check(&image.path().join("deep/data"), &acknowledged) {
                losses
                    .push(format!("after call {number} of {} ({survival:?}): {loss}", steps.len()));
            }
        }
    }
    assert_eq!(acknowledged.values().sum::<u64>(), answers, "the trace holds all answers");
    assert!(checked > cuts, "only {checked} images were made");
    losses
}

/// Opens an image, and searches for the acknowledged events.
fn check(directory: &Path, acknowledged: &Acknowledged) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = SledStore::open(directory).map_err(|error| error.to_string())?;
    for number in 0..RUNS {
        let id = format!("r{number}");
        let events =
            runtime.block_on(store.read(&run(&id), 0)).map_err(|error| error.to_string())?;
        let (found, expected) =
            (events.len() as u64, acknowledged.get(&number).copied().unwrap_or(0));
        if found < expected {
            return Err(format!("run {id} has {found} events of {expected}"));
        }
        let right: Vec<_> = (1..found).map(|position| value(number, position)).collect();
        if values(&events) != right {
            return Err(format!("run {id} has other events than those that were written"));
        }
        let next = if found == 0 { start(&id) } else { append(&id, found, &value(number, found)) };
        runtime.block_on(store.commit(next)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut() {
    let losses = losses(true, 40);
    assert!(losses.is_empty(), "{} losses:\n{}", losses.len(), losses.join("\n"));
}

#[test]
fn without_the_sync_the_test_finds_the_loss() {
    let losses = losses(false, 20);
    assert!(losses.len() > 3, "only {losses:?}");
}
