//! A candidate is the tip merged with the work, with the feature marked; repeating the merge gives
//! the same commit.

use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{MergeStyle, Merged, PassMark};

use crate::support::{LIST, World, read, run, status, write};

async fn sealed(world: &World, feature: &str, file: &str, text: &str) -> String {
    world.open(feature).await;
    write(&world.tree(feature), file, text);
    world.seal(feature).await.commit
}

#[tokio::test]
async fn a_squashed_candidate_has_the_work_and_the_mark() {
    let world = World::new();
    let work = sealed(&world, "login", "src/é.txt", "login\n").await;
    world.write("other.txt", "other\n");
    let main = world.commit("Other");

    let merged = world.merge("login", &work, MergeStyle::Squash).await;
    let Merged::Candidate { commit, tip, files, .. } = merged.clone() else { panic!("{merged:?}") };
    assert_eq!(
        (tip.as_str(), files),
        (main.as_str(), vec!["feature_list.json".to_owned(), "src/é.txt".to_owned()])
    );
    assert_eq!(world.run(&["log", "-1", "--format=%P", &commit]), main);
    let message = world.run(&["log", "-1", "--format=%an %at%n%B", &commit]);
    let trailers = "Feature-Id: login\nRun-Id: shop-1a2b3c/login";
    assert_eq!(message.trim(), format!("Ada 1770091506\nAdd login\n\nIt works.\n\n{trailers}"));
    let worktree = &world.integrated(&merged).await;
    assert_eq!(run(worktree, &["rev-parse", "HEAD"]), commit);
    assert_eq!(status(worktree), "");
    let marked = LIST.replacen("\"pending\"", "\"completed\"", 1).replacen("false", "true", 1);
    let marked = marked.replacen(
        "true\n",
        "true,\n      \"last_tested\": \"2026-02-03T04:05:06.789Z\"\n",
        1,
    );
    assert_eq!(read(worktree, "feature_list.json"), marked);
    assert_eq!(read(worktree, "other.txt"), "other\n");
    assert_eq!(world.at("main"), main, "nothing refers to it");

    write(worktree, "left by a check.txt", "");
    write(worktree, "other.txt", "broken by a check");
    assert_eq!(world.merge("login", &work, MergeStyle::Squash).await, merged);
    world.integrated(&merged).await;
    assert_eq!(status(worktree), "");
}

#[tokio::test]
async fn a_merge_commit_has_the_agents_commits_as_second_parent() {
    let world = World::new();
    let work = sealed(&world, "login", "login.txt", "login\n").await;
    let Merged::Candidate { commit, tip, .. } =
        world.merge("login", &work, MergeStyle::Merge).await
    else {
        panic!()
    };
    assert_eq!(world.run(&["log", "-1", "--format=%P", &commit]), format!("{tip} {work}"));
}

#[tokio::test]
async fn work_that_changes_nothing_still_marks_the_feature() {
    let world = World::new();
    let work = world.open("cart").await.head;
    let Merged::Candidate { files, .. } = world.merge("cart", &work, MergeStyle::Squash).await
    else {
        panic!()
    };
    assert_eq!(files, ["feature_list.json"]);
}

#[tokio::test]
async fn the_mark_of_a_feature_can_land_with_a_later_one() {
    let world = World::new();
    let work = sealed(&world, "login", "login.txt", "login\n").await;
    let merged = world.merge_marking("login", &work, MergeStyle::Squash, PassMark::Later).await;
    let Merged::Candidate { files, .. } = &merged else { panic!("{merged:?}") };
    assert_eq!(*files, ["login.txt"]);
    assert_eq!(read(&world.integrated(&merged).await, "feature_list.json"), LIST);

    let work = sealed(&world, "cart", "cart.txt", "cart\n").await;
    let with = PassMark::With(vec![FeatureId::new("login").unwrap()]);
    let merged = world.merge_marking("cart", &work, MergeStyle::Squash, with).await;
    let Merged::Candidate { files, .. } = &merged else { panic!("{merged:?}") };
    assert_eq!(*files, ["cart.txt", "feature_list.json"]);
    let list = read(&world.integrated(&merged).await, "feature_list.json");
    assert_eq!(list.matches("\"passes\": true").count(), 2, "{list}");
}

