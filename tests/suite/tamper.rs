//! Agents that tamper: attacks on the acceptance of a feature, with the sandbox and without.
//! `docs/guarantees.md` says of each whether it is prevented, detected or remains.

mod attacks;
mod outside;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use longhaul_activities::process::{Level, available};
use longhaul_tests::project::Plan;
use serde_json::{Value, json};

use crate::world::World;
use attacks::{Attack, FILES, OTHERS, REPOSITORY};

/// Whether programs are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sandbox {
    Off,
    Bubblewrap,
}

impl Sandbox {
    /// Both levels, as far as this machine offers them.
    fn all() -> Vec<Self> {
        if available().best() == Some(Level::Bubblewrap) {
            return vec![Self::Off, Self::Bubblewrap];
        }
        eprintln!("not tried with bubblewrap: {}", available().lacks());
        vec![Self::Off]
    }

    fn setting(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Bubblewrap => "required",
        }
    }
}

/// The features that are worked on as they should be.
const HONEST: [&str; 2] = ["honest-1", "honest-2"];

const ACCEPT: &str = "#!/bin/sh\ngrep -q finished \"$1.txt\"\n";

const AGENT: &str = r#"ID=$LONGHAUL_FEATURE_ID P=$PLACE/p DATA=$PLACE/home LOOT=$PLACE/loot
export ID P DATA LOOT
if [ -f "attack/$ID" ]; then . "./attack/$ID"; exit 0; fi
echo finished >"$ID.txt"; git add --all; git commit -qm "$ID"
"#;

/// Leaves a mark when Longhaul runs it, and not a session; as a filter, it weakens every file.
const EVIL: &str = "#!/bin/sh\n[ -n \"$LONGHAUL_SESSION\" ] || echo \"$0 $*\" >>\"${0%/*}/executed\"\n\
cat >/dev/null; echo 'exit 0'\n";

/// A project with honest features between features that are attacked.
struct Tampered {
    world: World,
    base: String,
}

