//! No path leads out of the tree, and no file blocks.

use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::stat::Mode;
use serde_json::{Value, json};

use super::Tools;

/// Each tool with a path.
fn calls(path: &str) -> [(&'static str, Value); 5] {
    [
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": path, "old": "secret", "new": "x"})),
        ("search", json!({"pattern": "secret", "path": path})),
        ("list", json!({"path": path})),
    ]
}

/// Tools in a tree beside a directory `out` with a secret.
async fn tools() -> Tools {
    let tools = Tools::new().await;
    tools.world.write("out/file", "secret\n");
    tools
}

/// All tools refuse a path, and neither show nor change what is outside.
async fn check(tools: &Tools, path: &str, expected: &str) {
    for (tool, args) in calls(path) {
        let said = tools.refuses(tool, args).await;
        assert!(said.contains(expected), "{tool} {path}: {said}");
        assert!(!said.contains("secret"), "{tool} {path}: {said}");
    }
    let out = tools.world.path("out");
    assert_eq!(tools.world.read("out/file"), "secret\n");
    assert_eq!(std::fs::read_dir(out).unwrap().count(), 1, "{path}");
}

#[tokio::test]
async fn no_path_leads_out() {
    let tools = tools().await;
    let out = tools.world.text_path("out");
    check(&tools, "../../../../out/file", "has `..`").await;
    check(&tools, "a/../../login/code.txt", "has `..`").await;
    check(&tools, &format!("{out}/file"), "is outside the work tree").await;
    check(&tools, &format!("{}/../x", tools.world.text_path("work")), "has `..`").await;
    check(&tools, "/etc/passwd", "is outside the work tree").await;
    check(&tools, "a\0b", "has a NUL character").await;
    let work = tools.world.path("work");
    let leads_out = "is a link that leads out of the work tree";
    for (name, to) in [
        ("absolute", out.clone() + "/file"),
        ("relative", "../../../../out/file".into()),
        ("new", out.clone() + "/new"),
        ("hop", "absolute".into()),
        ("proc", "/proc/self/root/etc/passwd".into()),
        ("zero", "/dev/zero".into()),
    ] {
        symlink(to, work.join(name)).unwrap();
        check(&tools, name, leads_out).await;
    }
    for (name, to) in [("folder", out.clone()), ("above", "..".into())] {
        symlink(to, work.join(name)).unwrap();
        check(&tools, name, leads_out).await;
        check(&tools, &format!("{name}/file"), leads_out).await;
        check(&tools, &format!("{name}/new/file"), leads_out).await;
    }
    for (tool, args) in [
        ("search", json!({"pattern": "secret|root"})),
        ("list", json!({"glob": "**/*"})),
        ("list", json!({"glob": "../**"})),
    ] {
        let said = tools.says(tool, args).await;
        assert!(!said.contains("/file") && !said.contains(":1:"), "{said}");
    }
}

#[tokio::test]
async fn links_within_the_tree_are_followed() {
    let tools = tools().await;
    let work = tools.world.path("work");
    std::fs::create_dir(work.join("dir")).unwrap();
    symlink("dir", work.join("to-dir")).unwrap();
    symlink("to-dir/file", work.join("to-file")).unwrap();
    tools.world.write("work/dir/file", "secret\n");
    for (tool, args) in calls("to-file") {
        let outcome = tools.outcome(tool, args).await;
        assert_eq!(outcome.is_error, matches!(tool, "edit" | "list"), "{outcome:?}");
    }
    assert_eq!(tools.world.read("work/dir/file"), "x", "the file is replaced, and not the link");
    tools.says("write", json!({"path": "to-dir/new/y", "content": "y"})).await;
    assert_eq!(tools.world.read("work/dir/new/y"), "y");
    symlink("nothing", work.join("loose")).unwrap();
    let said = tools.refuses("write", json!({"path": "loose", "content": ""})).await;
    assert_eq!(said, "`loose` is a link to a missing file: write that file.");
}

#[tokio::test]
async fn a_link_that_is_swapped_in_does_not_lead_out() {
    let tools = tools().await;
    let work = tools.world.path("work");
    let out = tools.world.path("out");
    std::fs::create_dir_all(work.join("dir")).unwrap();
    symlink(&out, work.join("link")).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapper = {
        let stop = std::sync::Arc::clone(&stop);
        let work = work.clone();
        std::thread::spawn(move || swap(&work, &stop))
    };
    let mut reached = [0; 2];
    // Until both states were met often enough.
    while reached.iter().any(|count| *count < 100) {
        for (tool, args) in calls("dir/file") {
            let outcome = tools.outcome(tool, args).await;
            assert!(!outcome.text.contains("secret"), "{tool}: {}", outcome.text);
            reached[usize::from(outcome.is_error)] += 1;
        }
        let found = tools.says("search", json!({"pattern": "secret"})).await;
        assert!(!found.contains(":1:"), "{found}");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(tools.world.read("out/file"), "secret\n");
    assert_eq!(std::fs::read_dir(out).unwrap().count(), 1);
}

/// Exchanges a directory and a link that leads out, again and again.
fn swap(work: &Path, stop: &std::sync::atomic::AtomicBool) {
    let (dir, link, aside) = (work.join("dir"), work.join("link"), work.join("aside"));
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        for (from, to) in [(&dir, &aside), (&link, &dir), (&dir, &link), (&aside, &dir)] {
            std::fs::rename(from, to).unwrap_or_default();
        }
    }
}

#[tokio::test]
async fn the_repository_is_not_written() {
    let tools = tools().await;
    let work = tools.world.path("work");
    let before = tools.world.read("work/.git/config");
    symlink(".git", work.join("to-git")).unwrap();
    std::fs::create_dir_all(work.join("sub/.git/hooks")).unwrap();
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        "./.git/new/dir/x",
        "to-git/hooks/x",
        "to-git/new/x",
        "sub/.git/hooks/x",
        ".GIT/hooks/x",
    ] {
        let said = tools.refuses("write", json!({"path": path, "content": "x"})).await;
        assert!(said.contains("belongs to git"), "{path}: {said}");
    }
    let config = json!({"path": ".git/config", "old": "bare", "new": "x"});
    assert!(tools.refuses("edit", config).await.contains("belongs to git"));
    assert!(!work.join(".git/new").exists() && !work.join(".git/hooks/x").exists());
    assert_eq!(tools.world.read("work/.git/config"), before);
}

