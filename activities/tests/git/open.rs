//! A work tree comes out clean on its branch from any state, and its content is never lost.

use crate::support::{World, commit, read, rescue, run, run_failing, status, write};

#[tokio::test]
async fn a_new_work_tree_stands_on_the_tip() {
    let world = World::new();
    let opened = world.open("login").await;
    assert!(world.tree("login").is_dir());
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
    for (file, text) in [("new ö.txt", "new"), ("src/a file.txt", "two"), ("staged.txt", "staged")]
    {
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
    run_failing(&tree, &["merge", &world.at("main")]);

    let opened = world.open_in("login", 7).await;
    let kept = world.run(&["show", &format!("{}:src/a file.txt", rescue("login", 7))]);
    assert!(kept.contains("<<<<<<<"), "{kept}");
    assert_eq!(
        run(&tree, &["status"]).lines().last(),
        Some("nothing to commit, working tree clean")
    );
    assert_eq!(opened.head, run(&tree, &["rev-parse", "longhaul/login"]));
}

#[tokio::test]
async fn a_branch_without_work_of_its_own_follows_the_tip_and_keeps_file_times() {
    let world = World::new();
    world.open("login").await;
    let time = || {
        std::fs::metadata(world.tree("login").join("longhaul.toml")).unwrap().modified().unwrap()
    };
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
    let records = world.data().join("git/shop-1a2b3c/trees/login");

    for lock in
        [tree.join(".git/index.lock"), tree.join(".git/HEAD.lock"), records.join("index.lock")]
    {
        std::fs::write(lock, "").unwrap();
    }
    write(&world.root, ".git/refs/heads/longhaul/login.lock", "");
    assert_eq!(world.open("login").await, opened, "locks that were left");
    run(&tree, &["reset", "--quiet"]);

    std::fs::write(records.join("index"), "").unwrap();
    std::fs::write(tree.join(".git/index"), "").unwrap();
    assert_eq!(world.open("login").await, opened, "indexes that were lost");
    assert_eq!(status(&tree), "");

    std::fs::remove_file(records.join("index")).unwrap();
    std::fs::remove_dir_all(tree.join("src")).unwrap();
    assert_eq!(world.open("login").await, opened, "a checkout that was not finished");
    assert_eq!(status(&tree), "");

    std::fs::remove_dir_all(&tree).unwrap();
    assert_eq!(world.open("login").await, opened, "a directory that was removed");

    std::fs::remove_dir_all(&records).unwrap();
    write(&tree, "lost.txt", "found\n");
    let again = world.open_in("login", 7).await;
    assert_eq!(again.rescued, Some(rescue("login", 7)), "a work tree without records");
    assert_eq!(world.run(&["show", &format!("{}:lost.txt", rescue("login", 7))]), "found");
    assert_eq!(status(&tree), "");
}

#[tokio::test]
async fn a_tree_in_use_when_a_process_died_is_made_again() {
    let mut world = World::new();
    let opened = world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "build/tool", "of the set-up\n");
    write(&tree, "done.txt", "done\n");
    let done = commit(&tree, "Done");
    // Unsynced files are empty after a power cut.
    for file in ["src/a file.txt", "build/tool", "work.txt"] {
        write(&tree, file, "");
    }
    world.restart();
    let again = world.open_in("login", 7).await;
    assert_eq!((again.head.as_str(), again.rescued), (done.as_str(), Some(rescue("login", 7))));
    assert_eq!(
        (read(&tree, "src/a file.txt"), tree.join("build").exists()),
        ("one\n".into(), false)
    );
    assert_eq!(world.run(&["show", &format!("{}:src/a file.txt", rescue("login", 7))]), "");
    assert_eq!(status(&tree), "");
    assert_ne!(opened.head, done);
}

