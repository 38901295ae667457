//! Calls that a crash of Longhaul, or of the machine, interrupts.

use longhaul_activities::process::owned;
use longhaul_engine::{Handler, Probe};
use serde_json::json;

use super::super::support::{attempt, wait_for};
use super::Tools;

const IN_USE: &str = "data/git/shop/trees/login/in-use";

#[tokio::test]
async fn an_edit_is_made_once() {
    let tools = Tools::new().await;
    let args = json!({"path": "code.txt", "old": "good", "new": "good good"});
    let first = tools.try_at(5, "edit", args.clone()).await.unwrap();
    assert_eq!(tools.world.read("work/code.txt"), "good good\n");
    let handler = tools.after_crash();
    let again = handler.perform(tools.input("edit", &args), &attempt("shop/login", 5)).await;
    assert_eq!(again.unwrap().text, first.text);
    assert_eq!(tools.world.read("work/code.txt"), "good good\n", "the same call");
    let more = json!({"path": "code.txt", "old": "good", "new": "good good", "all": true});
    tools.try_at(6, "edit", more).await.unwrap();
    assert_eq!(tools.world.read("work/code.txt"), "good good good good\n", "another call");
}

#[tokio::test]
async fn an_edit_that_was_recorded_and_not_made_is_made() {
    let tools = Tools::new().await;
    let args = json!({"path": "code.txt", "old": "good", "new": "very good"});
    tools.try_at(5, "edit", args.clone()).await.unwrap();
    // As before the rename, and as after a rewind.
    tools.world.write("work/code.txt", "good\n");
    tools.try_at(5, "edit", args.clone()).await.unwrap();
    assert_eq!(tools.world.read("work/code.txt"), "very good\n");
    // Another file with the same text has another record.
    tools.world.write("work/other.txt", "very good\n");
    let other = json!({"path": "other.txt", "old": "good", "new": "very good"});
    tools.try_at(5, "edit", other).await.unwrap();
    assert_eq!(tools.world.read("work/other.txt"), "very very good\n");
}

#[tokio::test]
async fn an_interrupted_command_has_an_unknown_outcome() {
    let tools = Tools::new().await;
    tools.says("write", json!({"path": "earlier", "content": "kept"})).await;
    let args =
        json!({"command": "echo half >half.txt; echo some output; echo $$ >>pids; sleep 600"});
    let logs = tools.world.path("data/logs/shop~login");
    let has_output = || {
        let files = std::fs::read_dir(&logs).into_iter().flatten().flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains("some output"))
    };
    tokio::select! {
        _ = tools.try_at(5, "shell", args.clone()) => panic!("the command sleeps"),
        _ = wait_for("the command and its output", || tools.world.pids(1).filter(|_| has_output())) => {}
    };
    assert!(tools.world.path(IN_USE).exists());
    let Probe::Happened(outcome) = tools.probe(5, "shell", args).await else { panic!("unknown") };
    assert!(outcome.is_error);
    let expected = "The command was interrupted, and its outcome is unknown: it may have done all \
                    of its work, a part, or nothing. Look before you run it again. Its output \
                    until then:\nsome output";
    assert_eq!(outcome.text, expected);
    assert_eq!(owned(&tools.world.path("data")), []);
    assert!(!tools.world.path(IN_USE).exists(), "the tree is safe for the next call");
    assert_eq!(tools.world.read("work/half.txt"), "half\n");
    assert_eq!(tools.world.read("work/earlier"), "kept");
    assert_eq!(std::fs::read_dir(tools.world.path("data/logs/shop~login")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_killed_process_takes_no_files_with_it() {
    let tools = Tools::new().await;
    tools.says("write", json!({"path": "new.txt", "content": "work"})).await;
    // The record of a dead process that was started since the boot.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    tools.world.write(IN_USE, &format!("{} 1-2-3", boot.trim()));
    let input = tools.input("read", &json!({"path": "new.txt"}));
    let read = tools.after_crash().perform(input, &attempt("shop/login", 6)).await.unwrap();
    assert_eq!(read.text, "1\twork\n");
    assert!(!tools.world.path(IN_USE).exists());
}

#[tokio::test]
async fn after_a_power_cut_a_tree_in_use_is_recreated_and_the_model_informed() {
    let tools = Tools::new().await;
    tools.says("write", json!({"path": "new.txt", "content": "work"})).await;
    let input = tools.input("read", &json!({"path": "new.txt"}));
    let settled = tools.after_crash().perform(input.clone(), &attempt("shop/login", 6)).await;
    assert_eq!(settled.unwrap().text, "1\twork\n", "a settled tree is trusted");

    tools.world.write(IN_USE, "another-boot 1-2-3");
    let handler = tools.after_crash();
    let read = handler.perform(input.clone(), &attempt("shop/login", 7)).await.unwrap();
    assert!(read.is_error && read.text.contains("`new.txt` does not exist."), "{}", read.text);
    let commit = read.text.split("`git show ").nth(1).unwrap().split('`').next().unwrap();
    assert_eq!(tools.world.git(&["show", &format!("{commit}:new.txt")]), "work");
    let read = handler.perform(input, &attempt("shop/login", 8)).await.unwrap();
    assert_eq!(read.text, "`new.txt` does not exist.", "the model is told once");
}

#[tokio::test]
async fn an_interrupted_command_of_before_a_power_cut_tells_where_the_files_are() {
    let tools = Tools::new().await;
    tools.says("write", json!({"path": "new.txt", "content": "work"})).await;
    tools.world.write(IN_USE, "another-boot 1-2-3");
    let probe = tools.probe(7, "shell", json!({"command": "x"})).await;
    let Probe::Happened(outcome) = probe else { panic!("{probe:?}") };
    let commit = outcome.text.split("`git show ").nth(1).unwrap().split('`').next().unwrap();
    assert_eq!(tools.world.git(&["show", &format!("{commit}:new.txt")]), "work");
    assert!(outcome.text.contains("its outcome is unknown"), "{}", outcome.text);
}

#[tokio::test]
async fn a_failed_set_up_does_not_reset_the_tree_before_each_call() {
    let tools = Tools::new().await;
    tools.world.script("root/init.sh", "#!/bin/sh\nexit 1\n");
    tools.world.script("work/init.sh", "#!/bin/sh\necho x >>../../../../out/set-ups\nexit 1\n");
    tools.world.commit();
    std::fs::remove_file(tools.world.path("data/git/shop/trees/login/set-up")).unwrap();
    tools.says("write", json!({"path": "first", "content": ""})).await;
    tools.says("write", json!({"path": "second", "content": ""})).await;
    assert!(tools.world.path("work/first").exists());
}
