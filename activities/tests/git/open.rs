//! A work tree comes out clean on its branch, whatever was there, and nothing that was there is lost.

use crate::support::{World, commit, read, rescue, run, run_failing, status, write};

#[tokio::test]
async fn a_new_work_tree_stands_on_the_tip() {
    let world = World::new();
    let opened = world.open("login").await;
    assert_eq!(opened.path, world.tree("login").to_str().unwrap());
    assert_eq!((opened.branch.as_str(), opened.rescued.as_deref()), ("longhaul/login", None));
    assert_eq!(opened.head, world.at("main"));
    assert_eq!(read(&world.tree("login"), "src/a file.txt"), "one\n");
    assert_eq!(status(&world.tree("login")), "");
    assert_eq!(world.open("login").await, opened);
    assert_eq!(status(&world.root), "");
}

#[tokio::test]
async fn uncommitted_work_is_kept_under_a_ref_and_ignored_files_stay() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "new ö.txt", "new\n");
    write(&tree, "src/a file.txt", "two\n");
    write(&tree, "staged.txt", "staged\n");
    write(&tree, "build/output", "cache\n");
    run(&tree, &["add", "staged.txt"]);

    let opened = world.open_in("login", 7).await;
    let kept = rescue("login", 7);
    assert_eq!(opened.rescued.as_deref(), Some(kept.as_str()));
    for (file, text) in [("new ö.txt", "new"), ("src/a file.txt", "two"), ("staged.txt", "staged")] {
        assert_eq!(world.run(&["show", &format!("{kept}:{file}")]), text, "{file}");
    }
    assert_eq!(status(&tree), "");
    assert_eq!(read(&tree, "src/a file.txt"), "one\n");
    assert_eq!(read(&tree, "build/output"), "cache\n");
    assert_eq!(world.open_in("login", 7).await, opened, "a second attempt tells the same");
    assert_eq!(world.open_in("login", 8).await.rescued, None);
}

#[tokio::test]
async fn work_hidden_from_git_status_is_kept_too() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    run(&tree, &["update-index", "--skip-worktree", "src/a file.txt"]);
    write(&tree, "src/a file.txt", "hidden\n");
    assert_eq!(status(&tree), "");
    world.open_in("login", 7).await;
    assert_eq!(world.run(&["show", &format!("{}:src/a file.txt", rescue("login", 7))]), "hidden");
    assert_eq!(read(&tree, "src/a file.txt"), "one\n");
}

#[tokio::test]
async fn a_merge_in_progress_is_kept_and_ended() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "src/a file.txt", "theirs\n");
    commit(&tree, "Mine");
    world.write("src/a file.txt", "ours\n");
    world.commit("Other");
    run_failing(&tree, &["merge", "main"]);

    let opened = world.open_in("login", 7).await;
    let kept = world.run(&["show", &format!("{}:src/a file.txt", rescue("login", 7))]);
    assert!(kept.contains("<<<<<<<"), "{kept}");
    assert_eq!(run(&tree, &["status"]).lines().last(), Some("nothing to commit, working tree clean"));
    assert_eq!(opened.head, run(&tree, &["rev-parse", "longhaul/login"]));
}

#[tokio::test]
async fn a_branch_without_work_of_its_own_follows_the_tip_and_keeps_file_times() {
    let world = World::new();
    world.open("login").await;
    let time = || std::fs::metadata(world.tree("login").join("longhaul.toml")).unwrap().modified().unwrap();
    let before = time();
    world.write("src/b.txt", "b\n");
    let tip = world.commit("More");
    assert_eq!(world.open("login").await.head, tip);
    assert_eq!(read(&world.tree("login"), "src/b.txt"), "b\n");
    assert_eq!(time(), before, "build caches go by times");

    write(&world.tree("login"), "mine.txt", "mine\n");
    let mine = commit(&world.tree("login"), "Mine");
    world.write("src/b.txt", "c\n");
    world.commit("Even more");
    assert_eq!(world.open("login").await.head, mine, "its own work is not moved");
}

#[tokio::test]
async fn what_a_crash_leaves_is_mended() {
    let world = World::new();
    let opened = world.open("login").await;
    let tree = world.tree("login");
    let admin = run(&tree, &["rev-parse", "--absolute-git-dir"]);
    let admin = std::path::Path::new(&admin);

    std::fs::write(admin.join("index.lock"), "").unwrap();
    write(&world.root, ".git/refs/heads/longhaul/next.lock", "");
    assert_eq!(world.open("login").await, opened, "a lock that was left");

    std::fs::write(admin.join("index"), "").unwrap();
    assert_eq!(world.open("login").await.head, opened.head, "an index that was lost");
    assert_eq!(status(&tree), "");

    std::fs::remove_file(admin.join("index")).unwrap();
    std::fs::remove_dir_all(tree.join("src")).unwrap();
    assert_eq!(world.open("login").await, opened, "a checkout that was not finished");
    assert_eq!(status(&tree), "");

    std::fs::remove_dir_all(&tree).unwrap();
    assert_eq!(world.open("login").await, opened, "a directory that was removed");

    std::fs::remove_dir_all(admin).unwrap();
    write(&tree, "lost.txt", "found\n");
    let again = world.open_in("login", 7).await;
    assert_eq!(again.rescued, Some(rescue("login", 7)), "a work tree that git has forgotten");
    assert_eq!(world.run(&["show", &format!("{}:lost.txt", rescue("login", 7))]), "found");
    assert_eq!(status(&tree), "");

    world.run(&["worktree", "remove", tree.to_str().unwrap()]);
    assert_eq!(world.open("login").await.head, opened.head, "a branch that exists already");
}

#[tokio::test]
async fn a_repository_that_an_agent_made_over_the_work_tree_is_set_aside() {
    let world = World::new();
    let opened = world.open("login").await;
    let tree = world.tree("login");
    std::fs::remove_file(tree.join(".git")).unwrap();
    run(&tree, &["init", "--quiet"]);
    assert_eq!(world.open("login").await, opened);
    assert_eq!(run(&tree, &["branch", "--show-current"]), "longhaul/login");
    assert!(world.data().join("saved/shop-1a2b3c/repository-1/HEAD").exists());
}

#[tokio::test]
async fn a_feature_may_be_called_next() {
    let world = World::new();
    let opened = world.open("next").await;
    assert_eq!(opened.branch, "longhaul/%next");
    assert!(!world.exists("refs/heads/longhaul/next"));
}

#[tokio::test]
async fn a_branch_that_the_user_looks_at_is_left_alone() {
    let world = World::new();
    world.run(&["checkout", "--quiet", "-b", "longhaul/login"]);
    let failure = world.try_open("login", 1).await.unwrap_err();
    assert!(failure.message.contains("longhaul/login"), "{failure}");
    assert!(failure.message.contains("already"), "{failure}");
    assert_eq!(status(&world.root), "");
}
