//! Sessions are paid: none is begun that cannot succeed.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use longhaul_tests::project::{Plan, plain};
use longhaul_tests::wait::until;
use serde_json::{Value, json};

use crate::world::World;

/// A project whose agent is a line of the shell; what it does is appended to the file `sessions`.
struct Paid {
    world: World,
}

impl Paid {
    /// Features with their checks, settings, and the agent's script.
    fn new(features: &[(&'static str, &str)], settings: &str, agent: &str) -> Self {
        let plans: Vec<Plan> = features.iter().map(|(id, _)| plain(id, &[], 1)).collect();
        let world = World::with_settings(&plans, 0.0, settings);
        let begin = "#!/bin/sh\nset -eu\nid=$LONGHAUL_FEATURE_ID\nplace=$(dirname \"$LONGHAUL_TEST_JOURNAL\")\n\
                     echo \"$id $LONGHAUL_REASON\" >>\"$place/sessions\"\n\
                     commit() { git add --all; git -c user.name=A -c user.email=a@example.org commit --quiet -m \"$id\"; }\n\
                     held() { while [ -e \"$place/hold-$1\" ]; do sleep 0.05; done; }\n";
        world.project.write("agent.sh", &format!("{begin}{agent}"));
        let mut list: Value =
            serde_json::from_str(&world.project.read("feature_list.json")).unwrap();
        for (feature, (_, check)) in
            list["features"].as_array_mut().unwrap().iter_mut().zip(features)
        {
            feature["checks"] = json!([check]);
        }
        world.project.write("feature_list.json", &list.to_string());
        world.project.commit("Features");
        Self { world }
    }

    fn place(&self, file: &str) -> PathBuf {
        self.world.project.place().join(file)
    }

    /// The sessions so far, each as its feature and the reason.
    fn sessions(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place("sessions")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn of(&self, feature: &str) -> usize {
        self.sessions().iter().filter(|session| session.starts_with(&format!("{feature} "))).count()
    }
}

/// `table` needs what `parser` makes, and nothing says so.
const LANDS_LATER: &str = "held \"$id\"\necho done >\"$id.txt\"\ncommit\n";

#[test]
fn what_landed_meanwhile_is_brought_in_before_a_session_is_paid() {
    let checks =
        [("parser", "test -e parser.txt"), ("table", "test -e table.txt && test -e parser.txt")];
    let paid = Paid::new(&checks, "[limits]\nfailed_gates = 5\n", LANDS_LATER);
    fs::write(paid.place("hold-parser"), "").unwrap();
    // `table` is done before what it needs is there, and goes on only when that has landed.
    let gate = "test -e table.txt; touch ../../../../gates; while [ -e ../../../../hold-gates ]; do sleep 0.05; done; \
                test -e parser.txt";
    let list = paid.world.project.read("feature_list.json");
    paid.world
        .project
        .write("feature_list.json", &list.replace("test -e table.txt && test -e parser.txt", gate));
    paid.world.project.commit("A gate that takes its time");
    fs::write(paid.place("hold-gates"), "").unwrap();
    let mut run = paid.world.begin();
    until("the gates of table have begun", || paid.place("gates").exists());
    fs::remove_file(paid.place("hold-parser")).unwrap();
    until("parser has landed", || paid.world.project.landed("main").contains(&"parser".to_owned()));
    fs::remove_file(paid.place("hold-gates")).unwrap();
    run.exits(0);
    assert_eq!((paid.of("parser"), paid.of("table")), (1, 1), "{:?}", paid.sessions());
    paid.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn a_blocked_feature_is_tried_on_the_target_as_it_is_when_it_is_unblocked() {
    let checks = [("table", "test -e table.txt && test -e parser.txt")];
    let paid = Paid::new(&checks, "[limits]\nfailed_gates = 1\n", LANDS_LATER);
    paid.world.run().exits(1);
    assert_eq!(paid.sessions(), ["table start"]);
    paid.world.project.write("parser.txt", "by hand\n");
    paid.world.project.commit("What table needs");
    paid.world.call("feature unblock table").exits(0);
    paid.world.run().exits(0);
    assert_eq!(paid.sessions(), ["table start"], "what was missing has landed: no session is paid");
}

#[test]
fn a_broken_baseline_is_repaired_once() {
    let ids = ["a", "b", "c", "d", "e", "f"];
    let checks: Vec<(&str, String)> = ids.map(|id| (id, format!("test -e {id}.txt"))).into();
    let checks: Vec<(&str, &str)> =
        checks.iter().map(|(id, check)| (*id, check.as_str())).collect();
    let settings = "[[baseline]]\nname = \"builds\"\nrun = \"test ! -e broken\"\n";
    let repairs = "if [ \"$LONGHAUL_REASON\" = repair ]; then rm -f broken; fi\necho done >\"$id.txt\"\ncommit\n";
    let paid = Paid::new(&checks, settings, repairs);
    paid.world.project.write("broken", "");
    paid.world.project.commit("Break it");
    paid.world.run().exits(0);
    let sessions = paid.sessions();
    let repairs = sessions.iter().filter(|session| session.ends_with(" repair")).count();
    assert_eq!((repairs, sessions.len()), (1, 6), "{sessions:?}");
    paid.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn an_unrepaired_baseline_costs_two_tries() {
    let ids = ["a", "b", "c", "d", "e", "f"];
    let checks: Vec<(&str, String)> = ids.map(|id| (id, format!("test -e {id}.txt"))).into();
    let checks: Vec<(&str, &str)> =
        checks.iter().map(|(id, check)| (*id, check.as_str())).collect();
    let settings =
        "[limits]\nfailed_gates = 2\n[[baseline]]\nname = \"builds\"\nrun = \"test ! -e broken\"\n";
    let paid = Paid::new(&checks, settings, "echo \"$LONGHAUL_SESSION\" >>\"$id.txt\"\ncommit\n");
    paid.world.project.write("broken", "");
    paid.world.project.commit("Break it");
    paid.world.run().exits(1).says("does not pass its own baseline");
    assert_eq!(paid.sessions().len(), 4, "two features try twice: {:?}", paid.sessions());
    fs::remove_file(paid.world.project.root().join("broken")).unwrap();
    paid.world.project.commit("Mend it");
    for id in ids {
        paid.world.call(&format!("feature unblock {id}")).exits(0);
    }
    paid.world.run().exits(0);
}

#[test]
fn restarted_features_keep_to_the_limit_of_the_project() {
    let ids = ["a", "b", "c", "d", "e", "f"];
    let checks: Vec<(&str, String)> = ids.map(|id| (id, format!("test -e {id}.txt"))).into();
    let checks: Vec<(&str, &str)> =
        checks.iter().map(|(id, check)| (*id, check.as_str())).collect();
    // How many sessions there are at once is counted by the agent itself.
    let agent = "touch \"$place/at-work-$id\"\nls \"$place\" | grep -c at-work- >>\"$place/at-once\"\nheld all\n\
                 date +%N >\"$id.txt\"\ncommit\nrm \"$place/at-work-$id\"\n";
    let paid = Paid::new(&checks, "[project]\nparallel = 2\n", agent);
    paid.world.run().exits(0);
    let project = paid.world.project_id();
    fs::write(paid.place("hold-all"), "").unwrap();
    for id in ids {
        paid.world.longhaul.call(&["restart", &format!("{project}/{id}/1")]).exits(0);
    }
    let mut run = paid.world.begin();
    let waiting = RefCell::new(Vec::new());
    until("two are at work and four wait", || {
        let status = paid.world.longhaul.status(&paid.world.project.root());
        let waits = |line: &&Value| {
            line["reason"].as_str().is_some_and(|reason| reason.starts_with("waits for a place"))
        };
        let lines = status["features"].as_array().unwrap().iter().filter(waits);
        *waiting.borrow_mut() = lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect();
        waiting.borrow().len() == 4 && paid.sessions().len() >= 6 + 2
    });
    paid.world.call(&format!("why {}", waiting.borrow()[0])).exits(0).says("It waits for a place");
    assert_eq!(paid.sessions().len(), 6 + 2);
    fs::remove_file(paid.place("hold-all")).unwrap();
    run.exits(0);
    let at_once = fs::read_to_string(paid.place("at-once")).unwrap();
    assert!(at_once.lines().all(|count| count.parse::<u32>().unwrap() <= 2), "{at_once}");
    assert_eq!(paid.sessions().len(), 12);
}

/// The agent adds a line at the end of a file that all share; told of a conflict, it keeps both
/// sides.
const SHARE: &str = "tip=$(sed -n 's/.*git merge \\([0-9a-f]*\\)`.*/\\1/p' \"$LONGHAUL_PROMPT_FILE\" | head -n 1)\n\
    if [ -n \"$tip\" ]; then\n    git -c user.name=A -c user.email=a@example.org merge --quiet \"$tip\" || true\n    \
    grep -v -e '^<<<<<<<' -e '^=======' -e '^>>>>>>>' shared.txt >shared.new\n    mv shared.new shared.txt\nfi\n\
    grep -q \"^$id$\" shared.txt || echo \"$id\" >>shared.txt\ncommit\n";

fn conflicts(parallel: u32) -> usize {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let checks: Vec<(&str, String)> =
        ids.map(|id| (id, format!("grep -q '^{id}$' shared.txt"))).into();
    let checks: Vec<(&str, &str)> =
        checks.iter().map(|(id, check)| (*id, check.as_str())).collect();
    let paid = Paid::new(
        &checks,
        &format!("[project]\nparallel = {parallel}\n[limits]\nconflicts = 3\n"),
        SHARE,
    );
    paid.world.project.write("shared.txt", "");
    paid.world.project.commit("A file for all");
    paid.world.run().exits(0);
    paid.world.call("replay --all").exits(0).says("0 diverged");
    for id in ids {
        assert!(paid.of(id) <= 2, "one session and one to resolve at most: {:?}", paid.sessions());
    }
    paid.sessions().len()
}

#[test]
fn conflicts_in_one_file_are_resolved_one_at_a_time() {
    assert_eq!(conflicts(1), 8);
    let sessions = conflicts(4);
    assert!((8..=15).contains(&sessions), "{sessions}");
}

#[test]
fn an_outage_blocks_no_feature() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let checks: Vec<(&str, String)> = ids.map(|id| (id, format!("test -e {id}.txt"))).into();
    let checks: Vec<(&str, &str)> =
        checks.iter().map(|(id, check)| (*id, check.as_str())).collect();
    let agent = "held \"$id\"\nif [ -e \"$place/down\" ]; then echo 'API Error: 529 overloaded'; exit 1; fi\n\
                 echo done >\"$id.txt\"\ncommit\n";
    let paid = Paid::new(&checks, "[project]\nparallel = 4\n", agent);
    fs::write(paid.place("down"), "").unwrap();
    let mut run = paid.world.begin();
    let status = || paid.world.longhaul.status(&paid.world.project.root());
    until("sessions are paused", || status()["sessions_paused"]["until"].is_string());
    let shown = paid.world.call("status .").exits(0).clone();
    shown
        .says("sessions paused")
        .says("failed in a row and changed nothing: exit code 1, `API Error: 529 overloaded`");
    paid.world.call("why <project>").exits(0).says("No session begins");
    // Three that failed, those that were under way then, and on a slow machine a probe or two.
    // Without a pause it is 24.
    assert!(paid.sessions().len() <= 10, "{:?}", paid.sessions());
    fs::remove_file(paid.place("down")).unwrap();
    paid.world.call("resume .").exits(0);
    run.exits(0);
    assert_eq!(status()["counts"]["passed"], 8);
    paid.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn an_agent_that_is_gone_blocks_no_feature() {
    let checks = [("a", "test -e a.txt"), ("b", "test -e b.txt")];
    let paid = Paid::new(
        &checks,
        "[project]\nparallel = 1\n",
        "held \"$id\"\necho done >\"$id.txt\"\ncommit\n",
    );
    fs::write(paid.place("hold-a"), "").unwrap();
    let mut run = paid.world.begin();
    until("the first is at work", || paid.of("a") == 1);
    let agent = paid.world.project.root().join("agent.sh");
    let away = paid.place("agent.sh");
    fs::rename(&agent, &away).unwrap();
    fs::remove_file(paid.place("hold-a")).unwrap();
    let status = || paid.world.longhaul.status(&paid.world.project.root());
    until("sessions are paused", || status()["sessions_paused"]["until"].is_string());
    paid.world.call("status .").exits(0).says("cannot be started");
    fs::rename(&away, &agent).unwrap();
    paid.world.call("resume .").exits(0);
    run.exits(0);
    assert_eq!(paid.sessions(), ["a start", "b start"]);
}

/// One feature whose agent does this; a run that waits for it for no more than a second.
fn vain(agent: &str, says: &str, sessions: usize) {
    let paid = Paid::new(&[("a", "test -e a.txt")], "", agent);
    let impatient = paid.world.longhaul.clone().with("LONGHAUL_MACHINE_WAIT", "1");
    let output = impatient.call(&["run", &paid.world.root]);
    output
        .exits(4)
        .says("stopped after waiting 1 s for the agent: ")
        .says(says)
        .says("sessions paused until ");
    output.says("is the agent installed and logged in?");
    assert_eq!(paid.of("a"), sessions, "{:?}", paid.sessions());
    let status = paid.world.longhaul.status(&paid.world.project.root());
    assert_eq!(status["features"][0]["status"], "waiting", "it is not the feature's fault");
    assert!(
        status["sessions_paused"]["until"].is_string(),
        "the next probe is due then, in any process"
    );
    for command in ["status .", "why a", "why <project>"] {
        paid.world.call(command).says(says);
    }
    // Another `run` probes the agent at once.
    impatient.call(&["run", &paid.world.root]).exits(4).says(says);
    assert_eq!(paid.of("a"), sessions + 1, "{:?}", paid.sessions());
    let mended = paid.world.project.read("agent.sh").replace(agent, "echo done >a.txt\ncommit\n");
    paid.world.project.write("agent.sh", &mended);
    paid.world.project.commit("Mend the agent");
    paid.world.run().exits(0);
    assert_eq!(paid.of("a"), sessions + 2);
    paid.world.call("replay --all").exits(0).says("0 diverged");
}

#[test]
fn a_run_whose_agent_is_not_logged_in_ends_with_4_and_the_next_one_goes_on() {
    let agent = "echo '{\"type\":\"result\",\"is_error\":true,\"result\":\"Not logged in · Please run /login\"}'; exit 1\n";
    vain(agent, "exit code 1, `Not logged in · Please run /login`", 3);
}

#[test]
fn a_run_whose_agent_is_not_installed_ends_with_4_and_the_next_one_goes_on() {
    vain("no-such-agent --print\n", "cannot be started: exit code 127, ", 1);
}
