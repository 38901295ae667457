//! The target only fast-forwards, and never overwrites the user's changes.

use longhaul_engine::{FailureKind, Probe};
use longhaul_workflows::contracts::{Land, MergeStyle, Merged};

use crate::support::{LIST, World, read, run, status, write};

#[tokio::test]
async fn a_clean_checkout_follows() {
    let world = World::new();
    world.write("untracked.txt", "mine\n");
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    let landed = world.land((&tip, &commit)).await.unwrap();
    assert_eq!(
        (landed.target_commit.as_str(), landed.waits_on_next.as_deref()),
        (commit.as_str(), None)
    );
    assert_eq!(world.at("main"), commit);
    assert_eq!(world.read("login.txt"), "login\n");
    assert_eq!(status(&world.root), "?? untracked.txt");
    assert_eq!(world.land((&tip, &commit)).await.unwrap(), landed, "again");
    assert!(!world.exists("longhaul/next"));
}

#[tokio::test]
async fn a_target_that_is_not_checked_out_moves_alone() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.run(&["checkout", "--quiet", "-b", "elsewhere"]);
    world.write("src/a file.txt", "in the middle of something\n");
    assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None);
    assert_eq!(world.at("main"), commit);
    assert_eq!(status(&world.root), " M \"src/a file.txt\"");
}

#[tokio::test]
async fn a_second_checkout_of_the_user_follows_too() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.run(&["checkout", "--quiet", "-b", "elsewhere"]);
    world.run(&["worktree", "add", "--quiet", "../second one", "main"]);
    assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None);
    let second = world.root.parent().unwrap().join("second one");
    assert_eq!(status(&second), "");
    assert!(second.join("login.txt").exists());
}

async fn check_waits(change: impl Fn(&World), reason: &str) -> World {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "src/b.txt", "login\n").await;
    change(&world);
    let (before, main) = (status(&world.root), world.at("main"));
    let landed = world.land((&tip, &commit)).await.unwrap();
    let expected = format!("{reason}, then run again, or `git merge longhaul/next`");
    assert_eq!(
        landed.waits_on_next.unwrap(),
        expected.replace("ROOT", world.root.canonicalize().unwrap().to_str().unwrap())
    );
    assert_eq!(
        (landed.target_commit.as_str(), world.at("main").as_str()),
        (main.as_str(), main.as_str())
    );
    assert_eq!(world.at("longhaul/next"), commit);
    assert_eq!(status(&world.root), before, "the checkout was not touched");
    assert!(matches!(world.probe((&tip, &commit)).await, Probe::Happened(_)));
    world
}

#[tokio::test]
async fn changes_of_the_user_make_the_work_wait() {
    let change = |world: &World| world.write("src/a file.txt", "mine\n");
    check_waits(change, "ROOT has uncommitted changes in src/a file.txt; commit them, or set them aside with `git stash push -u -- FILE`")
        .await;
}

#[tokio::test]
async fn many_changes_are_counted() {
    let change = |world: &World| {
        for name in ["1", "2", "3", "4", "5"] {
            world.write(name, "");
        }
        world.run(&["add", "."]);
    };
    check_waits(change, "ROOT has uncommitted changes in 1, 2, 3 (+2 more); commit them, or set them aside with `git stash push -u -- FILE`")
        .await;
}

#[tokio::test]
async fn a_merge_of_the_users_makes_the_work_wait() {
    let change = |world: &World| {
        world.run(&["branch", "side", "main"]);
        std::fs::write(world.root.join(".git/MERGE_HEAD"), format!("{}\n", world.at("side")))
            .unwrap();
    };
    check_waits(change, "ROOT is in the middle of a merge; finish or abort it").await;
}

#[tokio::test]
async fn an_untracked_file_in_the_way_makes_the_work_wait() {
    let change = |world: &World| world.write("src/b.txt", "mine\n");
    let reason = "ROOT has untracked files that block it: src/b.txt; move or remove them";
    check_waits(change, reason).await;
}

#[tokio::test]
async fn an_ignored_file_in_the_way_makes_the_work_wait() {
    let change = |world: &World| {
        std::fs::write(world.root.join(".git/info/exclude"), "src/b.txt\n").unwrap();
        world.write("src/b.txt", "mine\n");
    };
    let reason = "ROOT has untracked files that block it: src/b.txt; move or remove them";
    let world = check_waits(change, reason).await;
    assert_eq!(read(&world.root, "src/b.txt"), "mine\n");
}

