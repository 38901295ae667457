//! Whole process trees: nothing is left of them.

use longhaul_engine::FailureKind;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::support::{World, attempt, wait_for, wait_until_gone};

/// Starts a background child, a double-forked one and one that ignores SIGTERM; writes their pids.
const FAMILY: &str = "
    sleep 600 & echo $! >>pids
    (sleep 600 & echo $! >>pids)
    sh -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 0.1; done' &
    echo $$ >>pids
";
const FAMILY_SIZE: usize = 4;

#[tokio::test]
async fn cancelling_ends_the_tree() {
    let world = World::new();
    let spec = world.spec(&format!("{FAMILY} wait"));
    let written = async {
        wait_for("the family", || world.pids(FAMILY_SIZE)).await;
    };
    let failure = world.runner().run_until(&spec, &attempt("run", 0), written).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    wait_until_gone(&world.pids(FAMILY_SIZE).unwrap()).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_its_tree() {
    let world = World::new();
    let (spec, runner, attempt) =
        (world.spec(&format!("{FAMILY} wait")), world.runner(), attempt("run", 0));
    let pids = tokio::select! {
        _ = runner.run(&spec, &attempt) => panic!("the script waits"),
        pids = wait_for("the family", || world.pids(FAMILY_SIZE)) => pids,
    };
    wait_until_gone(&pids).await;
}

#[tokio::test]
async fn what_a_program_leaves_is_ended_with_it() {
    let world = World::new();
    let finished = world.run(&world.spec(&format!("{FAMILY} exit 7"))).await.unwrap();
    assert_eq!(finished.exit_code, Some(7));
    wait_until_gone(&world.pids(FAMILY_SIZE - 1).unwrap()).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn processes_in_a_session_of_their_own_are_ended_too() {
    let setsid = std::process::Command::new("setsid").arg("true").status();
    if !setsid.is_ok_and(|status| status.success()) {
        return;
    }
    let world = World::new();
    let script = "setsid sh -c 'echo $$ >>pids; sleep 600 & echo $! >>pids; wait' & \
                  while [ $(cat pids 2>/dev/null | wc -l) -lt 2 ]; do sleep 0.02; done";
    world.run(&world.spec(script)).await.unwrap();
    wait_until_gone(&world.pids(2).unwrap()).await;
}

#[tokio::test]
async fn a_stopped_process_is_ended_too() {
    let world = World::new();
    let spec = world.spec("echo $$ >>pids; kill -STOP $$; exit 0");
    let at_work = async { drop(wait_for("its pid", || world.pids(1)).await) };
    let failure = world.runner().run_until(&spec, &attempt("run", 0), at_work).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    wait_until_gone(&world.pids(1).unwrap()).await;
}

#[tokio::test]
async fn the_tree_of_a_lost_supervisor_is_ended() {
    let world = World::new();
    let spec =
        world.spec("echo $PPID >supervisor; sleep 600 & echo $! >>pids; echo $$ >>pids; wait");
    let kill = async {
        let pids = wait_for("the pids", || world.pids(2)).await;
        let supervisor = world.read("work/supervisor").trim().parse().unwrap();
        signal::kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
        pids
    };
    let (runner, attempt) = (world.runner(), attempt("run", 0));
    let (outcome, pids) = tokio::join!(runner.run(&spec, &attempt), kill);
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Retryable);
    assert!(failure.message.starts_with("the supervisor of `sh` was lost"), "{failure}");
    wait_until_gone(&pids).await;
}

#[tokio::test]
async fn a_signal_to_the_supervisor_says_nothing_about_the_work() {
    let world = World::new();
    let failure = world
        .run(&world.spec("trap 'exit 0' TERM; kill -TERM $PPID; sleep 600 & wait"))
        .await
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Retryable);
    assert!(failure.message.contains("a stop signal from another process"), "{failure}");
}