#[tokio::test]
async fn a_tree_that_came_to_rest_is_built_upon() {
    let mut world = World::new();
    let opened = world.open("login").await;
    write(&world.tree("login"), "build/tool", "of the set-up\n");
    world.git.release_work_trees().await.unwrap();
    world.restart();
    assert_eq!(world.open("login").await, opened);
    assert_eq!(read(&world.tree("login"), "build/tool"), "of the set-up\n");
}

#[tokio::test]
async fn a_private_repository_that_a_power_cut_damaged_is_made_again() {
    let files = [
        "HEAD",
        "config",
        "index",
        "refs/heads/longhaul/login",
        "objects/info/alternates",
        "packed-refs",
    ];
    for (damage, left) in files.into_iter().flat_map(|file| [(file, &[][..]), (file, &[0; 41][..])])
    {
        let mut world = World::new();
        world.open("login").await;
        let tree = world.tree("login");
        write(&tree, "mine.txt", "mine\n");
        commit(&tree, "Mine");
        std::fs::write(tree.join(".git").join(damage), left).unwrap();
        if !left.is_empty() {
            world.restart();
        }
        world.open_in("login", 7).await;
        assert_eq!(status(&tree), "", "{damage}");
        assert_eq!(run(&tree, &["rev-parse", "HEAD"]), world.at("longhaul/login"), "{damage}");
        let kept = [rescue("login", 7), "longhaul/login".to_owned()];
        assert!(
            kept.iter().any(|name| world.exists(&format!("{name}:mine.txt"))),
            "{damage}: the work is kept"
        );
    }
}

#[tokio::test]
async fn a_repository_that_an_agent_made_over_the_work_tree_is_set_aside() {
    let world = World::new();
    let opened = world.open("login").await;
    let tree = world.tree("login");
    std::fs::remove_dir_all(tree.join(".git")).unwrap();
    run(&tree, &["init", "--quiet"]);
    assert_eq!(world.open("login").await, opened);
    assert_eq!(run(&tree, &["branch", "--show-current"]), "longhaul/login");
    assert!(world.data().join("saved/shop-1a2b3c/repository-1/HEAD").exists());
}

