//! Sandboxes, with real processes: only granted paths are in reach, and no process survives.

use longhaul_activities::process::{Environment, Level, Network, Sandbox, Spec, available};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::support::{World, attempt, wait_for, wait_until_gone};

/// The levels that work here; prints the others.
fn levels() -> Vec<Level> {
    let available = available();
    for reason in [available.bubblewrap.as_ref().err(), available.landlock.as_ref().err()]
        .into_iter()
        .flatten()
    {
        eprintln!("a sandbox is not tried: {reason}");
    }
    let bubblewrap = available.bubblewrap.is_ok().then_some(Level::Bubblewrap);
    bubblewrap.into_iter().chain(available.landlock.is_ok().then_some(Level::Landlock)).collect()
}

fn has_bubblewrap() -> bool {
    levels().contains(&Level::Bubblewrap)
}

/// A world with a tree within the data directory, a checkout with a git directory, and a
/// neighbour's tree.
fn world() -> World {
    let world = World::new();
    for folder in ["data/trees/mine", "data/trees/other", "root/.git/objects", "caches"] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    for file in [
        "data/log",
        "data/trees/other/code",
        "root/code",
        "root/.git/config",
        "root/.git/objects/1",
    ] {
        world.write(file, "theirs\n");
    }
    world
}

fn sandbox(world: &World, level: Level) -> Sandbox {
    Sandbox {
        level,
        writable: ["data/trees/mine", "caches"].map(|path| world.path(path)).to_vec(),
        readable: ["root", "root/.git/objects"].map(|path| world.path(path)).to_vec(),
        hidden: ["data", "root/.git"].map(|path| world.path(path)).to_vec(),
        network: Network::On,
        private: false,
    }
}

fn spec(world: &World, sandbox: Sandbox, script: &str) -> Spec {
    let env = Environment::chosen(&[]).with("WORLD", world.path(""));
    Spec {
        directory: world.path("data/trees/mine"),
        env,
        sandbox: Some(sandbox),
        ..world.spec(script)
    }
}

/// Checks the output of a script in a sandbox of each level, with the world's path as `$WORLD`.
async fn check(script: &str, expected: &str) {
    for level in levels() {
        let world = world();
        let finished = world.run(&spec(&world, sandbox(&world, level), script)).await.unwrap();
        assert_eq!(finished.output_tail.trim_end(), expected, "{level:?}");
        assert_eq!(finished.exit_code, Some(0), "{level:?}");
        for file in ["data/log", "data/trees/other/code", "root/code", "root/.git/config"] {
            assert_eq!(world.read(file), "theirs\n", "{level:?}: {file}");
        }
    }
}

/// A shell script that reports for each path, given as `$path`, whether `what` works.
fn tried(what: &str, paths: &str) -> String {
    format!(
        "for path in {paths}; do if ({what}) >/dev/null 2>&1; then echo yes; else echo no; fi; \
         done | tr '\\n' ' '"
    )
}

#[tokio::test]
async fn what_is_granted_can_be_written() {
    let paths = "code \"$WORLD/caches/x\" \"$TMPDIR/x\" /dev/null /dev/shm/x.$$";
    check(&tried("echo mine >\"$path\"", paths), "yes yes yes yes yes").await;
}

#[tokio::test]
async fn a_private_program_leaves_nothing_that_others_can_read() {
    let (name, paths) = (format!("x-{}", std::process::id()), ["/tmp", "/var/tmp", "/dev/shm"]);
    let script = format!(
        "for dir in {} \"$HOME/.cache\"; do echo mine >\"$dir/{name}\"; done 2>/dev/null
         mkdir -p \"$XDG_CACHE_HOME\" && echo mine >\"$XDG_CACHE_HOME/x\" && cat \"$XDG_CACHE_HOME/x\"",
        paths.join(" ")
    );
    for level in levels() {
        let world = world();
        let sandbox = Sandbox { private: true, ..sandbox(&world, level) };
        let finished = world.run(&spec(&world, sandbox, &script)).await.unwrap();
        assert_eq!(finished.output_tail, "mine\n", "{level:?}");
        let home = std::env::home_dir().unwrap().join(".cache");
        for dir in paths.iter().map(std::path::Path::new).chain([home.as_path()]) {
            assert!(!dir.join(&name).exists(), "{level:?}: {}", dir.display());
        }
    }
}

/// Not a test of its own: what a program in a sandbox reaches.
#[test]
fn keyring_of_the_user() {
    use linux_keyutils::{KeyRing, KeyRingIdentifier};
    if std::env::var_os("TRY_KEYRING").is_none() {
        return;
    }
    let keyring = KeyRing::from_special_id(KeyRingIdentifier::User, false);
    let key = keyring.and_then(|keyring| keyring.add_key("longhaul-test", "held out"));
    println!("keyring: {}", if key.is_ok() { "reached" } else { "refused" });
    if let Ok(key) = key {
        key.invalidate().unwrap();
    }
}

