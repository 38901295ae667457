//! The real program is killed with `kill -9` at random moments, again and again, until it has done
//! its work.
//!
//! `LONGHAUL_TEST_KILLS=500` asks for at least so many kills: project after project is killed
//! through. `LONGHAUL_TEST_SEED=7` kills at other moments.

use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_storage::SledStore;
use longhaul_tests::command::{Longhaul, Running};
use longhaul_tests::dice::Dice;
use longhaul_tests::history::{Counts, Histories};
use longhaul_tests::project::{Habit, Plan, Project, plain};
use longhaul_tests::wait::until;

/// A graph with everything that can happen to a feature on its way.
const PLANS: [Plan; 6] = [
    plain("tokens", &[], 20),
    Plan { id: "parser", needs: &["tokens"], steps: 16, habit: Habit::Repairs },
    Plan { id: "table", needs: &[], steps: 16, habit: Habit::Fills },
    Plan { id: "shell", needs: &["parser", "table"], steps: 16, habit: Habit::Tampers },
    plain("units", &["tokens"], 20),
    plain("manual", &["shell", "units"], 16),
];

/// The default number of kills.
const KILLS: u32 = 100;

/// Until the next kill: sometimes while the log is being opened, sometimes after a few steps. Once
/// there were enough kills, more each time, so that a machine on which little is done in so short a
/// time gets through as well.
fn time(dice: &mut Dice, surplus: u32) -> Duration {
    Duration::from_millis(20 + dice.roll(680 + 20 * surplus as usize) as u64)
}

fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Lives of one project, to its end; how often it was killed.
fn kill_through(project: &Project, longhaul: &Longhaul, dice: &mut Dice, wanted: u32) -> u32 {
    let output = project.place().join("output");
    let root = project.root();
    let mut kills: u32 = 0;
    loop {
        let mut life = longhaul.begin(&["run", &root.to_string_lossy()], &output);
        if let Some(status) = life.wait_for(time(dice, kills.saturating_sub(wanted))) {
            assert_eq!(status.code(), Some(0), "life {}:\n{}", kills + 1, end_of(&life));
            return kills;
        }
        assert!(kills < wanted + 1000, "the project does not come to its end:\n{}", end_of(&life));
        kills += u32::from(life.kill());
    }
}

fn end_of(life: &Running) -> String {
    let output = life.output();
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// What must hold after all of it.
fn check(project: &Project, longhaul: &Longhaul) -> Counts {
    let status = longhaul.status(&project.root());
    assert_eq!(status["counts"]["passed"], PLANS.len(), "{status:#}");
    assert_eq!(status["status"], "done", "{status:#}");

    let mut landed = project.landed("main");
    landed.sort_unstable();
    assert_eq!(
        landed,
        ["manual", "parser", "shell", "table", "tokens", "units"],
        "each feature lands once"
    );
    assert_eq!(project.git(&["status", "--porcelain"]), "", "the checkout is clean");
    project.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(project.git(&["branch", "--format=%(refname:short)"]), "main", "no branch is left");
    let listed = project.git(&["worktree", "list", "--porcelain"]);
    let trees: Vec<&str> = listed.lines().filter(|line| line.starts_with("worktree ")).collect();
    let other = trees.iter().filter(|tree| !tree.ends_with("/p") && !tree.ends_with("/.integrate"));
    assert_eq!(other.count(), 0, "no work tree of a feature is left: {trees:?}");
    for plan in PLANS {
        let text = project.read(&format!("{}.txt", plan.id));
        let steps = (1..=plan.steps).map(|step| format!("step {step}"));
        let lines: Vec<String> = steps.chain(["finished".into()]).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), lines, "the work of {}", plan.id);
    }

    assert_eq!(
        reports_put_aside(&longhaul.home().join("sessions")),
        0,
        "a session with a report is not begun again"
    );
    let store = SledStore::open(longhaul.home()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let histories = runtime.block_on(Histories::of(&store)).unwrap();
    store.close();
    histories.check().unwrap();
    println!("failed attempts: {:#?}", histories.failures());
    let counts = histories.counts(&project.marks());
    assert_eq!(counts.repeated, 0, "{counts}");
    counts
}

/// Folders of sessions that were put aside, so that the session could be begun again, although they
/// hold its report.
fn reports_put_aside(sessions: &Path) -> usize {
    let entries = |folder: &Path| {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let folders = entries(sessions).flat_map(|run| entries(&run).collect::<Vec<_>>());
    folders
        .filter(|folder| {
            folder.extension().is_some_and(|end| end != "0") && folder.join("report.json").exists()
        })
        .count()
}

fn wait_until_nothing_is_left(longhaul: &Longhaul) {
    until("nothing is left over", || longhaul.left_over().is_empty());
}

#[test]
fn kill_minus_9_at_any_moment_loses_nothing_and_repeats_nothing() {
    let wanted =
        number_of("LONGHAUL_TEST_KILLS").and_then(|kills| kills.try_into().ok()).unwrap_or(KILLS);
    // A seed of zero would give nothing but zeros.
    let mut dice = Dice(number_of("LONGHAUL_TEST_SEED").unwrap_or(0x9e37_79b9_7f4a_7c15).max(1));
    let (mut kills, mut lives) = (0, 0);
    while kills < wanted {
        let begun = Instant::now();
        let project = Project::with_settings(&PLANS, 0.25, "[project]\nparallel = 2\n");
        project.set_sandbox("");
        let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
        let killed = kill_through(&project, &longhaul, &mut dice, wanted - kills);
        wait_until_nothing_is_left(&longhaul);
        let counts = check(&project, &longhaul);
        kills += killed;
        lives += killed + 1;
        println!(
            "{killed} kills, {} lives, {:.0?}; {counts}; features landed twice: 0",
            killed + 1,
            begun.elapsed()
        );
    }
    println!("{kills} kills and {lives} lives in all");
}
