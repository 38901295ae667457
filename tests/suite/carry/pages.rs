//! A log of which one page is damaged: what can be read is saved, and what cannot is named.

use std::fs;
use std::path::Path;

use longhaul_engine::event::Cause;
use longhaul_engine::{Event, EventKind, Payload, RunId};
use longhaul_storage::bundle::{Header, Writer};
use longhaul_storage::{RunRecord, SledStore};
use longhaul_tests::command::Longhaul;

use super::hurt::copy;
use super::world::{World, longhaul};

/// Fills the log, so that it has more than one page of each kind.
fn fill(world: &World) {
    let mut writer = Writer::new(Vec::new(), Header::default()).unwrap();
    for number in 100..400 {
        let kind = EventKind::RunStarted {
            workflow: "feature".into(),
            input: Payload::of(&format!("{number}").repeat(500)),
            parent: None,
            labels: [].into(),
            cause: Cause::Started,
        };
        let event = Event { position: 0, at: chrono::DateTime::UNIX_EPOCH, kind };
        let run = RunId::new(format!("bulk/{number}/1")).unwrap();
        writer.write(&RunRecord::of_history(run, vec![event]).unwrap()).unwrap();
    }
    let file = world.text("bulk.jsonl");
    fs::write(&file, writer.finish().unwrap()).unwrap();
    world.longhaul.call(&["import", &file]).exits(0);
    // What was there when the log is opened is not read through again after that.
    world.longhaul.call(&["check"]).exits(0);
}

/// A copy of the log in which a page of events is damaged, and the log can still be opened.
pub(super) fn with_damaged_page(world: &World) -> Longhaul {
    fill(world);
    let whole = fs::read(world.longhaul.home().join("log/db")).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..64 {
        let home = world.path(&format!("page-{round}"));
        copy(world.longhaul.home(), &home);
        let mut bytes = whole.clone();
        let at = 100 + used * round / 64;
        bytes[at..at + 4].iter_mut().for_each(|byte| *byte ^= 0x5a);
        fs::write(home.join("log/db"), bytes).unwrap();
        let Ok(store) = SledStore::open(&home) else { continue };
        let report = runtime.block_on(store.check(false)).unwrap();
        store.close();
        if report.damages.iter().any(|damage| damage.what.contains("may be lost")) {
            return longhaul(&home);
        }
    }
    panic!("no page of events could be damaged")
}

#[test]
fn what_can_be_read_around_a_damaged_page_is_saved() {
    let world = World::finished();
    let hurt = with_damaged_page(&world);
    let db = hurt.home().join("log/db");
    let output = hurt.call(&["check"]);
    output
        .exits(4)
        .says(&format!("page of {}", db.display()))
        .says("is damaged")
        .says("longhaul restore");
    assert!(!output.stderr.contains("panicked at"), "{}", output.stderr);
    let file = world.text("rest.jsonl");
    let output = hurt.call(&["export", "--all", "-O", &file]);
    output
        .exits(4)
        .says("cannot be read from")
        .says("is left out")
        .says("this is what can be read");
    let saved = longhaul(world.path("saved"));
    saved.call(&["import", &file]).exits(0);
    saved.call(&["check"]).exits(0).says("no damage found");
    hurt.call(&["backup", "-O", &world.text("rest.zst")]).exits(4).says("this is what can be read");
    hurt.call(&["replay", "--all"]).exits(4).says("unreadable");
    hurt.call(&["doctor", "/"])
        .exits(1)
        .says("cannot be read from")
        .says("longhaul check --repair");

    let output = hurt.call(&["check", "--repair"]);
    output
        .exits(0)
        .says("done: build a new log from the readable part")
        .says("the damaged log is kept as");
    hurt.call(&["check"]).exits(0).says("no damage found");
    let after = hurt.call(&["list", "-o", "ids", "--limit", "1000"]).exits(0).stdout.clone();
    let before = saved.call(&["list", "-o", "ids", "--limit", "1000"]).exits(0).stdout.clone();
    let is_there = |run: &str| after.lines().any(|line| line == run);
    assert!(before.lines().all(is_there), "what could be exported is there: {before}\n{after}");
}

#[test]
fn a_log_that_was_cut_says_so_in_one_line() {
    let world = World::finished();
    let whole = fs::read(world.longhaul.home().join("log/db")).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    for part in [2, 3, 4, 8] {
        let home = world.path(&format!("cut-{part}"));
        copy(world.longhaul.home(), &home);
        fs::write(home.join("log/db"), &whole[..used / part]).unwrap();
        says_one_line(&home);
        is_made_anew(&home);
    }
}

fn says_one_line(home: &Path) {
    for command in [&["list"][..], &["export", "--all"]] {
        let output = longhaul(home).call(command);
        let shown: Vec<&str> = output.stderr.lines().collect();
        assert!(
            !output.stderr.contains("panicked") && !output.stderr.contains("backtrace"),
            "{command:?}: {}",
            output.stderr
        );
        output.exits(4).says("restore it from a backup").says(&home.display().to_string());
        assert_eq!(shown.len(), 1, "{command:?}: {}", output.stderr);
    }
}

fn is_made_anew(home: &Path) {
    let hurt = longhaul(home);
    hurt.call(&["check"])
        .exits(4)
        .says("it cannot be opened")
        .says("a backup may hold more")
        .says("check --repair");
    hurt.call(&["check", "--repair"]).exits(0).says("the damaged log is kept as");
    hurt.call(&["check"]).exits(0).says("no damage found");
    hurt.call(&["list"]).exits(0);
}