#[tokio::test]
async fn nothing_can_be_left_in_the_kernel() {
    let program = std::env::current_exe().unwrap();
    let script =
        "TRY_KEYRING=1 ./try sandbox::keyring_of_the_user --exact --nocapture | grep keyring:";
    let tried = |level: Option<Level>| {
        let world = world();
        // A sandbox may hide the place of this program.
        let place = if level.is_some() { "data/trees/mine/try" } else { "work/try" };
        std::fs::copy(&program, world.path(place)).unwrap();
        async move {
            let spec = match level {
                Some(level) => spec(&world, sandbox(&world, level), script),
                None => world.spec(script),
            };
            world.run(&spec).await.unwrap().output_tail
        }
    };
    if tried(None).await != "keyring: reached\n" {
        eprintln!(
            "a sandbox is not tried: this kernel has no keyrings, or they are refused already"
        );
        return;
    }
    for level in levels() {
        let said = tried(Some(level)).await;
        assert_eq!(said, "keyring: refused\n", "{level:?}");
    }
}

#[tokio::test]
async fn a_private_program_leaves_no_objects_of_system_v() {
    let script = "command -v ipcmk >/dev/null || { echo none; exit; }
         ipcmk -Q >/dev/null 2>&1 && echo made || echo refused";
    for level in levels() {
        let world = world();
        let sandbox = Sandbox { private: true, ..sandbox(&world, level) };
        let said = world.run(&spec(&world, sandbox, script)).await.unwrap().output_tail;
        // Bubblewrap has a namespace for them, which ends with the program.
        let expected = if level == Level::Landlock { "refused\n" } else { "made\n" };
        assert!(said == "none\n" || said == expected, "{level:?}: {said}");
    }
}

#[tokio::test]
async fn no_descriptor_leads_out_of_the_sandbox() {
    // Links in `/proc` lead past read-only mounts, and `chmod` past Landlock.
    let script = "ls /proc/$$/fd; chmod 0777 /proc/$$/fd/0; cat; \
                  (echo mine >/proc/$$/fd/0) 2>/dev/null || echo refused";
    for level in levels() {
        let world = world();
        world.write("data/prompt", "the prompt\n");
        let mode = || std::fs::metadata(world.path("data/prompt")).unwrap().permissions();
        let before = mode();
        let input = Some(world.path("data/prompt"));
        let spec = Spec { input, ..spec(&world, sandbox(&world, level), script) };
        let said = world.run(&spec).await.unwrap().output_tail;
        assert_eq!(said, "0\n1\n2\nthe prompt\nrefused\n", "{level:?}");
        assert_eq!(world.read("data/prompt"), "the prompt\n", "{level:?}");
        assert_eq!(mode(), before, "{level:?}");
    }
}