#[tokio::test]
async fn a_changed_list_does_not_block_a_landing() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    let edited = LIST.replace("\"Cart\"", "\"A cart, rather\"");
    world.write("feature_list.json", &edited);
    let landed = world.land((&tip, &commit)).await.unwrap();
    assert_eq!(landed.waits_on_next, None);
    assert_eq!(world.at("main"), commit);
    assert_eq!(world.read("feature_list.json"), edited);
    assert_eq!(status(&world.root), " M feature_list.json");
    assert_eq!(std::fs::read_dir(world.data().join("saved/shop-1a2b3c")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_staged_list_is_in_the_way_only_if_it_says_something_of_its_own() {
    let edited = LIST.replace("\"Cart\"", "\"A cart, rather\"");
    let change = |world: &World| {
        world.write("feature_list.json", &edited);
        world.run(&["add", "feature_list.json"]);
        world.write("feature_list.json", LIST);
    };
    check_waits(change, "ROOT has uncommitted changes in feature_list.json; commit them, or set them aside with `git stash push -u -- FILE`")
        .await;

    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.write("feature_list.json", &edited);
    world.run(&["add", "feature_list.json"]);
    assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None);
    assert_eq!(world.read("feature_list.json"), edited);
}

#[tokio::test]
async fn a_git_process_at_work_makes_the_work_wait() {
    let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_hours(24);
    let change = |world: &World| {
        std::fs::File::create(world.root.join(".git/index.lock"))
            .unwrap()
            .set_modified(at)
            .unwrap();
    };
    let reason = "ROOT/.git/index.lock has existed since 1970-01-02 00:00:00 UTC, and no running \
        git holds it; remove it: rm 'ROOT/.git/index.lock'";
    let world = check_waits(change, reason).await;
    assert!(world.root.join(".git/index.lock").exists(), "it is the user's");
}

/// Lands a feature while the user's editor renames a new list into place, in the middle of git's
/// move of the checkout, or writes it in place.
async fn check_edited_while_git_moves(first: Option<&str>, put: &str) {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    let edited = LIST.replace("\"Cart\"", "\"A cart, rather\"");
    if let Some(first) = first {
        world.write("feature_list.json", first);
    }
    let beside = world.root.parent().unwrap().join("edit.json");
    std::fs::write(&beside, &edited).unwrap();
    // Git runs the user's filter when it writes the file of the feature.
    let edit = format!("{put} '{}' feature_list.json; cat", beside.display());
    world.run(&["config", "filter.edit.smudge", &edit]);
    std::fs::write(world.root.join(".git/info/attributes"), "login.txt filter=edit\n").unwrap();
    assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None);
    assert_eq!(world.read("feature_list.json"), edited);
    assert_eq!(world.at("main"), commit);
    assert_eq!(status(&world.root), " M feature_list.json");
}

#[tokio::test]
async fn a_list_that_is_edited_while_git_moves_the_checkout_stays() {
    let earlier = LIST.replace("\"Cart\"", "\"Basket\"");
    for put in ["mv", "cp"] {
        check_edited_while_git_moves(None, put).await;
        check_edited_while_git_moves(Some(&earlier), put).await;
    }
}

/// Writes the marker that is on disk while git moves the user's checkout.
fn mark_move(world: &World, from: &str, to: &str) -> std::path::PathBuf {
    let checkout = world.root.canonicalize().unwrap();
    let name = blake3::hash(checkout.as_os_str().as_encoded_bytes()).to_hex();
    let mark = world.data().join("saved/shop-1a2b3c").join(format!("at-work-{}", &name[..16]));
    std::fs::create_dir_all(mark.parent().unwrap()).unwrap();
    let content = serde_json::json!({ "checkout": checkout, "branch": "main", "from": from, "to": to,
            "own_files": ["feature_list.json"] });
    std::fs::write(&mark, content.to_string()).unwrap();
    mark
}

/// Completes a move of the user's checkout that was interrupted in the state of `leave`, by a kill
/// or a power cut.
async fn check_interrupted(what: &str, leave: impl Fn(&World, &str)) {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "src/a file.txt", "login\n");
    write(&tree, "login.txt", "login page\n");
    run(&tree, &["rm", "--quiet", ".gitignore"]);
    let sealed = world.seal("login").await;
    let merged = world.merge("login", &sealed.commit, MergeStyle::Squash).await;
    let Merged::Candidate { commit, tip, .. } = merged else { panic!("{merged:?}") };
    let mark = mark_move(&world, &tip, &commit);
    leave(&world, &commit);
    assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None, "{what}");
    assert_eq!((world.at("main"), status(&world.root)), (commit, String::new()), "{what}");
    assert_eq!(world.read("src/a file.txt"), "login\n", "{what}");
    assert_eq!(world.read("login.txt"), "login page\n", "{what}");
    assert!(!world.root.join(".gitignore").exists() && !mark.exists(), "{what}");
}