#[tokio::test]
async fn an_agent_sees_tags_the_target_and_its_own_name() {
    let world = World::new();
    world.run(&["tag", "v1.2"]);
    world.run(&["remote", "add", "origin", "https://example.org/shop.git"]);
    world.open("login").await;
    let tree = world.tree("login");
    assert_eq!(run(&tree, &["describe", "--tags"]), "v1.2");
    assert_eq!(run(&tree, &["rev-parse", "main"]), world.at("main"));
    assert_eq!(run(&tree, &["config", "--local", "user.name"]), "Ada");
    assert_eq!(
        run(&tree, &["config", "--local", "remote.origin.url"]),
        "https://example.org/shop.git"
    );
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

/// The repository of a feature with sealed work loses it: an older copy came back, or unreferenced
/// objects were pruned. Then the user commits something.
async fn lost_work(world: &World) -> String {
    world.open("login").await;
    write(&world.tree("login"), "login.txt", "login\n");
    let sealed = world.seal("login").await.commit;
    world.run(&["branch", "--quiet", "-D", "longhaul/login"]);
    for reference in world.run(&["for-each-ref", "--format=%(refname)", "refs/longhaul"]).lines() {
        world.run(&["update-ref", "-d", reference]);
    }
    world.run(&["reflog", "expire", "--expire=now", "--all"]);
    world.run(&["gc", "--quiet", "--prune=now"]);
    assert!(!world.exists(&format!("{sealed}^{{commit}}")));
    world.write("user.txt", "mine\n");
    world.commit("Mine")
}

#[tokio::test]
async fn work_whose_commits_are_lost_does_not_take_back_what_the_target_has_since() {
    for called_done in [true, false] {
        let world = World::new();
        let mine = lost_work(&world).await;
        let opened = world.open_as("login", 7, called_done).await;
        assert_eq!(world.run(&["diff", "--name-only", "--diff-filter=D", &mine, &opened.head]), "");
        let kept = opened.rescued.unwrap();
        assert_eq!(world.run(&["show", &format!("{kept}:login.txt")]), "login");
        let added = world.run(&["diff", "--name-only", &mine, &opened.head]);
        assert_eq!(added, if called_done { "login.txt" } else { "" });
        assert_eq!(read(&world.tree("login"), "user.txt"), "mine\n");
    }
}

#[tokio::test]
async fn a_branch_that_is_deleted_during_a_session_takes_nothing_back() {
    let world = World::new();
    world.open("login").await;
    write(&world.tree("login"), "login.txt", "login\n");
    world.run(&["branch", "--quiet", "-D", "longhaul/login"]);
    world.write("user.txt", "mine\n");
    let mine = world.commit("Mine");
    let sealed = world.seal("login").await.commit;
    let base = world.run(&["merge-base", &mine, &sealed]);
    assert_eq!(world.run(&["diff", "--name-only", &base, &sealed]), "login.txt");
}

#[tokio::test]
async fn work_whose_base_is_lost_too_is_kept_and_not_committed() {
    for is_moved in [false, true] {
        let world = World::new();
        world.open("login").await;
        write(&world.tree("login"), "login.txt", "login\n");
        world.run(&["branch", "--quiet", "-D", "longhaul/login"]);
        world.write("user.txt", "mine\n");
        world.run(&["add", "--all"]);
        world.run(&["commit", "--quiet", "--amend", "--message", "Another beginning"]);
        world.run(&["reflog", "expire", "--expire=now", "--all"]);
        world.run(&["gc", "--quiet", "--prune=now"]);
        if is_moved {
            world.run(&["branch", "--quiet", "longhaul/login", "main"]);
        }
        let sealed = world.seal("login").await;
        assert_eq!(sealed.commit, world.at("main"));
        let kept = world.run(&["show", &format!("{}:login.txt", rescue("login", 2))]);
        assert_eq!(kept, "login");
        assert!(sealed.tampered[0].what.contains("has lost the commit"), "{:?}", sealed.tampered);
    }
}

/// A person commits to the target and moves the branch of the work there.
fn move_branch(world: &World) -> String {
    world.write("user.txt", "mine\n");
    world.write("src/a file.txt", "mine\n");
    let mine = world.commit("Mine");
    world.run(&["branch", "--quiet", "--force", "longhaul/login", "main"]);
    mine
}

#[tokio::test]
async fn a_branch_that_is_moved_during_a_session_takes_nothing_back() {
    for has_commit in [false, true] {
        let world = World::new();
        world.open("login").await;
        let tree = world.tree("login");
        write(&tree, "login.txt", "login\n");
        if has_commit {
            commit(&tree, "Log in");
        }
        let mine = move_branch(&world);
        let sealed = world.seal("login").await.commit;
        let base = world.run(&["merge-base", &mine, &sealed]);
        assert_eq!(world.run(&["diff", "--name-only", &base, &sealed]), "login.txt");
        write(&tree, "more.txt", "more\n");
        let sealed = world.seal_in("login", 4).await.commit;
        let base = world.run(&["merge-base", &mine, &sealed]);
        let changed = world.run(&["diff", "--name-only", &base, &sealed]);
        assert_eq!(changed, "login.txt\nmore.txt");
    }
}

#[tokio::test]
async fn a_branch_that_is_moved_between_sessions_takes_nothing_back() {
    for called_done in [false, true] {
        let world = World::new();
        world.open("login").await;
        write(&world.tree("login"), "login.txt", "login\n");
        let mine = move_branch(&world);
        let opened = world.open_as("login", 7, called_done).await;
        let changed = world.run(&["diff", "--name-only", &mine, &opened.head]);
        assert_eq!(changed, if called_done { "login.txt" } else { "" });
        let kept = opened.rescued.unwrap();
        assert_eq!(world.run(&["diff", "--name-only", &format!("{kept}^1"), &kept]), "login.txt");
    }
}
