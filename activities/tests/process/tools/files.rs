//! `read`, `write`, `edit`, `search` and `list` on ordinary files.

use serde_json::json;

use super::Tools;

#[tokio::test]
async fn a_file_is_read_with_numbers() {
    let tools = Tools::new().await;
    let world = &tools.world;
    world.write("work/three", "one\ntwo\n\tthree");
    assert_eq!(tools.says("read", json!({"path": "three"})).await, "1\tone\n2\ttwo\n3\t\tthree\n");
    let absolute = world.text_path("work/three");
    let part = tools.says("read", json!({"path": absolute, "start": 2, "end": 2})).await;
    assert_eq!(part, "2\ttwo\n[lines 2 to 2 of 3]\n");
    let beyond = tools.refuses("read", json!({"path": "three", "start": 4, "end": 9})).await;
    assert_eq!(beyond, "`three` has 3 lines: there are no lines 4 to 9.");
    world.write("work/empty", "");
    assert_eq!(tools.says("read", json!({"path": "empty"})).await, "`empty` is empty.");
    assert_eq!(
        tools.refuses("read", json!({"path": "gone/file"})).await,
        "`gone/file` does not exist."
    );
    world.write("work/binary", "a\0b");
    assert_eq!(
        tools.refuses("read", json!({"path": "binary"})).await,
        "`binary` is a binary file."
    );
    assert_eq!(
        tools.refuses("read", json!({"path": "."})).await,
        "`.` is a directory and not a file."
    );
}

#[tokio::test]
async fn long_files_are_read_in_parts() {
    let tools = Tools::new().await;
    tools.world.write("work/long", &"é\n".repeat(2500));
    let first = tools.says("read", json!({"path": "long"})).await;
    assert!(first.ends_with("2000\té\n[lines 1 to 2000 of 2500; go on with start = 2001]\n"));
    let rest = tools.says("read", json!({"path": "long", "start": 2001})).await;
    assert!(rest.ends_with("2500\té\n[lines 2001 to 2500 of 2500]\n"), "{rest}");
    tools.world.write("work/wide", &"é".repeat(5000));
    let wide = tools.says("read", json!({"path": "wide"})).await;
    assert_eq!(wide, format!("1\t{} […]\n", "é".repeat(1000)));
}

#[tokio::test]
async fn files_are_written_with_their_directories() {
    let tools = Tools::new().await;
    let world = &tools.world;
    let said = tools.says("write", json!({"path": "a/b/c", "content": "x\ny\n"})).await;
    assert_eq!(
        (said.as_str(), world.read("work/a/b/c").as_str()),
        ("Wrote 2 lines to `a/b/c`.", "x\ny\n")
    );
    world.script("work/run.sh", "old");
    tools.says("write", json!({"path": "run.sh", "content": "new"})).await;
    let mode = std::fs::metadata(world.path("work/run.sh")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o755);
    let below = tools.refuses("write", json!({"path": "run.sh/x", "content": ""})).await;
    assert_eq!(below, "`run.sh` is a file and not a directory.");
    let folder = tools.refuses("write", json!({"path": "a/b", "content": ""})).await;
    assert_eq!(folder, "`a/b` is a directory and not a file.");
    let status = world.git(&["status", "--porcelain", "--untracked-files=all"]);
    assert_eq!(status, "?? a/b/c\n?? run.sh", "no other file is left");
}

#[tokio::test]
async fn text_is_replaced() {
    let tools = Tools::new().await;
    let world = &tools.world;
    let edit = |args: serde_json::Value| {
        let mut all = json!({"path": "f"});
        all.as_object_mut().unwrap().extend(args.as_object().unwrap().clone());
        all
    };
    world.write("work/f", "a\nb = 1\na\n");
    let said = tools.says("edit", edit(json!({"old": "b = 1", "new": "b = 2\nc = 3"}))).await;
    assert_eq!(said, "Replaced once in `f`, at line 2.");
    assert_eq!(world.read("work/f"), "a\nb = 2\nc = 3\na\n");
    let said = tools.refuses("edit", edit(json!({"old": "a\n", "new": "x\n"}))).await;
    let expected = "`old` occurs 2 times in `f`, not once: at line 1, 4. Include more of the text \
                    around it, or set `count` or `all`.";
    assert_eq!(said, expected);
    let said = tools.says("edit", edit(json!({"old": "a\n", "new": "x\n", "count": 2}))).await;
    assert_eq!(said, "Replaced 2 times in `f`, at line 1.");
    tools.says("edit", edit(json!({"old": "x", "new": "", "all": true}))).await;
    assert_eq!(world.read("work/f"), "\nb = 2\nc = 3\n\n");

    world.write("work/f", "if a {\r\n    b;\r\n}\r\n");
    for (old, hint) in [
        ("gone", "Read the file again, and copy the text exactly, without line numbers."),
        ("if a {\n    b;", "The lines of the file end with CR LF"),
        ("if  a {", "It does with other white space"),
        ("", "`old` is empty"),
    ] {
        let said = tools.refuses("edit", edit(json!({"old": old, "new": "x"}))).await;
        assert!(said.contains(hint), "{said}");
    }
    let said = tools.refuses("edit", edit(json!({"old": "b", "new": "b"}))).await;
    assert_eq!(said, "`old` and `new` are equal.");
    assert_eq!(world.read("work/f"), "if a {\r\n    b;\r\n}\r\n");
    let said = tools.refuses("edit", json!({"path": "gone", "old": "a", "new": "b"})).await;
    assert_eq!(said, "`gone` does not exist.");
}

