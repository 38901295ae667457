//! Replaying on a machine that has nothing but the file.

use longhaul_engine::{EventKind, Payload};
use longhaul_storage::bundle::{Header, Writer};
use longhaul_storage::{RunRecord, history_file};
use longhaul_tests::command::Longhaul;
use tempfile::TempDir;

use super::world::{last_line, longhaul};

/// A machine on which Longhaul has never run.
fn empty_machine() -> (TempDir, Longhaul) {
    let folder = tempfile::tempdir().unwrap();
    let longhaul = longhaul(folder.path().join("never"));
    (folder, longhaul)
}

fn histories() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/histories").to_owned()
}

fn story(name: &str) -> String {
    format!("{}/{name}.jsonl", histories())
}

/// The history of a story, with its activities of one name renamed.
fn changed(name: &str, from: &str, to: &str) -> RunRecord {
    let text = std::fs::read_to_string(story(name)).unwrap();
    let (run, mut events) = history_file::read(&text).unwrap();
    for event in &mut events {
        if let EventKind::ActivityCompleted { name, .. } = &mut event.kind
            && name == from
        {
            to.clone_into(name);
        }
    }
    RunRecord::of_history(run, events).unwrap()
}

#[test]
fn files_are_replayed_where_there_is_nothing_else() {
    let (folder, machine) = empty_machine();
    let output = machine.call(&["replay", &histories()]);
    let stories = std::fs::read_dir(histories()).unwrap().count();
    assert_eq!(last_line(output.exits(0)), format!("{stories} runs: {stories} same, 0 diverged"));
    machine.call(&["replay", &story("feature-blocked")]).exits(0).says("1 run: 1 same");
    machine
        .feed(&["replay", "-"], story("feature-tampers").as_ref())
        .exits(0)
        .says("1 run: 1 same");
    let both = [
        std::fs::read(story("feature-blocked")).unwrap(),
        std::fs::read(story("feature-tampers")).unwrap(),
    ];
    let file = folder.path().join("both.jsonl");
    std::fs::write(&file, both.concat()).unwrap();
    machine.call(&["replay", &file.to_string_lossy()]).exits(0).says("2 runs: 2 same");
    assert!(!machine.home().exists(), "nothing was made");
    machine.call(&["replay", "some/run/1"]).exits(2).says("there is no log");
    machine.call(&["replay", "lost.jsonl"]).exits(2).says("there is no file lost.jsonl");
    machine.call(&["replay"]).exits(2);
    machine.call(&["replay", "--all", "x"]).exits(2);
}

#[test]
fn a_changed_file_diverges_and_both_sides_are_shown() {
    let (folder, machine) = empty_machine();
    let bad = changed("feature-passes-at-once", "seal", "stamp");
    let good = changed("feature-blocked", "", "");
    let mut writer = Writer::new(Vec::new(), Header::default()).unwrap();
    for carried in [&good, &bad] {
        writer.write(carried).unwrap();
    }
    let file = folder.path().join("changed.jsonl");
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    let file = file.to_string_lossy();
    let output = machine.call(&["replay", &file]);
    output
        .exits(1)
        .says("diverged  at event 15")
        .says("recorded   call stamp {")
        .says("asked now  call seal {");
    assert_eq!(last_line(&output), "2 runs: 1 same, 1 diverged");
    let report = machine.call(&["replay", &file, "-o", "json"]).exits(1).json();
    assert_eq!((&report["schema"], &report["diverged"]), (&"longhaul.replay/1".into(), &1.into()));
    let line = &report["runs"][1];
    assert_eq!(
        (&line["verdict"], &line["position"]),
        (&"diverged".into(), &15.into()),
        "{report:#}"
    );
    assert!(line["recorded"].as_str().unwrap().starts_with("call stamp"), "{report:#}");
    assert!(line["asked"].as_str().unwrap().starts_with("call seal"), "{report:#}");
}

#[test]
fn a_damaged_file_is_unreadable_and_says_where() {
    let (folder, machine) = empty_machine();
    let mut writer = Writer::new(Vec::new(), Header::default()).unwrap();
    writer.write(&changed("feature-blocked", "", "")).unwrap();
    let whole = writer.finish().unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let flipped = text.replacen("\"exit_code\":1", "\"exit_code\":3", 1);
    let cases = [
        ("cut.jsonl", text[..text.len() - 200].to_owned(), "truncated"),
        ("flipped.jsonl", flipped, "damaged or was edited"),
        ("newer.jsonl", text.replacen("export/1", "export/7", 1), "newer longhaul"),
        ("other.jsonl", "{\"what\":1}\n".into(), "not a `longhaul.export` file"),
        ("empty.jsonl", String::new(), "it is empty"),
    ];
    for (name, content, says) in cases {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        machine.call(&["replay", &file.to_string_lossy()]).exits(4).says("unreadable").says(says);
    }
    let (run, events) =
        history_file::read(&std::fs::read_to_string(story("feature-blocked")).unwrap()).unwrap();
    let mut events = events;
    if let EventKind::RunStarted { workflow, input, .. } = &mut events[0].kind {
        "unheard-of".clone_into(workflow);
        *input = Payload::null();
    }
    let file = folder.path().join("unknown.jsonl");
    std::fs::write(&file, history_file::write(&run, &events).unwrap()).unwrap();
    machine
        .call(&["replay", &file.to_string_lossy()])
        .exits(4)
        .says("no workflow `unheard-of` in this program");
    // One that is whole, beside all of them.
    std::fs::write(folder.path().join("whole.jsonl"), whole).unwrap();
    machine.call(&["replay", &folder.path().to_string_lossy()]).exits(4).says("1 same");
}