#[tokio::test]
async fn a_move_that_was_interrupted_is_finished() {
    // Git writes the files first, then the index, then the ref.
    check_interrupted("before anything", |_, _| ()).await;
    check_interrupted("a file written", |world, _| world.write("src/a file.txt", "login\n")).await;
    check_interrupted("a file removed to be written", |world, _| {
        std::fs::remove_file(world.root.join("src/a file.txt")).unwrap();
    })
    .await;
    check_interrupted("a new file written in part, under a lock", |world, _| {
        world.write("login.txt", "login p");
        world.write(".git/index.lock", "");
    })
    .await;
    check_interrupted("all but the ref", |world, to| {
        drop(world.run(&["read-tree", "-m", "-u", "HEAD", to]));
    })
    .await;
    check_interrupted("all, and emptied by a power cut", |world, to| {
        world.run(&["merge", "--ff-only", "--quiet", to]);
        world.write("src/a file.txt", "");
        world.write("login.txt", "");
        world.write(".git/index", "");
    })
    .await;
    check_interrupted("all, but the ref was lost", |world, to| {
        world.run(&["merge", "--ff-only", "--quiet", to]);
        let from = world.at("HEAD^");
        world.run(&["update-ref", "refs/heads/main", &from]);
    })
    .await;
}

#[tokio::test]
async fn what_the_user_did_after_an_interrupted_move_stays() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "src/a file.txt", "login\n").await;
    mark_move(&world, &tip, &commit);
    world.write("src/a file.txt", "the user's\n");
    let landed = world.land((&tip, &commit)).await.unwrap();
    assert!(
        landed
            .waits_on_next
            .is_some_and(|reason| reason.contains("uncommitted changes in src/a file.txt"))
    );
    assert_eq!(world.read("src/a file.txt"), "the user's\n");
}

#[tokio::test]
async fn a_move_to_a_commit_that_the_repository_has_lost_stops_nothing() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    let mark = mark_move(&world, &tip, &"1".repeat(40));
    let landed = world.land((&tip, &commit)).await.unwrap();
    assert_eq!((landed.waits_on_next, world.at("main")), (None, commit));
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_tip_that_has_moved_is_stale() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    world.write("other.txt", "other\n");
    let main = world.commit("Meanwhile");
    let failure = world.land((&tip, &commit)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Terminal);
    assert_eq!(failure.code.as_deref(), Some(Land::STALE), "{failure}");
    assert_eq!(world.at("main"), main);
    assert_eq!(world.probe((&tip, &commit)).await, Probe::NotHappened);
    let landed = world.land((&main, &commit)).await.unwrap_err();
    assert_eq!(landed.code.as_deref(), Some(Land::STALE), "{landed}");
}

#[tokio::test]
async fn the_probe_knows_both_ways() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    assert_eq!(world.probe((&tip, &commit)).await, Probe::NotHappened);
    let landed = world.land((&tip, &commit)).await.unwrap();
    assert_eq!(world.probe((&tip, &commit)).await, Probe::Happened(landed));
}

#[tokio::test]
async fn features_land_one_after_the_other_on_next() {
    let world = World::new();
    world.write("src/a file.txt", "mine\n");
    let (tip, login) = world.candidate("login", "login.txt", "login\n").await;
    world.land((&tip, &login)).await.unwrap();
    let (tip, cart) = world.candidate("cart", "cart.txt", "cart\n").await;
    assert_eq!(tip, login, "the next feature lands on top of the waiting work");
    assert!(world.land((&tip, &cart)).await.unwrap().waits_on_next.is_some());
    assert_eq!(world.at("longhaul/next"), cart);
    run(&world.root, &["checkout", "--", "."]);
    assert_eq!(world.follow().await.target_commit, cart);
}

#[tokio::test]
async fn a_broken_record_of_the_last_move_does_not_keep_work_from_landing() {
    for text in ["", "garbage\n"] {
        let world = World::new();
        let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
        std::fs::write(world.root.join(".git/ORIG_HEAD"), text).unwrap();
        assert_eq!(world.land((&tip, &commit)).await.unwrap().waits_on_next, None);
        assert_eq!(world.at("main"), commit);
    }
}
