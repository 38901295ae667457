//! Logs damaged at any place, in any way: no damage goes undetected, a check names it, and one
//! repair makes a log that opens, is whole, and keeps all readable data.
//!
//! The first places are fixed, the others chosen by seed; `LONGHAUL_FUZZ_SECONDS` sets the
//! duration, default 2.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longhaul_engine::store::Commit;
use longhaul_engine::{EventLog, RunId, RunReader};
use longhaul_storage::{Archive, CheckReport, RunRecord, Scope, SledStore, check_at_rest};

use crate::common::{completed, large, now, publish, run, start, started, summary_of};
use crate::salvage::{copy, fill};

/// The readable data of each run of a log.
type Content = BTreeMap<RunId, RunRecord>;

/// A log to damage.
struct Sample {
    name: &'static str,
    directory: tempfile::TempDir,
    content: Content,
    /// Whether its owner has closed it: then damage to any byte counts.
    is_closed: bool,
}

/// Bytes of a segment of sled's file.
const SEGMENT: usize = 512 * 1024;

/// A directory in memory, where available: these tests do not depend on the disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn content(store: &SledStore) -> Content {
    let snapshot = futures_executor(store.snapshot(Scope::All)).unwrap();
    let readable = snapshot.iter().filter_map(|(run, record)| Some((run.clone(), record.ok()?)));
    readable.collect()
}

fn futures_executor<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn checked(directory: &Path, repair: bool) -> CheckReport {
    let report = futures_executor(check_at_rest(directory, repair));
    report.unwrap_or_else(|error| panic!("check, repair {repair}: {error}"))
}

async fn end(store: &SledStore, id: &str, position: u64) {
    let summary = summary_of(&[started(), completed(1)]);
    store
        .commit(Commit { summary: Some(summary), ..Commit::of(run(id), vec![completed(position)]) })
        .await
        .unwrap();
}

/// Runs with large payloads; one of them is finished.
async fn payloads(directory: &Path) {
    let store = SledStore::open(directory).unwrap();
    for id in ["big/1", "big/2"] {
        store.commit(start(id)).await.unwrap();
        for position in 1..4 {
            store.commit(publish(id, position, &large(position, 9_000))).await.unwrap();
        }
    }
    store.commit(start("over")).await.unwrap();
    end(&store, "over", 1).await;
    store.close();
}

async fn prune(directory: &Path) {
    let store = SledStore::open(directory).unwrap();
    store.commit(start("pruned")).await.unwrap();
    for position in 1..40 {
        store.commit(publish("pruned", position, &large(position, 2_000))).await.unwrap();
    }
    let events = store.read(&run("pruned"), 0).await.unwrap();
    let events: Vec<_> = events.into_iter().chain([completed(40)]).collect();
    let last = vec![completed(40)];
    store
        .commit(Commit { summary: Some(summary_of(&events)), ..Commit::of(run("pruned"), last) })
        .await
        .unwrap();
    store.prune(&run("pruned"), now()).await.unwrap();
    store.close();
}

fn samples() -> Vec<Sample> {
    let made = ["small", "large", "reopened", "pruned", "in use"].map(|name| {
        let directory = folder();
        let place = directory.path();
        futures_executor(async {
            payloads(place).await;
            fill(
                place,
                if name == "large" { 40 } else { 6 },
                if name == "large" { 4_000 } else { 200 },
            )
            .await;
            if name == "pruned" {
                prune(place).await;
            }
        });
        if name == "reopened" || name == "large" {
            (0..2).for_each(|_| SledStore::open(place).unwrap().close());
        }
        let store = SledStore::open(place).unwrap();
        assert_eq!(futures_executor(store.check(false)).unwrap().damages, [], "{name}");
        let content = content(&store);
        if name == "in use" {
            // The state that a killed owner leaves.
            let killed = folder();
            copy(place, killed.path());
            return Sample { name, directory: killed, content, is_closed: false };
        }
        store.close();
        Sample { name, directory, content, is_closed: true }
    });
    made.into()
}