#[tokio::test]
async fn special_files_neither_block_nor_fill_memory() {
    let tools = tools().await;
    let work = tools.world.path("work");
    nix::unistd::mkfifo(&work.join("pipe"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
    std::fs::File::create(work.join("sparse")).unwrap().set_len(10 << 30).unwrap();
    std::fs::create_dir_all(work.join("sub/deeper")).unwrap();
    for name in ["pipe", "socket"] {
        for (tool, args) in calls(name) {
            let said = tools.refuses(tool, args).await;
            assert!(said.contains("not a file") || said.contains("not a directory"), "{said}");
        }
    }
    let said = tools.refuses("read", json!({"path": "sparse"})).await;
    assert!(said.contains("is 10737418240 bytes long; at most 16777216 are read"), "{said}");
    // Rules that cannot be read count for nothing.
    nix::unistd::mkfifo(&work.join("sub/.gitignore"), Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", work.join("sub/deeper/.gitignore")).unwrap();
    tools.world.write("work/sub/deeper/found", "secret");
    let said = tools.says("search", json!({"pattern": "secret"})).await;
    assert_eq!(said, "sub/deeper/found:1:secret\n[1 long files were skipped]\n");
}

#[tokio::test]
async fn names_cannot_forge_lines() {
    let tools = tools().await;
    tools.world.write("work/a\nb:1:x", "secret");
    let said = tools.says("search", json!({"pattern": "secret"})).await;
    assert_eq!(said, "a\\nb:1:x:1:secret\n");
    assert!(tools.says("list", json!({})).await.contains("a\\nb:1:x\n"));
    assert_eq!(tools.says("read", json!({"path": "a\nb:1:x"})).await, "1\tsecret\n");
    let said = tools.refuses("read", json!({"path": "gone\nfile"})).await;
    assert_eq!(said, "`gone\\nfile` does not exist.");
}
