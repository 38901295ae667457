//! A project's first use: its path, its problems, and Longhaul's marks in it.

use std::path::Path;
use std::time::Duration;

use longhaul_activities::git::{Checkout, branch_of, check_git, exclude_own_files, project_id};
use longhaul_engine::RunId;

use crate::support::{World, run, status};

#[tokio::test]
async fn git_is_there() {
    assert!(check_git().await.unwrap().starts_with("2."));
}

#[tokio::test]
async fn the_top_is_found_from_anywhere_in_the_checkout() {
    let world = World::new();
    let found = Checkout::containing(&world.root.join("src")).await.unwrap();
    assert_eq!(found.settled().unwrap(), world.root.canonicalize().unwrap());
    assert_eq!(branch_of(&world.root).await.unwrap(), "main");
}

async fn check_refused(dir: &Path, expected: &str) {
    let failure = Checkout::containing(dir).await.unwrap_err();
    assert!(failure.message.ends_with(expected), "{failure}");
}

#[tokio::test]
async fn what_is_no_checkout_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    check_refused(
        dir.path(),
        "is not in a git repository; run `git init` there and make a first commit",
    )
    .await;
    run(dir.path(), &["init", "--quiet", "--bare", "bare"]);
    check_refused(&dir.path().join("bare"), "is in a bare repository; use a checkout of it").await;
    run(dir.path(), &["init", "--quiet", "empty"]);
    check_refused(&dir.path().join("empty"), "has no commit yet; make a first one").await;
    check_refused(
        &dir.path().join("empty/.git"),
        "is inside of a .git directory; use the checkout",
    )
    .await;
}

#[tokio::test]
async fn an_unfinished_merge_and_a_detached_head_are_reported() {
    let world = World::new();
    world.run(&["checkout", "--quiet", "--detach"]);
    let failure = branch_of(&world.root).await.unwrap_err();
    assert!(failure.message.contains("set `target` under [project] in longhaul.toml"), "{failure}");
    std::fs::write(world.root.join(".git/MERGE_HEAD"), format!("{}\n", world.at("main"))).unwrap();
    let failure = Checkout::containing(&world.root).await.unwrap().settled().unwrap_err();
    assert!(
        failure.message.ends_with("is in the middle of a merge; finish or abort it first"),
        "{failure}"
    );
}

#[tokio::test]
async fn the_id_is_made_once_and_fit_for_runs() {
    let world = World::named("My Shöp 2");
    let id = project_id(&world.root).await.unwrap();
    assert!(id.starts_with("my-sh-p-2-") && id.len() == "my-sh-p-2-".len() + 6, "{id}");
    assert_eq!(project_id(&world.root.join("src")).await.unwrap(), id);
    assert_eq!(world.run(&["config", "longhaul.id"]), id);
    RunId::new(id).unwrap();
}

#[tokio::test]
async fn longhauls_own_files_are_overlooked() {
    let world = World::new();
    for _ in 0..2 {
        exclude_own_files(&world.root).await.unwrap();
    }
    world.write(".longhaul/log", "");
    world.write("claude-progress.txt", "");
    world.write(".longhaul-EOOOw3", "half of a list");
    assert_eq!(status(&world.root), "");
    let old = std::time::SystemTime::now() - std::time::Duration::from_mins(2);
    std::fs::File::open(world.root.join(".longhaul-EOOOw3")).unwrap().set_modified(old).unwrap();
    exclude_own_files(&world.root).await.unwrap();
    assert!(!world.root.join(".longhaul-EOOOw3").exists(), "what a killed process left is removed");
    let text = world.read(".git/info/exclude");
    assert_eq!(text.matches("claude-progress.txt").count(), 1, "{text}");
}

#[tokio::test]
async fn a_progress_file_that_is_tracked_is_not_excluded() {
    let world = World::new();
    world.write("claude-progress.txt", "");
    world.commit("Progress");
    exclude_own_files(&world.root).await.unwrap();
    assert!(!world.read(".git/info/exclude").contains("claude-progress"));
}

#[tokio::test]
async fn several_who_name_a_project_at_once_come_to_one_id() {
    let world = World::new();
    let mut naming = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let root = world.root.clone();
        naming.spawn(async move { project_id(&root).await });
    }
    let ids = naming.join_all().await;
    let named = world.run(&["config", "--get-all", "longhaul.id"]);
    assert!(ids.iter().all(|id| id.as_ref().is_ok_and(|id| *id == named)), "{ids:?}, not {named}");
}

#[tokio::test]
async fn a_list_that_is_just_being_written_is_not_a_wrong_one() {
    let world = World::new();
    let list = world.root.join("feature_list.json");
    std::fs::write(world.root.join("longhaul.toml"), "[agent]\ncommand = [\"true\"]\n").unwrap();
    std::fs::write(&list, "").unwrap();
    let write = async {
        // Longer in total than a wrong list may stay unchanged, but each content is shorter.
        for part in 1..20 {
            tokio::time::sleep(Duration::from_millis(40)).await;
            std::fs::write(&list, "[".repeat(part)).unwrap();
        }
        std::fs::write(&list, r#"[{"id": "one", "description": "One"}]"#).unwrap();
    };
    let (loaded, ()) = tokio::join!(longhaul_activities::project::load(&world.root), write);
    assert_eq!(loaded.unwrap().features.len(), 1);
    std::fs::write(&list, "[[").unwrap();
    let failure = longhaul_activities::project::load(&world.root).await.unwrap_err();
    assert!(
        failure.message.contains("feature_list.json: the feature list is not JSON"),
        "{failure}"
    );
}

#[tokio::test]
async fn another_repository_at_a_path_is_another_project() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("shop");
    let mut ids = Vec::new();
    for _ in 0..2 {
        std::fs::create_dir(&root).unwrap();
        let made = std::process::Command::new("git").args(["init", "--quiet"]).arg(&root).status();
        assert!(made.unwrap().success());
        if std::fs::metadata(&root).unwrap().created().is_err() {
            eprintln!("not tried: this file system keeps no time of creation");
            return;
        }
        let id = longhaul_activities::git::project_id(&root).await.unwrap();
        std::fs::remove_file(root.join(".git/config")).unwrap();
        std::process::Command::new("git").args(["init", "--quiet"]).arg(&root).status().unwrap();
        let again = longhaul_activities::git::project_id(&root).await.unwrap();
        assert_eq!(id, again, "its configuration was lost");
        ids.push(id);
        std::fs::remove_dir_all(&root).unwrap();
    }
    assert_ne!(ids[0], ids[1]);
}
