//! A seal commits the content of the tree, without the files that never belong in a commit.

use crate::support::{World, commit, read, run, run_failing, status, write};

#[tokio::test]
async fn work_is_committed_with_its_trailers() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    assert_eq!(world.seal("login").await.files, [""; 0], "no work yet");
    write(&tree, "src/näw file.txt", "new\n");
    std::fs::remove_file(tree.join("src/a file.txt")).unwrap();

    let sealed = world.seal("login").await;
    assert_eq!(sealed.commit, world.at("longhaul/login"));
    assert_eq!(sealed.files, ["src/a file.txt", "src/näw file.txt"]);
    assert_eq!((sealed.tampered.as_slice(), sealed.rescued.as_deref()), ([].as_slice(), None));
    let message = world.run(&["log", "-1", "--format=%an: %B", "longhaul/login"]);
    assert_eq!(message.trim(), "Ada: login: found\n\nFeature-Id: login\nRun-Id: shop-1a2b3c/login");
    assert_eq!(status(&tree), "");
    assert_eq!(world.seal("login").await, sealed, "again");
}

#[tokio::test]
async fn files_that_are_too_large_are_left_out() {
    let world = World::new();
    world.write("docs/.gitignore", "*.log\n");
    world.commit("Rules");
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "new.txt", "new\n");
    write(&tree, "scratch/.gitignore", "*.bin\n");
    run(&tree, &["init", "--quiet", "nested"]);
    write(&tree, "nested/file.txt", "nested\n");
    let huge = [
        "disk [1].img",
        "src/a file.txt",
        "src/.gitattributes",
        "docs/.gitignore",
        "scratch/ignored.bin",
        "nested/disk.img",
        "nested/.gitignore",
    ];
    for file in huge {
        let file = std::fs::File::create(tree.join(file)).unwrap();
        file.set_len(200_000_000_000).unwrap();
    }
    let sealed = world.seal("login").await;
    let mut left: Vec<_> = sealed.left_out.iter().map(ToString::to_string).collect();
    left.sort();
    let expected = [
        "disk [1].img",
        "docs/.gitignore",
        "nested/.gitignore",
        "nested/disk.img",
        "src/.gitattributes",
        "src/a file.txt",
    ];
    assert_eq!(left, expected.map(|file| format!("{file} (200 GB)")));
    assert_eq!(sealed.files, ["nested/file.txt", "new.txt", "scratch/.gitignore"]);
    assert_eq!(read(&tree, "docs/.gitignore"), "*.log\n");
    assert!(tree.join("disk [1].img").exists());
    assert_eq!(world.seal("login").await.commit, sealed.commit);
    world.open_in("login", 3).await;
}

#[tokio::test]
async fn a_merge_in_progress_is_concluded_even_with_conflicts() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "src/a file.txt", "theirs\n");
    commit(&tree, "Mine");
    world.write("src/a file.txt", "ours\n");
    let main = world.commit("Other");
    run_failing(&tree, &["merge", &world.at("main")]);

    let sealed = world.seal("login").await;
    assert_eq!(world.at("longhaul/login^2"), main);
    assert!(read(&tree, "src/a file.txt").contains("<<<<<<<"));
    assert_eq!(status(&tree), "");
    assert!(!run(&tree, &["status"]).contains("merging"), "the merge is over");
    assert_eq!(world.seal("login").await, sealed);
}

#[tokio::test]
async fn the_progress_file_is_read_and_never_committed() {
    let world = World::new();
    world.write("claude-progress.txt", "Earlier.\n");
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "claude-progress.txt", "Earlier.\nLogin is half done.\n");
    write(&tree, ".longhaul/session.log", "log\n");
    let sealed = world.seal("login").await;
    assert_eq!(sealed.notes, "Login is half done.");
    assert_eq!(sealed.files, [""; 0]);

    run(&tree, &["add", "--force", "claude-progress.txt", ".longhaul"]);
    run(&tree, &["commit", "--quiet", "-m", "All of it"]);
    let sealed = world.seal("login").await;
    assert_eq!(
        (sealed.notes.as_str(), sealed.files),
        ("Login is half done.", vec![]),
        "not even by the agent"
    );
    assert_eq!(read(&tree, "claude-progress.txt"), "Earlier.\nLogin is half done.\n");
}

#[tokio::test]
async fn a_progress_file_that_is_none_is_named() {
    let world = World::new();
    world.open("login").await;
    std::os::unix::fs::symlink("/etc/passwd", world.tree("login").join("claude-progress.txt"))
        .unwrap();
    let sealed = world.seal("login").await;
    assert_eq!(sealed.notes, "");
    assert!(
        sealed.unread_notes.as_ref().is_some_and(|reason| reason.contains("leads out of")),
        "{sealed:?}"
    );
}

#[tokio::test]
async fn a_tracked_progress_file_stays_as_it_was() {
    let world = World::new();
    world.write("claude-progress.txt", "Earlier.\n");
    world.commit("Progress");
    world.open("login").await;
    write(&world.tree("login"), "claude-progress.txt", "Earlier.\nMore.\n");
    let sealed = world.seal("login").await;
    assert_eq!((sealed.notes.as_str(), sealed.files, sealed.tampered), ("More.", vec![], vec![]));
}

#[tokio::test]
async fn repositories_inside_of_the_work_tree_are_taken_as_files() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    for (dir, committed) in [("empty repo", false), ("full repo", true)] {
        let dir = tree.join(dir);
        write(&dir, "deep/file.txt", "text\n");
        run(&dir, &["init", "--quiet"]);
        if committed {
            commit(&dir, "Inner");
        }
    }
    let sealed = world.seal("login").await;
    assert_eq!(sealed.files, ["empty repo/deep/file.txt", "full repo/deep/file.txt"]);
    assert_eq!(world.seal("login").await, sealed);
}

#[tokio::test]
async fn flags_in_the_index_hide_nothing() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    run(&tree, &["update-index", "--assume-unchanged", "src/a file.txt"]);
    write(&tree, "src/a file.txt", "hidden\n");
    assert_eq!(world.seal("login").await.files, ["src/a file.txt"]);
}

#[tokio::test]
async fn a_work_tree_that_was_destroyed_is_made_again() {
    let world = World::new();
    world.open("login").await;
    write(&world.tree("login"), "work.txt", "work\n");
    let sealed = world.seal("login").await;
    std::fs::remove_dir_all(world.tree("login")).unwrap();
    assert_eq!(world.seal("login").await, sealed);
    assert_eq!(read(&world.tree("login"), "work.txt"), "work\n");
}

#[tokio::test]
async fn a_file_that_the_repository_does_not_take_is_not_left_out() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "taken.txt", "taken\n");
    write(&tree, "refused.txt", "refused\n");
    let object = run(&tree, &["hash-object", "refused.txt"]);
    let fan_out = world.root.join(".git/objects").join(&object[..2]);
    // A file in the place of the directory of the object, so that only this one cannot be written.
    std::fs::write(&fan_out, "").unwrap();
    let failure = world.try_seal("login", 2).await.unwrap_err();
    assert!(failure.message.contains("refused.txt"), "{failure}");
    assert_eq!(read(&tree, "refused.txt"), "refused\n");
    std::fs::remove_file(&fan_out).unwrap();
    assert_eq!(world.seal("login").await.files, ["refused.txt", "taken.txt"]);
}
