//! Values of `[agent] env`: an agent has them, and nothing that Longhaul keeps or carries does.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use longhaul_tests::command::Longhaul;
use longhaul_tests::project::{Habit, Plan, Project, plain};
use longhaul_tests::wait::until;

const SECRET: &str = "sk-test-4e1f0c7a9b";
const OTHER_SECRET: &str = "sk-test-77d20b6f3c";

/// An agent that fails unless it has the value that is expected at the moment.
const AGENT: &str = "#!/bin/sh\ntest \"$API_KEY\" = \"$(cat \"$LONGHAUL_TEST_JOURNAL/../expected\")\" || exit 3\n\
                     exec \"$(dirname \"$0\")/agent.sh\"\n";

struct World {
    project: Project,
    longhaul: Longhaul,
    root: String,
}

impl World {
    fn new(plans: &[Plan]) -> Self {
        let project = Project::new(plans, 0.0);
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let root = project.root().to_string_lossy().into_owned();
        let world = Self { project, longhaul, root };
        world.project.write("keyed.sh", AGENT);
        world.project.git(&["add", "--all"]);
        world.project.git(&["update-index", "--chmod=+x", "keyed.sh"]);
        let keyed = world.project.root().join("keyed.sh");
        fs::set_permissions(keyed, fs::Permissions::from_mode(0o755)).unwrap();
        world.set(&format!("API_KEY = '{SECRET}'"), SECRET);
        world
    }

    /// Sets the variable of the agent, and what it expects.
    fn set(&self, variable: &str, expected: &str) {
        let place = self.project.place();
        let journal = place.join("journal");
        let env =
            format!("env = {{ LONGHAUL_TEST_JOURNAL = '{}', {variable} }}", journal.display());
        self.project.write(
            "longhaul.toml",
            &format!(
                "[agent]\ncommand = [\"./keyed.sh\"]\nwrite = ['{}']\n{env}\n",
                place.display()
            ),
        );
        fs::write(place.join("expected"), expected).unwrap();
        self.project.commit("Set the agent up");
    }

    fn text(&self, name: &str) -> String {
        self.project.place().join(name).to_string_lossy().into_owned()
    }

    /// Exports and backs up the log, and looks for a text in these and in all that Longhaul keeps.
    /// What is in the work trees is the project's own.
    fn holders(&self, needle: &str) -> Vec<PathBuf> {
        let (export, backup) = (self.text("all.jsonl"), self.text("all.zst"));
        self.longhaul.call(&["export", "--all", "--force", "-O", &export]).exits(0);
        self.longhaul.call(&["backup", "--force", "-O", &backup]).exits(0);
        let mut found = Vec::new();
        for place in [self.longhaul.home(), Path::new(&export), Path::new(&backup)] {
            look(place, needle.as_bytes(), &mut found);
        }
        found
    }
}

fn look(path: &Path, needle: &[u8], found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        if !path.ends_with("worktrees") {
            for entry in fs::read_dir(path).unwrap() {
                look(&entry.unwrap().path(), needle, found);
            }
        }
        return;
    }
    // A socket has no content.
    let Ok(bytes) = fs::read(path) else { return };
    let has = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    // A payload in a file of its own has a head of nine bytes.
    let packed = [0, 9].iter().filter_map(|head| unpacked(bytes.get(*head..)?));
    if has(&bytes) || packed.into_iter().any(|bytes| has(&bytes)) {
        found.push(path.to_owned());
    }
}

fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    zstd::stream::read::Decoder::new(bytes).ok()?.read_to_end(&mut content).ok()?;
    Some(content)
}

#[test]
fn an_agent_has_the_value_and_the_log_does_not() {
    let fills = Plan { habit: Habit::Fills, ..plain("parser", &[], 2) };
    let world = World::new(&[fills, plain("table", &["parser"], 1)]);
    world.longhaul.call(&["run", &world.root]).exits(0).says("2 of 2 features pass");
    assert_eq!(world.holders(SECRET), Vec::<PathBuf>::new());
    let names = world.holders("API_KEY");
    for file in ["all.jsonl", "all.zst"] {
        assert!(
            names.contains(&world.project.place().join(file)),
            "the search finds what is there: {names:?}"
        );
    }
}

