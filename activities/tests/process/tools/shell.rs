//! `shell`: its answer, its limits and its environment.

use longhaul_activities::process::owned;
use longhaul_workflows::settings::{EnvSource, SandboxMode};
use serde_json::json;

use super::super::support::{is_alive, wait_for};
use super::Tools;

#[tokio::test]
async fn the_answer_has_output_and_end() {
    let tools = Tools::new().await;
    let run = |command: &str| json!({"command": command});
    let said = tools.says("shell", run("cat code.txt; printf $((1 + 1)) >&2")).await;
    assert_eq!(said, "good\n2\n[exit code 0]");
    assert_eq!(tools.refuses("shell", run("echo a; exit 3")).await, "a\n[exit code 3]");
    assert_eq!(tools.refuses("shell", run("kill -9 $$")).await, "[killed by signal 9]");
    assert_eq!(tools.says("shell", run("cat")).await, "[exit code 0]", "there is no input");
    let said = tools.says("shell", run("echo $LONGHAUL_FEATURE_ID $LONGHAUL_RUN_ID; pwd")).await;
    let pwd = tools.world.text_path("work");
    assert_eq!(said, format!("login shop/login\n{pwd}\n[exit code 0]"));
    assert_eq!(std::fs::read_dir(tools.world.path("data/logs/shop~login")).unwrap().count(), 0);
}

#[tokio::test]
async fn its_files_stay_and_the_tree_is_settled() {
    let tools = Tools::new().await;
    tools.says("shell", json!({"command": "echo work >new.txt"})).await;
    assert!(!tools.world.path("data/git/shop/trees/login/in-use").exists());
    assert_eq!(tools.says("read", json!({"path": "new.txt"})).await, "1\twork\n");
}

#[tokio::test]
async fn a_command_is_ended_at_its_timeout_with_its_children() {
    let mut tools = Tools::new().await;
    let command = "(trap '' TERM; echo $BASHPID >>pids; sleep 600) & setsid sleep 600 & \
                   echo $! >>pids; echo begun; wait";
    let args = json!({"command": command, "timeout": 2});
    assert_eq!(tools.refuses("shell", args.clone()).await, "begun\n[timed out after 2 s]");
    assert_eq!(owned(&tools.world.path("data")), []);
    // Without a sandbox, the command sees its real process ids.
    tools.agent.sandbox = SandboxMode::Off;
    std::fs::remove_file(tools.world.path("work/pids")).unwrap();
    assert_eq!(tools.refuses("shell", args).await, "begun\n[timed out after 2 s]");
    let pids = tools.world.pids(2).unwrap();
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");
}

#[tokio::test]
async fn children_in_the_background_end_with_the_call() {
    let mut tools = Tools::new().await;
    tools.agent.sandbox = SandboxMode::Off;
    let command = "sleep 600 >/dev/null 2>&1 & echo $! >pids";
    tools.says("shell", json!({"command": command})).await;
    assert!(tools.world.pids(1).unwrap().iter().all(|pid| !is_alive(*pid)));
}

#[tokio::test]
async fn calls_that_change_a_tree_run_one_at_a_time() {
    let tools = Tools::new().await;
    let run = |slot, name: &str| {
        let command = format!("echo begin {name} >>order; sleep 0.3; echo end {name} >>order");
        tools.try_at(slot, "shell", json!({"command": command}))
    };
    let (first, second) = tokio::join!(run(5, "a"), run(6, "b"));
    assert!(!first.unwrap().is_error && !second.unwrap().is_error);
    let order = tools.world.read("work/order");
    let [ab, ba] = [["a", "b"], ["b", "a"]]
        .map(|names| names.map(|name| format!("begin {name}\nend {name}\n")).concat());
    assert!(order == ab || order == ba, "{order}");
}

#[tokio::test]
async fn a_silent_command_is_ended() {
    let mut tools = Tools::new().await;
    tools.agent.silence_timeout.0 = 1;
    let said = tools.refuses("shell", json!({"command": "exec sleep 600"})).await;
    assert_eq!(said, "[silent for 1 s]");
}

#[tokio::test]
async fn the_middle_of_long_output_is_cut_at_characters() {
    let tools = Tools::new().await;
    let command = "printf x; i=0; while [ $i -lt 20000 ]; do printf €; i=$((i + 1)); done";
    let said = tools.says("shell", json!({"command": command})).await;
    assert!(said.starts_with("x€") && said.ends_with("€\n[exit code 0]"), "{said}");
    assert!(!said.contains('\u{fffd}'), "no character is cut in two");
    let rest = said.replace('€', "");
    let left_out = 60_001 - (said.len() - rest.len()) - 1;
    assert_eq!(rest, format!("x\n[… {left_out} bytes are left out here …]\n\n[exit code 0]"));
    assert!(said.len() < 17 * 1024, "{}", said.len());
}