#[tokio::test]
async fn a_search_finds_lines_and_respects_gitignore() {
    let tools = Tools::new().await;
    let world = &tools.world;
    for folder in ["work/build", "work/src/gen", "work/.hidden"] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    world.write("work/build/out.txt", "good\n");
    world.write("work/src/.gitignore", "/gen/*\n!gen/kept.rs\n*.tmp\n");
    world.write("work/src/gen/made.rs", "good\n");
    world.write("work/src/gen/kept.rs", "good\n");
    world.write("work/src/x.tmp", "good\n");
    world.write("work/src/main.rs", "bad\r\nGood one\r\n");
    world.write("work/.hidden/note", "good\n");
    world.write("work/binary", "good\0\n");
    let all = tools.says("search", json!({"pattern": "(?i)^good"})).await;
    let expected = ".hidden/note:1:good\ncode.txt:1:good\nsrc/gen/kept.rs:1:good\n\
                    src/main.rs:2:Good one\n";
    assert_eq!(all, expected);
    let rust = tools.says("search", json!({"pattern": "ood", "glob": "*.rs"})).await;
    assert_eq!(rust, "src/gen/kept.rs:1:good\nsrc/main.rs:2:Good one\n");
    let below =
        tools.says("search", json!({"pattern": "ood", "path": "src", "glob": "gen/**"})).await;
    assert_eq!(below, "src/gen/kept.rs:1:good\n");
    let named = tools.says("search", json!({"pattern": "good", "path": "src/x.tmp"})).await;
    assert_eq!(named, "src/x.tmp:1:good\n", "a named file is searched although it is ignored");
    assert_eq!(tools.says("search", json!({"pattern": "^$"})).await, "No line matches.\n");
    let wrong = tools.refuses("search", json!({"pattern": "("})).await;
    assert!(wrong.starts_with("`pattern` is not a regular expression:"), "{wrong}");
}

#[tokio::test]
async fn answers_are_bounded() {
    let tools = Tools::new().await;
    tools.world.write("work/many", &"match\n".repeat(1000));
    let found = tools.says("search", json!({"pattern": "match"})).await;
    assert!(found.ends_with(
        "many:200:match\n[only the first 200 lines: narrow the pattern, `path` or `glob`]\n"
    ));
    tools.world.write("work/many", &format!("{}\n", "é".repeat(300)).repeat(1000));
    let found = tools.says("search", json!({"pattern": "é"})).await;
    assert!(found.len() < 26 * 1024 && found.contains(&format!("{} […]\n", "é".repeat(150))));
    std::fs::create_dir(tools.world.path("work/dir")).unwrap();
    for n in 0..600 {
        tools.world.write(&format!("work/dir/{n}"), "");
    }
    for args in [json!({"path": "dir"}), json!({"path": "dir", "glob": "*"})] {
        let list = tools.says("list", args).await;
        assert_eq!(list.lines().count(), 501);
        assert!(list.ends_with("[there are more: narrow `path` or `glob`]\n"));
    }
}

#[tokio::test]
async fn directories_are_listed() {
    let tools = Tools::new().await;
    let world = &tools.world;
    std::fs::create_dir_all(world.path("work/a/b")).unwrap();
    world.write("work/a/b/x.rs", "");
    world.write("work/a/y.rs", "");
    std::os::unix::fs::symlink("y.rs", world.path("work/a/link")).unwrap();
    assert_eq!(tools.says("list", json!({"path": "a/"})).await, "b/\nlink (link)\ny.rs\n");
    assert_eq!(tools.says("list", json!({"glob": "*.rs"})).await, "a/b/x.rs\na/y.rs\n");
    assert_eq!(tools.says("list", json!({"glob": "a/*.rs"})).await, "a/y.rs\n");
    assert_eq!(tools.says("list", json!({"path": "a", "glob": "b/*"})).await, "a/b/x.rs\n");
    assert_eq!(tools.says("list", json!({"glob": "*.c"})).await, "No file matches.\n");
    assert_eq!(
        tools.refuses("list", json!({"path": "a/y.rs"})).await,
        "`a/y.rs` is not a directory: use `read`."
    );
}

#[tokio::test]
async fn a_call_on_files_needs_no_git() {
    let tools = Tools::new().await;
    let world = &tools.world;
    for file in ["root/.git/HEAD", "root/.git/objects", "data/git/shop/plumbing"] {
        std::fs::rename(world.path(file), world.path("out").join(file.replace('/', "-"))).unwrap();
    }
    tools.says("write", json!({"path": "a", "content": "b"})).await;
    tools.says("edit", json!({"path": "a", "old": "b", "new": "c"})).await;
    assert_eq!(tools.says("read", json!({"path": "a"})).await, "1\tc\n");
    assert_eq!(tools.says("search", json!({"pattern": "^c$"})).await, "a:1:c\n");
    assert_eq!(tools.says("list", json!({"glob": "a"})).await, "a\n");
}