#[tokio::test]
async fn limits_of_other_processes_cannot_be_set() {
    use std::process::{Command, Stdio};

    // Ends with its input.
    let piped = (Stdio::piped(), Stdio::null());
    let mut other = Command::new("cat").stdin(piped.0).stdout(piped.1).spawn().unwrap();
    let limits = format!("/proc/{}/limits", other.id());
    let before = std::fs::read_to_string(&limits).unwrap();
    let script = format!(
        "prlimit --pid {} --nofile=9:9 >/dev/null 2>&1 && echo set || echo refused
         ulimit -n 9 && ulimit -n",
        other.id()
    );
    for level in levels() {
        let world = world();
        let said = world.run(&spec(&world, sandbox(&world, level), &script)).await;
        assert_eq!(said.unwrap().output_tail, "refused\n9\n", "{level:?}");
        assert_eq!(std::fs::read_to_string(&limits).unwrap(), before, "{level:?}");
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn with_bubblewrap_the_usual_temporary_directory_is_private() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let name = format!("/tmp/longhaul-private-{}", std::process::id());
    let script = format!("echo mine >{name} && cat {name}");
    let finished =
        world.run(&spec(&world, sandbox(&world, Level::Bubblewrap), &script)).await.unwrap();
    assert_eq!(finished.output_tail, "mine\n");
    assert!(!std::path::Path::new(&name).exists());
}

#[tokio::test]
async fn what_is_not_granted_cannot_be_written() {
    let paths = "\"$WORLD/data/log\" \"$WORLD/data/new\" \"$WORLD/data/trees/other/code\" \
                 \"$WORLD/root/code\" \"$WORLD/root/new\" \"$WORLD/root/.git/config\" \
                 \"$WORLD/root/.git/objects/1\" \"$HOME/new-file\" \
                 /usr/new-file /proc/sys/kernel/core_pattern";
    check(&tried("echo mine >\"$path\"", paths), "no no no no no no no no no no").await;
    check(
        &tried(
            "rm -rf \"$path\" && ! test -e \"$path\"",
            "\"$WORLD/root/code\" \"$WORLD/root/.git/objects\"",
        ),
        "no no",
    )
    .await;
}

#[tokio::test]
async fn the_environment_of_longhaul_cannot_be_read() {
    check(&tried("cat \"$path\"", &format!("/proc/{}/environ", std::process::id())), "no").await;
}

#[tokio::test]
async fn what_is_hidden_cannot_be_read() {
    let paths = "\"$WORLD/data/log\" \"$WORLD/data/trees/other/code\" \"$WORLD/root/.git/config\"";
    check(&tried("cat \"$path\"", paths), "no no no").await;
    let paths = "\"$WORLD/root/code\" \"$WORLD/root/.git/objects/1\" /etc/passwd /proc/self/status";
    check(&tried("cat \"$path\"", paths), "yes yes yes yes").await;
}

#[tokio::test]
async fn the_sandbox_cannot_be_left_from_within() {
    let script = tried(
        "$path; cat \"$WORLD/data/log\" || echo mine >\"$WORLD/root/code\"",
        "'mount -o remount,rw /' 'umount -l \"'$WORLD'/data\"' 'unshare -Urm true' true",
    );
    check(&script, "no no no no").await;
}

#[tokio::test]
async fn a_private_directory_for_temporary_files_is_gone_after() {
    for level in levels() {
        let world = world();
        let script =
            "echo x >\"$TMPDIR/file\"; mkdir -p \"$TMPDIR/deep/er\"; ls \"$TMPDIR\" | tr '\\n' ' '";
        let finished = world.run(&spec(&world, sandbox(&world, level), script)).await.unwrap();
        assert_eq!(finished.output_tail, "deep file ", "{level:?}");
        assert_eq!(std::fs::read_dir(world.path("data/tmp")).unwrap().count(), 0, "{level:?}");
    }
}

#[tokio::test]
async fn exact_endings_come_out_of_the_sandbox() {
    for level in levels() {
        let world = world();
        let run = async |script: &str| {
            world.run(&spec(&world, sandbox(&world, level), script)).await.unwrap()
        };
        assert_eq!(run("exit 7").await.exit_code, Some(7), "{level:?}");
        assert_eq!(run("exit 143").await.exit_code, Some(143), "{level:?}");
        assert_eq!(
            run("kill -9 $$").await.ended_by.as_deref(),
            Some("killed by signal 9"),
            "{level:?}"
        );
        let missing =
            Spec { program: "no-such-program".into(), ..spec(&world, sandbox(&world, level), "") };
        let failure = world.run(&missing).await.unwrap_err();
        assert!(
            failure.message.starts_with("`no-such-program` cannot be started: "),
            "{level:?}: {failure}"
        );
    }
}

#[tokio::test]
async fn only_processes_of_the_sandbox_are_seen() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let script = format!(
        "kill -0 {} 2>/dev/null && echo seen; ls /proc | grep -c '^[0-9]'",
        std::process::id()
    );
    let finished =
        world.run(&spec(&world, sandbox(&world, Level::Bubblewrap), &script)).await.unwrap();
    let processes: u32 =
        finished.output_tail.trim().parse().expect("a number and nothing before it");
    assert!(processes <= 6, "{processes} processes");
}

/// A process in a session of its own, without a parent and without the variables that mark it.
const DAEMON: &str = "
    setsid env -i PATH=\"$PATH\" sh -c 'trap \"\" TERM HUP; sleep 6007; :' >/dev/null 2>&1 \
        </dev/null &
    while ! grep -qs 'sleep.6007' /proc/[0-9]*/cmdline; do :; done
";

/// The processes with this text in their command line.
fn with_command(text: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let command = |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.filter(|pid| String::from_utf8_lossy(&command(pid)).replace('\0', " ").contains(text))
        .collect()
}

#[tokio::test]
async fn a_daemon_dies_with_its_session() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let number = format!("6{}", std::process::id());
    let script = format!("{}exit 3", DAEMON.replace("6007", &number));
    let finished =
        world.run(&spec(&world, sandbox(&world, Level::Bubblewrap), &script)).await.unwrap();
    assert_eq!(finished.exit_code, Some(3));
    assert!(with_command(&format!("sleep {number}")).is_empty());
}