#[test]
fn a_changed_value_counts_from_the_next_session_on_and_no_run_diverges() {
    let fills = Plan { habit: Habit::Fills, ..plain("parser", &[], 3) };
    let world = World::new(&[fills]);
    world.project.hold("parser");
    let run = world.longhaul.begin(&["run", &world.root], &world.project.place().join("output"));
    world.project.until_at_work("parser");
    drop(run);
    world.set(&format!("API_KEY = '{OTHER_SECRET}'"), OTHER_SECRET);
    world.project.let_go("parser");
    world.longhaul.call(&["run", &world.root]).exits(0).says("1 of 1 features pass");
    world.longhaul.call(&["replay", "--all"]).exits(0).says("0 diverged");
    for secret in [SECRET, OTHER_SECRET] {
        assert_eq!(world.holders(secret), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_value_comes_from_a_file_or_from_the_environment() {
    let mut world = World::new(&[plain("parser", &[], 1)]);
    fs::write(world.text("key"), format!("{SECRET}\n")).unwrap();
    world.set(&format!("API_KEY = {{ file = '{}' }}", world.text("key")), SECRET);
    world.longhaul.call(&["run", &world.root]).exits(0);

    world.project.write_list(&[plain("parser", &[], 1), plain("table", &[], 1)]);
    world.set("API_KEY = { env = 'OURS' }", OTHER_SECRET);
    let mut waiting =
        world.longhaul.begin(&["run", &world.root], &world.project.place().join("output"));
    until("the agent is said to lack its key", || {
        let why = world.longhaul.call(&["why", "table", "--dir", &world.root]);
        why.stdout.contains("`API_KEY` is to be that of `OURS`")
    });
    waiting.terminate();
    waiting.exits(3);
    world.longhaul = world.longhaul.clone().with("OURS", OTHER_SECRET);
    world.longhaul.call(&["run", &world.root]).exits(0).says("2 of 2 features pass");
    for secret in [SECRET, OTHER_SECRET] {
        assert_eq!(world.holders(secret), Vec::<PathBuf>::new());
    }
}

#[test]
fn settings_that_cannot_be_read_are_reported_without_the_line() {
    let world = World::new(&[plain("parser", &[], 1)]);
    world.project.hold("parser");
    let _run = world.longhaul.begin(&["run", &world.root], &world.project.place().join("output"));
    world.project.until_at_work("parser");
    for line in [
        format!("env = {{ API_KEY = \"{SECRET}"),
        format!("env = {{ API_KEY = {SECRET} }}"),
        format!("env = {{ API_KEY = [\"{SECRET}\"] }}"),
        format!("env = \"{SECRET}\""),
    ] {
        world.project.write("longhaul.toml", "[agent]\ncommand = [\"./keyed.sh\"]\n");
        until("the settings are read", || !shown(&world).contains("longhaul.toml:"));
        world
            .project
            .write("longhaul.toml", &format!("[agent]\ncommand = [\"./keyed.sh\"]\n{line}\n"));
        until("the problem is shown", || shown(&world).contains("longhaul.toml: line 3:"));
        assert!(!shown(&world).contains(SECRET), "{}", shown(&world));
        assert_eq!(world.holders(SECRET), Vec::<PathBuf>::new(), "{line}");
    }
}

fn shown(world: &World) -> String {
    world.longhaul.status(&world.project.root())["problem"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_batch_names_sources_and_no_values() {
    let world = World::new(&[plain("parser", &[], 1)]);
    fs::write(world.text("key"), SECRET).unwrap();
    let journal = world.text("journal");
    world.project.write(
        "longhaul.toml",
        &format!(
            "[agent]\ncommand = [\"./keyed.sh\"]\nwrite = ['{}']\nenv = {{ LONGHAUL_TEST_JOURNAL = '{journal}' }}\n",
            world.project.place().display()
        ),
    );
    world.project.commit("Leave the key to the batch");
    let file = world.text("batch.toml");
    let write = |env: &str| {
        fs::write(&file, format!("batch = \"nightly\"\n[[project]]\ndir = \"p\"\n{env}\n"))
            .unwrap();
    };
    for literal in [
        format!("env = {{ API_KEY = '{SECRET}' }}"),
        format!("settings.agent.env.API_KEY = '{SECRET}'"),
    ] {
        write(&literal);
        let output = world.longhaul.call(&["batch", &file]);
        output.exits(2).says("`API_KEY` would be recorded").says("{ file = \"PATH\" }");
        assert!(!output.stderr.contains(SECRET), "{}", output.stderr);
    }
    write("env = { API_KEY = { file = 'key' } }");
    world.longhaul.call(&["batch", &file]).exits(0);
    assert_eq!(world.holders(SECRET), Vec::<PathBuf>::new());
}