/// A kind of damage to a log.
#[derive(Debug, Clone)]
enum Harm {
    Flip(usize, usize),
    Zero(usize, usize),
    Fill(usize, usize),
    Cut(usize),
    /// Overwrites a part of the file with another part.
    Move(usize, usize, usize),
    Remove(&'static str),
    Overwrite(&'static str),
    /// The n-th payload: removed, truncated, or changed.
    Payload(usize, usize),
}

fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn payload_files(directory: &Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(directory.join("blobs")).unwrap();
    let files = shards.flat_map(|shard| fs::read_dir(shard.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    files
}

impl Harm {
    fn apply(&self, directory: &Path) {
        let db = directory.join("log/db");
        let edit = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = fs::read(&db).unwrap();
            change(&mut bytes);
            fs::write(&db, bytes).unwrap();
        };
        match self {
            Self::Flip(at, bit) => edit(&|bytes| bytes[*at] ^= 1_u8 << bit),
            Self::Zero(at, length) => edit(&|bytes| {
                let end = (at + length).min(bytes.len());
                bytes[*at..end].fill(0);
            }),
            Self::Fill(at, length) => edit(&|bytes| {
                let end = (at + length).min(bytes.len());
                bytes[*at..end].fill(0xa7);
            }),
            Self::Cut(at) => edit(&|bytes| bytes.truncate(*at)),
            Self::Move(from, to, length) => edit(&|bytes| {
                let length = (*length).min(bytes.len() - from).min(bytes.len() - to);
                bytes.copy_within(*from..from + length, *to);
            }),
            Self::Remove(name) => remove(&directory.join(name)),
            Self::Overwrite(name) => overwrite(&directory.join(name)),
            Self::Payload(number, how) => {
                let files = payload_files(directory);
                let file = &files[number % files.len()];
                let bytes = fs::read(file).unwrap();
                match how % 3 {
                    0 => fs::remove_file(file).unwrap(),
                    1 => fs::write(file, &bytes[..bytes.len() / 2]).unwrap(),
                    _ => fs::write(
                        file,
                        [&bytes[..bytes.len() - 1], &[!bytes[bytes.len() - 1]]].concat(),
                    )
                    .unwrap(),
                }
            }
        }
    }
}

/// `snap` stands for all files with that prefix.
fn all_of(path: &Path) -> Vec<PathBuf> {
    let (folder, name) =
        (path.parent().unwrap(), path.file_name().unwrap().to_string_lossy().into_owned());
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|entry| entry.file_name().unwrap().to_string_lossy().starts_with(&name))
        .collect()
}

fn remove(path: &Path) {
    for path in all_of(path) {
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
}

fn overwrite(path: &Path) {
    for path in all_of(path).into_iter().filter(|path| path.is_file()) {
        fs::write(path, "changed content").unwrap();
    }
}

/// Whether a file is unchanged; zeros may have been appended.
fn is_kept(path: &Path, before: Option<&[u8]>) -> bool {
    let now = fs::read(path).unwrap_or_default();
    let before = before.unwrap_or_default();
    now.strip_prefix(before).is_some_and(|added| added.iter().all(|byte| *byte == 0))
}

/// Damages a copy of a log in one way, and repairs it.
fn try_out(sample: &Sample, harm: &Harm) {
    let hurt = folder();
    copy(sample.directory.path(), hurt.path());
    harm.apply(hurt.path());
    let damaged = fs::read(hurt.path().join("log/db")).ok();
    let case = format!("{}: {harm:?}", sample.name);

    let (opens, readable) = match SledStore::open(hurt.path()) {
        Ok(store) => {
            let readable = content(&store);
            store.close();
            (true, readable)
        }
        Err(longhaul_engine::StoreError::Unopenable { .. }) => (false, Content::new()),
        Err(error) => panic!("{case}: {error}"),
    };
    if !opens {
        assert!(
            is_kept(&hurt.path().join("log/db"), damaged.as_deref()),
            "{case}: a refused log is overwritten"
        );
    }
    let before = checked(hurt.path(), false);
    let sound = before.damages.is_empty();
    assert!(opens || !sound, "{case}: a log that cannot be opened passes for sound");
    if sound && sample.is_closed {
        assert!(readable == sample.content, "{case}: the loss is not detected");
    }

    let report = checked(hurt.path(), true);
    assert!(report.damages.iter().all(|damage| damage.repaired), "{case}: {report:#?}");
    assert_eq!(report.damages.is_empty(), sound, "{case}: {before:#?} {report:#?}");
    assert_eq!(report.kept.is_some(), before.needs_rewrite, "{case}: {before:#?} {report:#?}");
    if let (Some(kept), Some(damaged), false) = (&report.kept, damaged, opens) {
        assert!(
            is_kept(&kept.join("db"), Some(&damaged)),
            "{case}: the damaged log is not kept as it was"
        );
    }
    let after = checked(hurt.path(), false);
    assert!(after.damages.is_empty() && after.unused == 0, "{case}: {after:#?}");

    let store = SledStore::open(hurt.path()).unwrap();
    let left = content(&store);
    for (id, record) in &readable {
        // Its published values and its summary may have been damaged; only its events count.
        let events = left.get(id).map(|left| &left.events);
        assert!(
            events.is_some_and(|events| events.starts_with(&record.events)),
            "{case}: {id} was readable"
        );
    }
    for (id, record) in &left {
        let whole =
            sample.content.get(id).unwrap_or_else(|| panic!("{case}: {id} was never there"));
        let is_pruned = whole.is_pruned();
        let part = whole.events.starts_with(&record.events)
            || (is_pruned && record.events.ends_with(&whole.events));
        assert!(part, "{case}: {id} has other events than those that were written");
    }
    futures_executor(store.commit(start("new"))).unwrap();
    store.close();
    assert_eq!(checked(hurt.path(), false).damages, [], "{case}");
}

#[test]
fn every_kind_of_damage_is_repaired_by_one_repair() {
    for sample in &samples() {
        let length = used(&fs::read(sample.directory.path().join("log/db")).unwrap());
        let is_thorough = std::env::var_os("LONGHAUL_FUZZ_SECONDS").is_some();
        for part in 0..16 {
            let at = length * part / 16 + part;
            if is_thorough || part % 4 == 1 || sample.name == "small" {
                try_out(sample, &Harm::Cut(length * part / 16));
            }
            if is_thorough || part % 5 == 0 {
                try_out(sample, &Harm::Flip(at, part % 8));
                try_out(sample, &Harm::Zero(at, 4096));
            }
        }
        let files = ["log/db", "log/conf", "log/snap", "shutdown_marker"];
        for file in
            files.into_iter().filter(|_| is_thorough || ["small", "in use"].contains(&sample.name))
        {
            try_out(sample, &Harm::Remove(file));
            try_out(sample, &Harm::Overwrite(file));
        }
        // A whole segment over another one: which of the two recovery takes depends on the log.
        for to in [0, SEGMENT] {
            for from in (0..length).step_by(SEGMENT).filter(|from| *from != to && to < length) {
                try_out(sample, &Harm::Move(from, to, SEGMENT));
            }
        }
        for at in (0..length).step_by(SEGMENT) {
            try_out(sample, &Harm::Zero(at, SEGMENT));
        }
        try_out(sample, &Harm::Remove("log"));
        for number in 0..3 {
            try_out(sample, &Harm::Payload(number, number));
        }
    }
}

/// Reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

#[test]
fn damage_at_random_places_is_repaired_by_one_repair() {
    let samples = samples();
    let seconds =
        std::env::var("LONGHAUL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    for seed in 1_u64.. {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let sample = &samples[dice.roll(samples.len())];
        let length = used(&fs::read(sample.directory.path().join("log/db")).unwrap());
        let harm = match dice.roll(7) {
            0 => Harm::Flip(dice.roll(length), dice.roll(8)),
            1 => Harm::Zero(dice.roll(length), 1 << dice.roll(18)),
            2 => Harm::Fill(dice.roll(length), 1 << dice.roll(18)),
            3 => Harm::Cut(dice.roll(length)),
            4 => Harm::Move(dice.roll(length), dice.roll(length), 1 << dice.roll(18)),
            5 => Harm::Payload(dice.roll(100), dice.roll(3)),
            _ => Harm::Move(SEGMENT * dice.roll(length / SEGMENT + 1), 0, SEGMENT),
        };
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| try_out(sample, &harm)));
        assert!(done.is_ok(), "seed {seed}: {}: {harm:?}", sample.name);
        if Instant::now() > until {
            return;
        }
    }
}