impl Tampered {
    /// `extra`: more settings; sections come last.
    fn new(attacks: &[(&str, &str)], sandbox: Sandbox, extra: &str) -> Self {
        let world = World::with_settings(&[] as &[Plan], 0.0, "");
        let project = &world.project;
        for folder in ["acceptance", "tests", "attack", "../loot/hooks", "../user"] {
            fs::create_dir_all(project.root().join(folder)).unwrap();
        }
        let loot = project.place().join("loot");
        for program in
            ["evil", "hooks/post-checkout", "hooks/reference-transaction", "hooks/post-merge"]
        {
            fs::write(loot.join(program), EVIL).unwrap();
            fs::set_permissions(loot.join(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_longhaul-under-test");
        let head =
            format!("#!/bin/sh\nPLACE='{}'\nLONGHAUL='{program}'\n", project.place().display());
        project.write("agent.sh", &(head + AGENT));
        project.write("acceptance/accept.sh", ACCEPT);
        project.write("tests/test_it.py", "def test_it(): pass\n");
        fs::remove_file(project.root().join("init.sh")).unwrap();
        let settings = format!(
            "[agent]\ncommand = [\"./agent.sh\"]\nsandbox = \"{}\"\nwrite = ['{}']\n[project]\nparallel = 4\n\
             protected = [\"tests/**\", \"**/conftest.py\", \"pytest.ini\"]\n\
             [limits]\nsessions = 1\nfailed_sessions = 1\nfailed_gates = 1\n{extra}",
            sandbox.setting(),
            loot.display()
        );
        project.write("longhaul.toml", &settings);
        for (name, session) in attacks {
            project.write(&format!("attack/{name}"), session);
        }
        let feature = |name: &str| {
            let check = format!("sh acceptance/accept.sh {name}");
            let (needs, priority) = match name {
                "honest-1" => (json!([]), 0),
                // Begun when most attacks were made.
                "honest-2" => (json!(["honest-1"]), -1),
                _ => (json!(["honest-1"]), 0),
            };
            json!({
                "id": name, "name": name, "status": "pending", "passes": false, "checks": [check],
                "depends_on": needs, "priority": priority
            })
        };
        let (first, last) = (HONEST[..1].iter(), HONEST[1..].iter());
        let names =
            first.copied().chain(attacks.iter().map(|(name, _)| *name)).chain(last.copied());
        let list = json!({ "features": names.map(feature).collect::<Vec<_>>() });
        project.write("feature_list.json", &(serde_json::to_string_pretty(&list).unwrap() + "\n"));
        project.commit("Features to be accepted");
        let base = project.git(&["rev-parse", "HEAD"]);
        let home = project.place().join("user").to_string_lossy().into_owned();
        let longhaul = world.longhaul.clone().with("HOME", &home);
        Self { world: World { longhaul, ..world }, base }
    }

    fn of(attacks: &[Attack], sandbox: Sandbox) -> Self {
        let attacks: Vec<_> = attacks.iter().map(|attack| (attack.name, attack.session)).collect();
        Self::new(&attacks, sandbox, "")
    }

    fn features(&self) -> Vec<Value> {
        self.world.json("status .")["features"].as_array().unwrap().clone()
    }

    /// What `status` says of a feature.
    #[track_caller]
    fn feature(&self, name: &str) -> Value {
        let found = self.features().into_iter().find(|feature| feature["id"] == name);
        found.unwrap_or_else(|| panic!("{name} is in the list"))
    }

    /// Every commit on the target since the beginning is that of a feature which passes; what
    /// judges them is as it was.
    #[track_caller]
    fn is_sound(&self, passing: &[&str]) {
        let passed: Vec<Value> =
            self.features().into_iter().filter(|feature| feature["passes"] == true).collect();
        let passed: Vec<&str> =
            passed.iter().filter_map(|feature| feature["id"].as_str()).collect();
        assert_eq!(passed, passing);
        let project = &self.world.project;
        let range = format!("{}..main", self.base);
        let count = project.git(&["rev-list", "--count", "--first-parent", &range]);
        assert_eq!(
            count,
            passing.len().to_string(),
            "{}",
            project.git(&["log", "--oneline", &range])
        );
        let mut landed = project.landed("main");
        landed.sort();
        assert_eq!(landed, passing);
        assert_eq!(
            project.git(&["--no-replace-objects", "show", "main:acceptance/accept.sh"]) + "\n",
            ACCEPT
        );
        assert_eq!(project.read("acceptance/accept.sh"), ACCEPT);
        for feature in project.list("main")["features"].as_array().unwrap() {
            let name = feature["id"].as_str().unwrap();
            assert_eq!(feature["checks"], json!([format!("sh acceptance/accept.sh {name}")]));
            assert_eq!(feature["passes"], json!(passing.contains(&name)), "{name}");
        }
        assert_eq!(self.loot("executed"), "", "Longhaul ran a program of an agent");
    }

    fn loot(&self, file: &str) -> String {
        fs::read_to_string(self.world.project.place().join("loot").join(file)).unwrap_or_default()
    }

    /// Whether a program runs whose command line names a file of the loot.
    fn is_running(&self, file: &str) -> bool {
        let file = self.world.project.place().join("loot").join(file);
        let is_it = |process: fs::DirEntry| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == file.as_os_str().as_encoded_bytes())
        };
        fs::read_dir("/proc")
            .is_ok_and(|mut processes| processes.any(|process| process.is_ok_and(is_it)))
    }
}

/// No attacked feature passes, the honest ones do, and restored files are reported.
fn none_passes(attacks: &[Attack], sandbox: Sandbox) {
    let tampered = Tampered::of(attacks, sandbox);
    tampered.world.run().exits(1);
    tampered.is_sound(&HONEST);
    for attack in attacks {
        let feature = tampered.feature(attack.name);
        assert_eq!(feature["status"], "blocked", "{sandbox:?} {feature:#}");
        let findings = feature["findings"].to_string();
        assert!(findings.contains(attack.noticed), "{sandbox:?} {}: {findings}", attack.name);
        assert_eq!(
            findings == "[]",
            attack.noticed.is_empty(),
            "{sandbox:?} {}: {findings}",
            attack.name
        );
    }
    let changed = tampered.world.project.git(&["diff", "--name-only", "HEAD"]);
    assert!(
        changed.is_empty() || changed == "feature_list.json",
        "Longhaul writes to the list only: {changed}"
    );
}

#[test]
fn protected_files_of_its_own_tree() {
    for sandbox in Sandbox::all() {
        none_passes(FILES, sandbox);
    }
}

#[test]
fn its_own_repository_and_session_files() {
    for sandbox in Sandbox::all() {
        none_passes(REPOSITORY, sandbox);
    }
}

#[test]
fn what_is_not_its_own() {
    for sandbox in Sandbox::all() {
        let tampered = Tampered::of(OTHERS, sandbox);
        tampered.world.run().exits(1);
        tampered.is_sound(&HONEST);
        for attack in OTHERS {
            assert_eq!(
                tampered.feature(attack.name)["status"],
                "blocked",
                "{sandbox:?} {}",
                attack.name
            );
        }
        assert_ne!(tampered.loot("daemon"), "", "it ran");
        assert!(!tampered.is_running("d"), "{sandbox:?}");
        if sandbox == Sandbox::Off {
            let why = tampered.world.call("why approval").exits(0).stdout.clone();
            for verb in ["approve", "pause", "cancel"] {
                assert!(
                    why.contains(&format!("asked for `longhaul {verb}` and was refused")),
                    "{why}"
                );
            }
            let status = tampered.world.json("status .")["findings"].to_string();
            assert!(status.contains("`longhaul/next` was moved from nowhere to"), "{status}");
            assert_eq!(
                tampered.world.project.git(&["for-each-ref", "refs/heads/longhaul/next"]),
                ""
            );
        }
    }
}
