//! The power is cut at random moments while the real program and real git work on real disks:
//! nothing that was recorded is lost, nothing is done twice, and no file of the repository is empty
//! afterwards.
//!
//! `LONGHAUL_TEST_CUTS=200` asks for at least so many cuts, `LONGHAUL_TEST_SEED=7` for other
//! moments. Needs root and loop devices; elsewhere the tests say so and do nothing.

use std::process::Command;
use std::time::Duration;

use longhaul_storage::SledStore;
use longhaul_tests::command::Longhaul;
use longhaul_tests::dice::Dice;
use longhaul_tests::disk::Disk;
use longhaul_tests::history::Histories;
use longhaul_tests::project::{Habit, Plan, Project, git, plain};

const PLANS: [Plan; 4] = [
    plain("parser", &[], 6),
    Plan { id: "table", needs: &[], steps: 6, habit: Habit::Fills },
    Plan { id: "shell", needs: &["parser"], steps: 4, habit: Habit::Repairs },
    plain("manual", &["table"], 4),
];

/// The default number of cuts.
const CUTS: u32 = 8;

fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Ends everything that an owner started, at once, as a power cut does.
fn stop_everything(longhaul: &Longhaul) {
    loop {
        let left = longhaul.left_over();
        if left.is_empty() {
            return;
        }
        for process in left {
            let pid = process
                .split(' ')
                .next()
                .and_then(|place| place.rsplit('/').next())
                .unwrap_or_default()
                .to_owned();
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
    }
}

/// What must hold after each cut.
fn check_repository(project: &Project, cut: u32) {
    let fsck = git(&project.root(), &["fsck", "--full", "--no-dangling", "--no-reflogs"]);
    assert!(fsck.is_ok(), "after cut {cut}: {fsck:?}");
    let listed = project.git(&["ls-tree", "-r", "-l", "main"]);
    for line in listed.lines() {
        assert_ne!(
            line.split_whitespace().nth(3),
            Some("0"),
            "after cut {cut}, an empty file is on the target: {line}"
        );
    }
}

/// What must hold at the end.
fn check_end(project: &Project, longhaul: &Longhaul) {
    let mut landed = project.landed("main");
    landed.sort_unstable();
    assert_eq!(landed, ["manual", "parser", "shell", "table"], "each feature lands once");
    assert_eq!(project.git(&["status", "--porcelain"]), "", "the checkout is clean");
    for plan in PLANS {
        let text = project.read(&format!("{}.txt", plan.id));
        assert!(text.ends_with("finished\n"), "{}: {text:?}", plan.id);
    }
    let store = SledStore::open(longhaul.home()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let histories = runtime.block_on(Histories::of(&store)).unwrap();
    store.close();
    histories.check().unwrap();
    let counts = histories.counts(&project.marks());
    assert_eq!(counts.repeated, 0, "{counts}");
    println!("{counts}");
}

/// Runs a project to its end through power cuts; how many there were.
fn cut_through(layout: &[(&str, &[&str])], dice: &mut Dice, wanted: u32) -> u32 {
    let mut disks = Vec::new();
    let project = Project::placed(&PLANS, 0.05, "[project]\nparallel = 2\n", |place| {
        disks.extend(layout.iter().map(|(name, directories)| Disk::new(place, name, directories)));
    });
    // What the user did is on the disk.
    for disk in &disks {
        disk.write_some_back(|| true);
    }
    let longhaul = Longhaul::new(env!("CARGO_BIN_EXE_longhaul-under-test"), project.home());
    let output = project.place().join("output");
    let mut cuts: u32 = 0;
    loop {
        let mut life = longhaul.begin(&["run", &project.root().to_string_lossy()], &output);
        let time = Duration::from_millis(
            100 + dice.roll(2500 + 400 * cuts.saturating_sub(wanted) as usize) as u64,
        );
        if let Some(status) = life.wait_for(time) {
            assert_eq!(status.code(), Some(0), "life {}:\n{}", cuts + 1, life.output());
            break;
        }
        if dice.roll(3) == 0 {
            for disk in &disks {
                disk.write_some_back(|| dice.roll(2) == 0);
            }
        }
        life.kill();
        stop_everything(&longhaul);
        for disk in &disks {
            disk.cut();
        }
        cuts += 1;
        assert!(cuts < wanted + 200, "the project does not come to its end:\n{}", life.output());
        check_repository(&project, cuts);
    }
    check_end(&project, &longhaul);
    cuts
}

fn check(layout: &[(&str, &[&str])]) {
    if let Some(obstacle) = Disk::obstacle() {
        println!("skipped, for power cuts need root and loop devices: {obstacle}");
        return;
    }
    let wanted =
        number_of("LONGHAUL_TEST_CUTS").and_then(|cuts| cuts.try_into().ok()).unwrap_or(CUTS);
    let mut dice = Dice(number_of("LONGHAUL_TEST_SEED").unwrap_or(0x9e37_79b9_7f4a_7c15).max(1));
    let mut cuts = 0;
    while cuts < wanted {
        cuts += cut_through(layout, &mut dice, wanted - cuts);
        println!("{cuts} cuts");
    }
}

#[test]
fn a_repository_and_its_log_on_one_disk_outlive_power_cuts() {
    check(&[("disk", &["p", "home"])]);
}

#[test]
fn a_repository_and_its_log_on_two_disks_outlive_power_cuts() {
    check(&[("disk-1", &["p"]), ("disk-2", &["home"])]);
}
