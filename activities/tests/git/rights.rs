//! Files without rights for their owner, as for a user who is not the superuser.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use longhaul_engine::FailureKind;
use longhaul_workflows::contracts::MergeStyle;
use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
};

use crate::support::{World, commit, run, write};

/// Runs a test in a thread that has no rights beyond those of the files, even for the superuser.
fn as_ordinary_user<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let mut sets = capabilities(None).unwrap();
        let beyond = [CapabilitySet::DAC_OVERRIDE, CapabilitySet::DAC_READ_SEARCH];
        for right in beyond.into_iter().filter(|right| sets.permitted.contains(*right)) {
            remove_capability_from_bounding_set(right).unwrap();
            sets.effective -= right;
        }
        set_capabilities(None, sets).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
    thread.join().unwrap();
}

/// Leaves a read-only directory with a file, as Go's module cache does.
fn leave_read_only(tree: &Path) {
    write(tree, "cache/module/code", "code\n");
    set_permissions(tree.join("cache/module"), Permissions::from_mode(0o555)).unwrap();
    std::fs::remove_file(tree.join("cache/module/code")).expect_err("it is read-only");
}

#[test]
fn a_tree_with_read_only_directories_is_closed() {
    as_ordinary_user(|| async {
        let world = World::new();
        world.open("login").await;
        let tree = world.tree("login");
        leave_read_only(&tree);
        world.seal("login").await;
        world.close("login").await;
        assert!(!tree.exists());
    });
}

#[test]
fn a_tree_with_read_only_directories_is_used_again() {
    as_ordinary_user(|| async {
        let world = World::new();
        for feature in ["login", "logout"] {
            world.open(feature).await;
            write(&world.tree(feature), feature, "work\n");
        }
        let sealed = world.seal("login").await;
        let merged = world.merge("login", &sealed.commit, MergeStyle::Squash).await;
        leave_read_only(&world.integrated(&merged).await);
        let sealed = world.seal("logout").await;
        let merged = world.merge("logout", &sealed.commit, MergeStyle::Squash).await;
        let failure = world.try_integrated(&merged).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Retryable, "{failure}");
        let tree = world.integrated(&merged).await;
        assert!(tree.join("logout").exists() && !tree.join("cache").exists());
    });
}

/// Takes all rights from a file or a directory.
fn close_off(tree: &Path, place: &str) {
    set_permissions(tree.join(place), Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn unreadable_files_of_an_agent_are_sealed() {
    as_ordinary_user(|| async {
        let world = World::new();
        world.open("login").await;
        let tree = world.tree("login");
        write(&tree, "secret/code", "code\n");
        write(&tree, "alone", "work\n");
        write(&tree, "nested/deep/code", "code\n");
        run(&tree.join("nested"), &["init", "--quiet"]);
        for place in ["secret/code", "secret", "alone", "nested/deep"] {
            close_off(&tree, place);
        }
        let sealed = world.seal("login").await;
        assert_eq!(sealed.files, ["alone", "nested/deep/code", "secret/code"]);
    });
}

#[test]
fn unreadable_files_of_an_earlier_process_are_kept() {
    as_ordinary_user(|| async {
        let mut world = World::new();
        world.open("login").await;
        write(&world.tree("login"), "secret/code", "code\n");
        close_off(&world.tree("login"), "secret");
        world.restart();
        let opened = world.open_in("login", 3).await;
        let kept = opened.rescued.expect("the file is kept");
        assert_eq!(world.run(&["show", &format!("{kept}:secret/code")]), "code");
    });
}

#[test]
fn unreadable_directories_are_kept_when_the_tree_is_opened_again() {
    as_ordinary_user(|| async {
        let world = World::new();
        world.open("login").await;
        write(&world.tree("login"), "secret/code", "code\n");
        close_off(&world.tree("login"), "secret");
        let kept = world.open_in("login", 3).await.rescued.expect("the file is kept");
        assert_eq!(world.run(&["show", &format!("{kept}:secret/code")]), "code");
    });
}

#[test]
fn an_unreadable_repository_of_an_agent_is_read() {
    as_ordinary_user(|| async {
        for place in [".git", ".git/HEAD", ".git/refs", "."] {
            let world = World::new();
            world.open("login").await;
            let tree = world.tree("login");
            write(&tree, "code", "code\n");
            let own = commit(&tree, "Write code");
            close_off(&tree, place);
            let sealed = world.seal("login").await;
            assert_eq!(sealed.commit, own, "{place}");
            close_off(&tree, place);
            assert_eq!(world.open_in("login", 3).await.head, own, "{place}");
        }
    });
}
