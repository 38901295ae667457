//! One program: its ending, its output, its inputs.

use std::time::Duration;

use longhaul_activities::process::{Environment, Finished, Runner, Supervisor};
use longhaul_engine::{Failure, FailureKind};

use super::support::{World, attempt, supervisor};

async fn run(script: &str) -> Finished {
    let world = World::new();
    world.run(&world.spec(script)).await.unwrap()
}

async fn check_ending(script: &str, expected: &str) {
    assert_eq!(run(script).await.ending(), expected, "{script}");
}

#[tokio::test]
async fn the_ending_of_a_program_is_reported() {
    check_ending("exit 0", "exit code 0").await;
    check_ending("exit 75", "exit code 75").await;
    check_ending("exit 127", "exit code 127").await;
    check_ending("kill -9 $$", "killed by signal 9").await;
    check_ending("kill -TERM $$", "killed by signal 15").await;
    check_ending("exec >&- 2>&-; exit 3", "exit code 3").await;
}

#[tokio::test]
async fn both_outputs_are_kept_in_their_order() {
    let finished = run("echo one; echo two >&2; printf '\\377three'").await;
    assert_eq!(finished.output_tail, "one\ntwo\n\u{fffd}three");
    assert_eq!(finished.output_digest, blake3::hash(b"one\ntwo\n\xffthree").to_hex().to_string());
}

#[tokio::test]
async fn logs_of_attempts_do_not_overwrite_each_other() {
    let world = World::new();
    let (first, second) = (
        world.run(&world.spec("echo 1")).await.unwrap(),
        world.run(&world.spec("echo 2")).await.unwrap(),
    );
    assert_eq!(first.log, "logs/run/0.0-1-script.log");
    assert_eq!(second.log, "logs/run/0.0-1-script.2.log");
    let kept = |log: &str| world.read(&format!("data/{log}"));
    assert_eq!((kept(&first.log), kept(&second.log)), ("1\n".into(), "2\n".into()));
}

#[tokio::test]
async fn much_output_takes_little_memory() {
    let world = World::new();
    let before = peak_memory();
    let finished =
        world.run(&world.spec("yes 0123456789abcde | head -c 20000000; printf end")).await.unwrap();
    assert_eq!(finished.output_tail.len(), 8192);
    assert!(finished.output_tail.ends_with("\nend"));
    assert_eq!(world.path("data").join(finished.log).metadata().unwrap().len(), 20_000_003);
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        assert!(after < before + 12_000, "grew from {before} to {after} KiB");
    }
}

/// In KiB, where the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_ended() {
    let world = World::new();
    let mut spec = world.spec("trap 'exit 0' TERM; while :; do sleep 0.1; echo on; done");
    spec.limits.total = Some(Duration::from_secs(1));
    let finished = world.run(&spec).await.unwrap();
    assert_eq!(
        (finished.exit_code, finished.ended_by.as_deref()),
        (None, Some("timed out after 1 s"))
    );
}

#[tokio::test]
async fn a_silent_program_is_ended_and_a_talking_one_is_not() {
    let world = World::new();
    let mut spec = world.spec("for i in 1 2 3 4 5 6; do sleep 1; echo $i; done; exec sleep 600");
    spec.limits.silence = Some(Duration::from_secs(5));
    let finished = world.run(&spec).await.unwrap();
    assert_eq!((finished.exit_code, finished.ended_by.as_deref()), (None, Some("silent for 5 s")));
    assert_eq!(finished.output_tail, "1\n2\n3\n4\n5\n6\n");
}

#[tokio::test]
async fn standard_input_is_a_file_or_nothing() {
    let world = World::new();
    world.write("prompt", "do it");
    let mut spec = world.spec("cat");
    assert_eq!(world.run(&spec).await.unwrap().output_tail, "");
    spec.input = Some(world.path("prompt"));
    assert_eq!(world.run(&spec).await.unwrap().output_tail, "do it");
}

#[tokio::test]
async fn the_environment_is_the_chosen_one() {
    let world = World::new();
    let mut spec = world.spec("env");
    spec.env = Environment::chosen_from([], &[]).with("A", "1");
    let output = world.run(&spec).await.unwrap().output_tail;
    let mut names: Vec<_> =
        output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| !["_", "PWD", "SHLVL", "OLDPWD"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["A", "LONGHAUL_OWNER", "LONGHAUL_SESSION_KEY", "PATH"]);
    assert!(output.contains("LONGHAUL_SESSION_KEY=run@0.0\n"), "{output}");
}

async fn refused(world: &World, program: &str, path: &str) -> Failure {
    let mut spec = world.spec("");
    spec.program = program.into();
    spec.env = spec.env.with("PATH", path);
    let failure = world.run(&spec).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Terminal, "{failure}");
    failure
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_no_exit_code() {
    let world = World::new();
    let failure = refused(&world, "no-such-agent", "/nowhere:/bin").await;
    let expected = "`no-such-agent` cannot be started: No such file or directory (os error 2). \
                    It was looked for in PATH=/nowhere:/bin. Install it.";
    assert_eq!(failure.message, expected);

    world.write("plain", "#!/bin/sh\n");
    let failure = refused(&world, &world.text_path("plain"), "/bin").await;
    assert!(failure.message.ends_with("The file is not executable. Install it."), "{failure}");

    world.script("odd", "#!/no/such/interpreter\n");
    let failure = refused(&world, &world.text_path("odd"), "/bin").await;
    assert!(failure.message.contains("the interpreter that its first line names"), "{failure}");

    let supervisor = Supervisor { program: "/no/such/longhaul".into(), ..supervisor() };
    let failure = Runner::new(world.path("data"), supervisor)
        .run(&world.spec("true"), &attempt("run", 0))
        .await;
    let failure = failure.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Machine, "it says nothing about the work: {failure}");
    assert!(
        failure.message.contains("the supervisor /no/such/longhaul cannot be started"),
        "{failure}"
    );

    let mut spec = world.spec("true");
    spec.directory = world.path("gone");
    let failure = world.run(&spec).await.unwrap_err();
    assert!(failure.message.ends_with("there is no such directory"), "{failure}");
}
