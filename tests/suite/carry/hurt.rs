//! Checking logs that are damaged: each damage is named, nothing panics, and what can be repaired
//! is.

use std::fs;
use std::path::PathBuf;

use longhaul_engine::event::Cause;
use longhaul_engine::{Event, EventKind, Payload, RunId};
use longhaul_storage::RunRecord;
use longhaul_storage::bundle::{Header, Writer};
use longhaul_tests::project::plain;

use super::world::World;

/// A run whose input is too large for a record.
fn large() -> RunRecord {
    let kind = EventKind::RunStarted {
        workflow: "feature".into(),
        input: Payload::of(&"x".repeat(100_000)),
        parent: None,
        labels: [].into(),
        cause: Cause::Started,
    };
    let event = Event { position: 0, at: chrono::DateTime::UNIX_EPOCH, kind };
    RunRecord::of_history(RunId::new("large/1").unwrap(), vec![event]).unwrap()
}

/// The blobs of a log.
fn blobs(home: &std::path::Path) -> Vec<PathBuf> {
    let shards = fs::read_dir(home.join("blobs")).unwrap();
    let files = shards.flat_map(|shard| fs::read_dir(shard.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// Imports a run and takes its payload away; its file.
fn hurt(world: &World) -> String {
    let (file, blob) = with_blob(world);
    fs::remove_file(blob).unwrap();
    file
}

/// Imports a run with a payload that is kept beside the log; both files.
fn with_blob(world: &World) -> (String, PathBuf) {
    let before = blobs(world.longhaul.home());
    let mut writer = Writer::new(Vec::new(), Header::default()).unwrap();
    writer.write(&large()).unwrap();
    let file = world.text("large.jsonl");
    fs::write(&file, writer.finish().unwrap()).unwrap();
    world.longhaul.call(&["import", &file]).exits(0);
    let mut new: Vec<_> =
        blobs(world.longhaul.home()).into_iter().filter(|blob| !before.contains(blob)).collect();
    assert_eq!(new.len(), 1);
    (file, new.remove(0))
}

#[test]
fn one_repair_is_enough_for_a_payload_that_is_not_what_was_written() {
    let world = World::finished();
    let (_, blob) = with_blob(&world);
    fs::write(&blob, "not what was written").unwrap();
    world.longhaul.call(&["check"]).exits(4).says("event 0 of run large/1");
    world.longhaul.call(&["check", "--repair"]).exits(0).says("quarantine");
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
}

#[test]
fn a_log_in_use_is_mended_while_a_project_is_worked_on() {
    let mut world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.at_work("parser");
    let file = hurt(&world);
    world.longhaul.call(&["check"]).exits(4).says("event 0 of run large/1: its blob");
    world
        .longhaul
        .call(&["check", "--repair"])
        .exits(0)
        .says("done: move the run into a file")
        .says("quarantine");
    let moved = std::fs::read_dir(world.longhaul.home().join("quarantine"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for verb in ["import", "replay"] {
        let output = world.longhaul.call(&[verb, &moved.to_string_lossy()]);
        output.exits(4).says("moved out of a damaged log").says("from a backup");
    }
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
    world.longhaul.call(&["import", &file]).exits(0).says("1 run imported");
    world.project.let_go("parser");
    run.exits(0);
    world.longhaul.call(&["check"]).exits(0).says("no damage found");
    world.longhaul.call(&["replay", "--all"]).exits(0).says("4 same");
}

#[test]
fn a_lost_payload_is_named_and_the_rest_goes_on() {
    let world = World::finished();
    let file = hurt(&world);

    let output = world.longhaul.call(&["check"]);
    output
        .exits(4)
        .says("event 0 of run large/1: its blob")
        .says("the file is missing")
        .says("move the run into a file");
    world
        .longhaul
        .call(&["backup", "-O", &world.text("part.jsonl")])
        .exits(5)
        .says("run large/1 is left out");
    world.longhaul.call(&["replay", "--all"]).exits(4).says("5 same").says("1 unreadable");
    world.longhaul.call(&["import", &file]).exits(1).says("refused: the log has a damaged record");
    let report = world.longhaul.call(&["check", "--repair", "-o", "json"]).exits(0).json();
    assert_eq!(report["schema"], "longhaul.check/1");
    assert_eq!(
        (&report["damages"][0]["repaired"], report["quarantined"].as_array().unwrap().len()),
        (&true.into(), 1)
    );
    world.longhaul.call(&["check"]).exits(0).says("5 runs").says("no damage found");
    world.longhaul.call(&["run", &world.root]).exits(0).says("2 of 2 features pass");
    world.longhaul.call(&["import", &file]).exits(0).says("1 run imported");
}

#[test]
fn a_hurt_log_never_passes_for_whole_and_nothing_panics() {
    let world = World::finished();
    let healthy = world.longhaul.call(&["check"]).exits(0).stdout.clone();
    let whole = fs::read(world.longhaul.home().join("log/db")).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    let mut refused = 0;
    for round in 0..16 {
        let home = world.path(&format!("hurt-{round}"));
        copy(world.longhaul.home(), &home);
        let mut bytes = whole.clone();
        if round % 4 == 0 {
            bytes.truncate(used * (round + 1) / 16);
        } else {
            bytes[used * round / 16 + round] ^= 1 << (round % 8);
        }
        fs::write(home.join("log/db"), bytes).unwrap();
        let longhaul = super::world::longhaul(&home);
        for command in
            [&["check"][..], &["replay", "--all"], &["doctor", "/"], &["check", "--repair"]]
        {
            let output = longhaul.call(command);
            assert!(
                !output.stderr.contains("panicked at") && !output.stderr.contains("backtrace"),
                "{command:?}: {}",
                output.stderr
            );
            let passes = output.stdout.ends_with("whole\n");
            assert!(
                !passes || output.stdout == healthy,
                "round {round}: what was lost passes for whole: {}",
                output.stdout
            );
            refused += usize::from(output.stderr.contains("restore it from a backup"));
        }
    }
    assert!(refused > 0, "no damage was noticed at all");
}

pub(super) fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &place);
        } else if path.is_file() {
            fs::copy(&path, &place).unwrap();
        }
    }
}
