//! Commands in pipes and at a terminal: which waits for which, and output without a reader.

use longhaul_tests::project::plain;

use crate::world::World;

fn finished() -> World {
    let world = World::new(&[plain("parser", &[], 1), plain("table", &[], 1)], 0.0);
    world.run().exits(0);
    world
}

#[test]
fn a_verb_at_the_end_of_a_pipe_lets_the_others_have_the_log() {
    let world = finished();
    let project = world.project_id();
    for _ in 0..3 {
        let pause = format!(
            "longhaul list --project {project} --kind project -o ids | longhaul pause - --yes"
        );
        world.longhaul.shell(&pause).exits(0).says("paused");
        world.longhaul.shell(&pause.replace("pause", "resume")).exits(0).says("resumed");
    }
    let carried = "longhaul export --all | longhaul import -";
    world.longhaul.shell(carried).exits(0).says("5 skipped");
    // A process that holds the log for a moment is waited for.
    let many = "for one in 1 2 3 4 5 6; do longhaul list -o ids & done; wait";
    assert_eq!(world.longhaul.shell(many).exits(0).stdout.lines().count(), 30);
}

#[test]
fn a_prompt_holds_up_no_other_command() {
    let plans = [plain("parser", &[], 1), plain("table", &[], 1)];
    let world = World::with_settings(&plans, 0.0, "[merge]\napproval = true\n");
    world.run().exits(3);
    let pause = ["pause", "--filter", "kind=feature"];
    let mut asked = world.longhaul.on_terminal(&pause, 80);
    asked.until_shows("runs? [y/N]");
    world.call("list").exits(0);
    asked.types("n");
    assert!(asked.exits(2).contains("nothing was changed"));
    let mut asked = world.longhaul.on_terminal(&pause, 80);
    asked.until_shows("[y/N]");
    world.call("list").exits(0);
    asked.types("y");
    assert!(asked.exits(0).contains("will be paused"));
}

#[test]
fn who_closes_standard_output_has_read_enough() {
    let world = finished();
    let id = world.project_id();
    for shows in [
        "completions bash",
        "list -o ids",
        &format!("history {id} -o jsonl"),
        "schema status",
        "--help",
    ] {
        let output = world.longhaul.shell(&format!("(longhaul {shows}; echo $? >&2) | true"));
        assert_eq!(output.stderr.trim(), "0", "{shows}");
    }
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let world = finished();
    let root = &world.root;
    for shows in [
        "list",
        &format!("status {root} -o json"),
        &format!("status {root}"),
        "completions zsh",
        "--version",
        "export --all",
    ] {
        let output = world.longhaul.shell(&format!("longhaul {shows} >/dev/full"));
        output.exits(4).says("cannot write to standard output: No space left");
    }
}

#[test]
fn one_that_hangs_is_named() {
    let world = finished();
    let held = longhaul_storage::SledStore::open(world.longhaul.home()).unwrap();
    let patient = world.longhaul.clone().with("LONGHAUL_WAIT", "8");
    let pid = std::process::id();
    let output = patient.call(&["list"]);
    output.exits(4).says(&format!("waiting for process {pid}")).says("does not answer for");
    held.close();
    patient.call(&["list"]).exits(0);
}

#[test]
fn an_owner_that_does_not_answer_is_named() {
    let world = World::new(&[plain("parser", &[], 1)], 0.0);
    world.project.hold("parser");
    let mut run = world.begin();
    world.project.until_at_work("parser");
    run.signal("STOP");
    let output = world.longhaul.clone().with("LONGHAUL_WAIT", "3").call(&["status", &world.root]);
    run.signal("CONT");
    output
        .exits(4)
        .says("waiting for process")
        .says("runs this log and does not answer for 3 seconds: inspect or end that process");
    world.call("status .").exits(0);
    world.project.let_go("parser");
    run.exits(0);
}

#[test]
fn a_table_on_a_terminal_is_one() {
    let world = finished();
    let shown = world.longhaul.on_terminal(&["list"], 100).exits(0);
    assert!(shown.contains("\x1b[32m"), "{shown}");
    let plain = without_colours(&shown);
    let columns: Vec<_> = plain
        .lines()
        .take(3)
        .map(|line| line.find("STATUS").or_else(|| line.find("passed")))
        .collect();
    assert!(columns.iter().all(|column| *column == columns[0]), "{plain}");
    let header = plain.lines().next().unwrap();
    let ages = plain.lines().take(3).map(|line| line.chars().nth(header.find("AGE").unwrap()));
    assert!(
        ages.skip(1).all(|letter| letter.is_some_and(|letter| letter.is_ascii_digit())),
        "{plain}"
    );
    // A run and a commit are to be copied: they are never cut.
    let run = format!("{}/parser/1", world.project_id());
    for width in [40, 62, 70, 80] {
        let shown = without_colours(
            &world.longhaul.on_terminal(&["checkpoints", &world.root], width).exits(0),
        );
        assert!(shown.lines().any(|line| line.contains(&run)), "{width}: {shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= width.into()), "{width}: {shown}");
    }
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    first
        + &parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect::<String>()
}
