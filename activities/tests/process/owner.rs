//! Owners that die: their processes die with them, or are swept by the next owner.

use std::process::{Child, Command};

use longhaul_activities::process::{owner_id, sweep};

use super::support::{World, helper, is_alive, wait_for, wait_until_gone};

fn own(world: &World, script: &str, passed: &[&str]) -> Command {
    let mut command = Command::new(helper());
    command.arg("own").arg(world.path("data")).arg(script).args(passed).env("SECRET_TOKEN", "hush");
    command
}

#[tokio::test]
async fn the_tree_of_a_killed_owner_is_ended() {
    let world = World::new();
    let script = "cd ../work; echo $PPID >>pids; sleep 600 & echo $! >>pids; \
                  (sleep 600 & echo $! >>pids); echo $$ >>pids; wait";
    let mut owner = own(&world, script, &[]).spawn().unwrap();
    let pids = wait_for("the tree", || world.pids(4)).await;
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until_gone(&pids[1..]).await;
    // The supervisor ends last; its parent depends on the system.
    let supervisor = format!("/proc/{}/cmdline", pids[0]);
    wait_for("the supervisor", || {
        std::fs::read(&supervisor).unwrap_or_default().is_empty().then_some(())
    })
    .await;
}

#[test]
fn secrets_are_passed_on_only_by_name() {
    let world = World::new();
    let output = |passed: &[&str]| {
        let output = own(&world, "echo \"token=$SECRET_TOKEN home=$HOME\"", passed)
            .env("HOME", "/h")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(output(&[]), "token= home=/h\n\n");
    assert_eq!(output(&["SECRET_TOKEN"]), "token=hush home=/h\n\n");
}

fn left_over(owner: &str) -> Child {
    // Ignored signals stay ignored.
    Command::new("sh")
        .args(["-c", "trap '' TERM; exec sleep 600"])
        .env("LONGHAUL_OWNER", owner)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn the_next_owner_sweeps_what_the_last_one_left() {
    let world = World::new();
    let id = owner_id(&world.path("data"));
    assert_eq!(owner_id(&world.path("work/../data")), id);
    let (mut left, mut of_another) = (left_over(&id), left_over("another"));
    let pid = left.id();
    let command = format!("/proc/{pid}/cmdline");
    wait_for("the process to ignore SIGTERM", || {
        std::fs::read(&command).ok()?.starts_with(b"sleep").then_some(())
    })
    .await;

    let reaper = tokio::task::spawn_blocking(move || left.wait());
    let data_dir = world.path("data");
    let swept = tokio::task::spawn_blocking(move || sweep(&data_dir)).await.unwrap();
    reaper.await.unwrap().unwrap();

    let found =
        swept.iter().find(|process| process.pid == pid).expect("the left-over process is reported");
    assert_eq!(found.command, "sleep 600");
    assert!(is_alive(of_another.id().cast_signed()));
    assert_eq!(sweep(&world.path("data")), []);
    of_another.kill().unwrap();
    of_another.wait().unwrap();
}
