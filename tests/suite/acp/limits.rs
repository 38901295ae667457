//! Limits of the provider of other agents than the built-in one, which all projects share.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use longhaul_tests::project::Project;
use longhaul_tests::wait::until;

use super::{methods, play};
use crate::played::{PLANS, Played};

/// A second project of the owner of the first, with the same agent.
struct Two {
    first: Played,
    second: Project,
}

impl Two {
    fn new(scenario: &str, limits: &str) -> Self {
        let first = play(scenario, "provider = \"scripted\"\n");
        let home = first.world.project.home();
        DirBuilder::new().mode(0o700).create(&home).unwrap();
        fs::write(home.join("providers.toml"), format!("[providers.scripted]\n{limits}")).unwrap();
        let second = Project::new(&PLANS, 0.0);
        second.write("longhaul.toml", &first.world.project.read("longhaul.toml"));
        second.commit("An agent");
        Self { first, second }
    }

    fn roots(&self) -> [String; 2] {
        let roots = [self.first.world.project.root(), self.second.root()];
        roots.map(|root| root.to_string_lossy().into_owned())
    }

    fn why(&self, root: &str) -> String {
        self.first.world.longhaul.call(&["why", "parser", "--dir", root]).stdout
    }

    fn prompts(&self) -> usize {
        methods(&self.first).iter().filter(|method| *method == "session/prompt").count()
    }
}

#[test]
fn a_rate_limit_of_one_session_holds_back_those_of_other_projects_and_after_a_restart() {
    let two = Two::new("limited", "");
    fs::write(two.first.file("limited"), "").unwrap();
    let [first, second] = two.roots();
    let longhaul = &two.first.world.longhaul;
    longhaul.call(&["run", "--once", &first]).exits(3);
    assert_eq!(two.prompts(), 1);
    fs::remove_file(two.first.file("limited")).unwrap();
    let output = longhaul.call(&["run", "--once", "-o", "json", &second]);
    let due = output.exits(3).json()["next_due"].clone();
    assert!(due.is_string(), "{due}");
    assert_eq!(two.prompts(), 1, "the second project starts no session");
    let why = two.why(&second);
    assert!(why.contains("the provider scripted accepts no session before"), "{why}");
    let status = longhaul.call(&["status", &second]).stdout;
    assert!(status.contains("the provider scripted accepts no session"), "{status}");
    assert!(longhaul.call(&["replay", "--all"]).exits(0).stdout.contains("0 diverged"));
}

#[test]
fn projects_share_the_concurrent_sessions_of_a_provider() {
    let two = Two::new("done", "concurrent = 1\n");
    fs::write(two.first.file("held"), "").unwrap();
    let [first, second] = two.roots();
    let longhaul = &two.first.world.longhaul;
    let mut run = longhaul.begin(&["run", &first, &second], &two.second.place().join("output"));
    let waits = "It waits for its turn: providers.toml limits the requests to scripted";
    until("one project waits for the other", || {
        two.why(&first).contains(waits) || two.why(&second).contains(waits)
    });
    until("an agent works", || two.prompts() == 1);
    fs::remove_file(two.first.file("held")).unwrap();
    run.exits(0);
    assert_eq!(two.prompts(), 2);
    assert_eq!(longhaul.left_over(), Vec::<String>::new());
}

#[test]
fn the_reported_tokens_of_a_session_hold_back_the_next_one_of_its_provider() {
    let two = Two::new("done", "tokens_per_minute = 30\n");
    let [first, second] = two.roots();
    let longhaul = &two.first.world.longhaul;
    let output =
        longhaul.call(&["run", "--once", "--max-agents", "1", "-o", "json", &first, &second]);
    let due = output.exits(3).json()["next_due"].clone();
    assert!(due.is_string(), "{due}");
    assert_eq!(two.prompts(), 1, "one session has taken more than 30 tokens");
    let limit = "providers.toml limits scripted to 30 tokens per minute";
    assert!(two.why(&first).contains(limit) || two.why(&second).contains(limit));
}