#[tokio::test]
async fn a_list_that_is_not_tracked_is_left_out() {
    let world = World::new();
    world.run(&["rm", "--quiet", "--cached", "feature_list.json"]);
    world.run(&["commit", "--quiet", "-m", "No list"]);
    let work = sealed(&world, "login", "login.txt", "login\n").await;
    let Merged::Candidate { files, .. } = world.merge("login", &work, MergeStyle::Squash).await
    else {
        panic!()
    };
    assert_eq!(files, ["login.txt"]);
}

#[tokio::test]
async fn a_conflict_names_its_files() {
    let world = World::new();
    let work = sealed(&world, "login", "src/a file.txt", "login\n").await;
    world.write("src/a file.txt", "other\n");
    let main = world.commit("Other");
    let merged = world.merge("login", &work, MergeStyle::Squash).await;
    let Merged::Conflict { tip, files, output } = merged else { panic!("{merged:?}") };
    assert_eq!((tip, files), (main, vec!["src/a file.txt".to_owned()]));
    assert_eq!(output, "CONFLICT (content): Merge conflict in src/a file.txt");
}

#[tokio::test]
async fn a_broken_integration_tree_is_made_again() {
    let world = World::new();
    let work = sealed(&world, "login", "login.txt", "login\n").await;
    let merged = world.merge("login", &work, MergeStyle::Squash).await;
    let integration = world.integrated(&merged).await;
    let admin = run(&integration, &["rev-parse", "--absolute-git-dir"]);
    std::fs::write(format!("{admin}/index"), "broken").unwrap();
    std::fs::write(format!("{admin}/index.lock"), "").unwrap();
    world.integrated(&merged).await;
    assert_eq!(status(&integration), "");
    std::fs::remove_dir_all(admin).unwrap();
    world.integrated(&merged).await;
    assert_eq!(status(&integration), "");
}

#[tokio::test]
async fn longhauls_own_files_make_no_conflict_with_waiting_work() {
    let world = World::new();
    let own = ["claude-progress.txt", ".longhaul/status.md", "feature_list.json"];
    let commit = |text: &str, options: &[&str]| {
        own[..2].iter().for_each(|file| world.write(file, text));
        world.run(&["add", "--force", own[0], own[1]]);
        world.run(&[&["commit", "--quiet", "-m", text], options].concat());
    };
    commit("first\n", &[]);
    commit("second\n", &[]);
    world.write("src/a file.txt", "mine\n");
    let (tip, login) = world.candidate("login", "login.txt", "login\n").await;
    assert!(world.land((&tip, &login)).await.unwrap().waits_on_next.is_some());
    commit("third\n", &["--amend"]);
    let (tip, _) = world.candidate("cart", "cart.txt", "cart\n").await;
    for file in &own[..2] {
        assert_eq!(world.run(&["show", &format!("{tip}:{file}")]), "third", "{file}");
    }
}

#[tokio::test]
async fn work_merges_with_a_target_whose_first_commit_was_amended() {
    let world = World::new();
    world.run(&["checkout", "--quiet", "--orphan", "fresh"]);
    world.run(&["commit", "--quiet", "--message", "Begin"]);
    world.run(&["branch", "--force", "main", "fresh"]);
    world.run(&["checkout", "--quiet", "main"]);
    world.open("login").await;
    write(&world.tree("login"), "src/a file.txt", "by the agent\n");
    let sealed = world.seal("login").await;
    world.write("README.md", "amended\n");
    world.run(&["add", "--all"]);
    world.run(&["commit", "--quiet", "--amend", "--no-edit"]);
    let tip = world.at("main");
    let merged = world.merge("login", &sealed.commit, MergeStyle::Squash).await;
    let Merged::Candidate { commit, .. } = merged else { panic!("{merged:?}") };
    assert_eq!(
        world.run(&["diff", "--name-only", &tip, &commit]),
        "feature_list.json\nsrc/a file.txt"
    );
    world.land((&tip, &commit)).await.unwrap();
    assert_eq!(world.read("README.md"), "amended\n");
    assert_eq!(world.read("src/a file.txt"), "by the agent\n");
}
