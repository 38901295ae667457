//! Forbidden changes of an agent are found, kept, reverted and reported, by any method.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use longhaul_workflows::contracts::Sealed;

use crate::support::{LIST, World, commit, read, rescue, run, status, write};

/// Runs `act` in a work tree and checks the report; protected files must be unchanged.
async fn check(act: impl Fn(&Path), expected: &str) -> (World, Sealed) {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    act(&tree);
    let sealed = world.seal("login").await;
    assert_eq!(report(&sealed), expected);
    assert_eq!(sealed.rescued, Some(rescue("login", 2)));
    assert_eq!(read(&tree, "feature_list.json"), LIST);
    assert_eq!(read(&tree, "acceptance/login.sh"), "exit 0\n");
    assert!(std::fs::symlink_metadata(tree.join("acceptance")).unwrap().is_dir());
    assert_eq!(
        run(&tree, &["diff", "main", "--", "acceptance", "feature_list.json", "longhaul.toml"]),
        ""
    );
    assert_eq!(status(&tree), "");
    assert_eq!(
        world.seal("login").await,
        sealed,
        "a second attempt of the same call tells the same"
    );
    let later = world.seal_in("login", 9).await;
    assert_eq!((report(&later).as_str(), later.rescued), ("", None));
    (world, sealed)
}

fn report(sealed: &Sealed) -> String {
    let lines: Vec<String> = sealed
        .tampered
        .iter()
        .map(|tampering| format!("{}: {}", tampering.file, tampering.what))
        .collect();
    lines.join("\n")
}

#[tokio::test]
async fn changed() {
    let (world, _) = check(
        |tree| write(tree, "acceptance/login.sh", "exit 1\n"),
        "acceptance/login.sh: changed",
    )
    .await;
    assert_eq!(
        world.run(&["show", &format!("{}:acceptance/login.sh", rescue("login", 2))]),
        "exit 1"
    );
}

#[tokio::test]
async fn changed_and_committed() {
    let act = |tree: &Path| {
        write(tree, "acceptance/login.sh", "exit 1\n");
        write(tree, "work.txt", "work\n");
        commit(tree, "Nothing to see");
    };
    let (_, sealed) = check(act, "acceptance/login.sh: changed").await;
    assert_eq!(sealed.files, ["work.txt"]);
}

#[tokio::test]
async fn deleted() {
    let act = |tree: &Path| std::fs::remove_dir_all(tree.join("acceptance")).unwrap();
    check(act, "acceptance/login.sh: deleted").await;
}

#[tokio::test]
async fn added() {
    let (world, _) =
        check(|tree| write(tree, "acceptance/x/ü.sh", ""), "acceptance/x/ü.sh: added").await;
    assert!(!world.tree("login").join("acceptance/x").exists());
}

#[tokio::test]
async fn added_and_ignored() {
    let act = |tree: &Path| {
        write(tree, ".gitignore", "build/\n*.cache\nacceptance/evil.sh\n");
        write(tree, "acceptance/evil.sh", "");
        write(tree, "acceptance/run.cache", "");
    };
    let (world, _) = check(act, "acceptance/evil.sh: added, and hidden by ignore rules").await;
    assert!(!world.tree("login").join("acceptance/evil.sh").exists());
    assert!(
        world.tree("login").join("acceptance/run.cache").exists(),
        "the project ignores this itself"
    );
    assert_eq!(
        world.run(&["cat-file", "-t", &format!("{}:acceptance/evil.sh", rescue("login", 2))]),
        "blob"
    );
}

#[tokio::test]
async fn renamed() {
    let act = |tree: &Path| {
        run(tree, &["mv", "acceptance/login.sh", "old.sh"]);
    };
    check(act, "acceptance/login.sh: deleted").await;
}

#[tokio::test]
async fn mode_changed() {
    let act = |tree: &Path| {
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(tree.join("acceptance/login.sh"), permissions).unwrap();
    };
    check(act, "acceptance/login.sh: its mode was changed").await;
}

#[tokio::test]
async fn replaced_by_a_link() {
    let act = |tree: &Path| {
        std::fs::remove_file(tree.join("acceptance/login.sh")).unwrap();
        symlink("/bin/true", tree.join("acceptance/login.sh")).unwrap();
    };
    check(act, "acceptance/login.sh: replaced by a symbolic link").await;
}

#[tokio::test]
async fn directory_replaced_by_a_link() {
    let act = |tree: &Path| {
        std::fs::rename(tree.join("acceptance"), tree.join("build")).unwrap();
        symlink("build", tree.join("acceptance")).unwrap();
    };
    let (world, _) = check(act, "acceptance: added\nacceptance/login.sh: deleted").await;
    assert_eq!(
        read(&world.tree("login"), "build/login.sh"),
        "exit 0\n",
        "the link was not followed"
    );
}

#[tokio::test]
async fn file_replaced_by_a_directory() {
    let act = |tree: &Path| {
        std::fs::remove_file(tree.join("longhaul.toml")).unwrap();
        write(tree, "longhaul.toml/x", "");
    };
    check(act, "longhaul.toml: deleted\nlonghaul.toml/x: added").await;
}

#[tokio::test]
async fn hidden_by_flags() {
    let act = |tree: &Path| {
        run(tree, &["update-index", "--skip-worktree", "acceptance/login.sh"]);
        write(tree, "acceptance/login.sh", "exit 1\n");
    };
    check(act, "acceptance/login.sh: changed").await;
}

#[tokio::test]
async fn list_flipped() {
    let act = |tree: &Path| write(tree, "feature_list.json", &LIST.replacen("false", "true", 1));
    check(act, "feature_list.json: `login`: `passes` false -> true").await;
}

#[tokio::test]
async fn list_entry_removed_and_committed() {
    let act = |tree: &Path| {
        let (start, end) =
            (LIST.find(",\n    {\n      \"id\": \"cart\"").unwrap(), LIST.rfind("\n  ]").unwrap());
        write(tree, "feature_list.json", &format!("{}{}", &LIST[..start], &LIST[end..]));
        commit(tree, "Less work");
    };
    check(act, "feature_list.json: `cart`: removed").await;
}

#[tokio::test]
async fn list_unreadable() {
    let world = World::new();
    world.open("login").await;
    write(&world.tree("login"), "feature_list.json", "{");
    let sealed = world.seal("login").await;
    assert!(
        report(&sealed).starts_with("feature_list.json: cannot be read any more: "),
        "{}",
        report(&sealed)
    );
    assert_eq!(read(&world.tree("login"), "feature_list.json"), LIST);
}

#[tokio::test]
async fn what_landed_since_is_no_tampering_of_the_agent() {
    let world = World::new();
    world.open("login").await;
    world.write("acceptance/login.sh", "exit 0 # better\n");
    world.commit("Better");
    let sealed = world.seal("login").await;
    assert_eq!((report(&sealed).as_str(), sealed.files), ("", vec![]));

    run(&world.tree("login"), &["merge", "--quiet", "main"]);
    let sealed = world.seal("login").await;
    assert_eq!((report(&sealed).as_str(), sealed.files), ("", vec![]));
    assert_eq!(read(&world.tree("login"), "acceptance/login.sh"), "exit 0 # better\n");
}