/// This process asks for no stop: its supervisor is killed, as by the OOM killer.
#[tokio::test]
async fn a_daemon_dies_with_its_supervisor() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let number = format!("7{}", std::process::id());
    let script = format!("{}echo ready >ready; sleep 600", DAEMON.replace("6007", &number));
    let spec = spec(&world, sandbox(&world, Level::Bubblewrap), &script);
    let kill = async {
        let ready = || (world.read("data/trees/mine/ready") == "ready\n").then_some(());
        wait_for("the daemon", ready).await;
        let daemon = with_command(&format!("sleep {number}"));
        assert!(!daemon.is_empty());
        let mark = world.path("data/tmp").display().to_string();
        let supervisor = with_command("--grace-ms").into_iter().find(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&mark)
        });
        signal::kill(Pid::from_raw(supervisor.unwrap()), Signal::SIGKILL).unwrap();
        daemon
    };
    let (runner, attempt) = (world.runner(), attempt("run", 0));
    let (outcome, daemon) = tokio::join!(runner.run(&spec, &attempt), kill);
    assert!(outcome.unwrap_err().message.starts_with("the supervisor of `sh` was lost"));
    wait_until_gone(&daemon).await;
}

#[tokio::test]
async fn a_program_in_a_sandbox_gets_sigterm_before_sigkill() {
    for level in levels() {
        let world = world();
        let script =
            "trap 'echo asked >asked; exit 0' TERM; echo $$ >ready; while :; do sleep 0.02; done";
        let spec = spec(&world, sandbox(&world, level), script);
        let ready = async {
            wait_for("the program", || world.path("data/trees/mine/ready").exists().then_some(()))
                .await;
        };
        let failure = world.runner().run_until(&spec, &attempt("run", 0), ready).await.unwrap_err();
        assert_eq!(failure.kind, longhaul_engine::FailureKind::Cancelled, "{level:?}");
        assert_eq!(world.read("data/trees/mine/asked"), "asked\n", "{level:?}");
    }
}

/// Whether a server of the host is reached.
async fn reaches_host(world: &World, level: Level, network: Network) -> bool {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sandbox = Sandbox { network, ..sandbox(world, level) };
    let finished = world
        .run(&spec(
            world,
            sandbox,
            &format!(
                "python3 -c '
import socket
try:
    socket.create_connection((\"127.0.0.1\", {port}), 5); print(\"reached\")
except OSError: print(\"refused\")
'"
            ),
        ))
        .await
        .unwrap();
    match finished.output_tail.trim() {
        "reached" => true,
        "refused" => false,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn the_network_can_be_off() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("the network is not tried: there is no python3");
        return;
    }
    for level in levels() {
        let world = world();
        assert!(reaches_host(&world, level, Network::On).await, "{level:?}");
        let off = Sandbox { network: Network::Off, ..sandbox(&world, level) };
        if off.not_enforced().is_none_or(|lack| lack.starts_with("only TCP")) {
            assert!(!reaches_host(&world, level, Network::Off).await, "{level:?}");
        }
        if level == Level::Bubblewrap {
            assert!(!reaches_host(&world, level, Network::Loopback).await);
        }
    }
}

#[tokio::test]
async fn with_a_network_of_its_own_a_program_has_loopback() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let sandbox = Sandbox { network: Network::Loopback, ..sandbox(&world, Level::Bubblewrap) };
    let script = "grep -c . /proc/net/dev; cat /proc/net/dev | grep -c 'lo:'";
    let finished = world.run(&spec(&world, sandbox, script)).await.unwrap();
    assert_eq!(finished.output_tail, "3\n1\n", "two lines of titles, and one interface");
}

#[tokio::test]
async fn sockets_of_the_data_directory_are_out_of_reach() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let _listener = std::os::unix::net::UnixListener::bind(world.path("data/sock")).unwrap();
    let finished = world
        .run(&spec(
            &world,
            sandbox(&world, Level::Bubblewrap),
            "test -e \"$WORLD/data/sock\" && echo there || echo gone",
        ))
        .await
        .unwrap();
    assert_eq!(finished.output_tail, "gone\n");
}

#[tokio::test]
async fn a_sandbox_that_cannot_be_set_up_is_named() {
    if !has_bubblewrap() {
        return;
    }
    let world = world();
    let spec = Spec {
        directory: world.path("data/trees/other"),
        ..spec(&world, sandbox(&world, Level::Bubblewrap), "true")
    };
    let failure = world.run(&spec).await.unwrap_err();
    assert!(
        failure.message.starts_with("the sandbox of `sh` cannot be set up: bwrap: "),
        "{failure}"
    );
}

/// Without a sandbox, nothing is restricted.
#[tokio::test]
async fn without_a_sandbox_everything_is_in_reach() {
    let world = world();
    let spec = Spec {
        sandbox: None,
        ..spec(&world, sandbox(&world, Level::Bubblewrap), "cat \"$WORLD/data/log\"")
    };
    assert_eq!(world.run(&spec).await.unwrap().output_tail, "theirs\n");
}