#[tokio::test]
async fn secrets_do_not_reach_an_answer() {
    let mut tools = Tools::new().await;
    let lines = "[agent.env]\nTOKEN = \"hush-hush\"\nLINES = \"first line\\nsecond line\"\n";
    tools.world.write("root/longhaul.toml", lines);
    tools.world.write("out/key", "key-in-a-file\n");
    let file = EnvSource::File(tools.world.text_path("out/key"));
    tools.agent.env =
        [("TOKEN", EnvSource::SETTINGS), ("LINES", EnvSource::SETTINGS), ("KEY_FILE", file)]
            .map(|(name, source)| (name.to_owned(), source))
            .into();
    let command = "echo $TOKEN $KEY_FILE; echo \"$LINES\"; echo $TOKEN >hush-hush";
    let said = tools.says("shell", json!({"command": command})).await;
    assert_eq!(said, "[redacted TOKEN] [redacted KEY_FILE]\n[redacted LINES]\n[exit code 0]");
    assert_eq!(tools.world.read("work/hush-hush"), "hush-hush\n", "the command had the value");
    for (tool, args, expected) in [
        ("read", json!({"path": "hush-hush"}), "1\t[redacted TOKEN]\n"),
        ("search", json!({"pattern": "hush"}), "No line matches.\n"),
        ("search", json!({"pattern": "redacted"}), "[redacted TOKEN]:1:[redacted TOKEN]\n"),
        ("list", json!({"glob": "h*"}), "[redacted TOKEN]\n"),
    ] {
        assert_eq!(tools.says(tool, args).await, expected, "{tool}");
    }
    let gone = tools.refuses("read", json!({"path": "gone-hush-hush"})).await;
    assert_eq!(gone, "`gone-[redacted TOKEN]` does not exist.");
    // Across the cut of the output, at each offset.
    for before in 8 * 1024 - 10..8 * 1024 + 2 {
        let command = format!(
            "head -c {before} /dev/zero | tr '\\0' -; printf $TOKEN; head -c 20000 /dev/zero | \
             tr '\\0' -"
        );
        let said = tools.says("shell", json!({"command": command})).await;
        let rest = said.replace("[redacted TOKEN]", "");
        assert!(!rest.contains("hu") && !rest.contains("sh"), "{before}: {rest}");
    }
    let path = tools.world.path("data");
    wait_for("no log with the secret", || (!contains(&path, b"hush-hush")).then_some(())).await;
}

/// Whether a file below a directory has some bytes, outside of work trees.
fn contains(folder: &std::path::Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            !path.ends_with("worktrees") && contains(&path, bytes)
        } else {
            let content = std::fs::read(path).unwrap_or_default();
            content.windows(bytes.len()).any(|part| part == bytes)
        }
    })
}

#[tokio::test]
async fn a_call_that_is_not_valid_is_an_answer() {
    let tools = Tools::new().await;
    for (tool, args, expected) in [
        (
            "shell",
            json!({}),
            "The arguments of `shell` are not valid: the field `command` is missing.",
        ),
        ("grep", json!({}), "There is no tool `grep`."),
        ("finish", json!({"summary": "x"}), "This tool does not work on files."),
    ] {
        let said = tools.refuses(tool, args).await;
        assert!(said.starts_with(expected), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_runs_in_the_sandbox_of_the_agent() {
    let mut tools = Tools::new().await;
    tools.world.write("out/file", "old");
    let out = tools.world.text_path("out");
    let command = format!(
        "echo new >{out}/file; ls {0} 2>&1 | grep -c logs; cat {1}/x; echo $HIDDEN",
        tools.world.text_path("data"),
        tools.world.text_path("root/hidden"),
    );
    std::fs::create_dir(tools.world.path("root/hidden")).unwrap();
    tools.world.write("root/hidden/x", "held out\n");
    tools.held_out = Some("hidden".into());
    tools.agent.write = Some(Vec::new());
    let inside = tools.outcome("shell", json!({"command": command})).await;
    assert_eq!(tools.world.read("out/file"), "old", "{inside:?}");
    assert!(!inside.text.contains("held out"), "{inside:?}");
    tools.agent.sandbox = SandboxMode::Off;
    let outside = tools.outcome("shell", json!({"command": command})).await;
    assert_eq!(tools.world.read("out/file"), "new\n");
    assert!(outside.text.contains("held out"), "{outside:?}");
}
