//! Damage after a power cut is found, named, and repaired where git holds enough data.

use longhaul_activities::git::{
    Checkout, Damage, exclude_own_files, find_damage, lost_objects, repair,
};

use crate::support::{World, status, write};

async fn find(world: &World) -> Vec<Damage> {
    find_damage(&world.root).await.unwrap()
}

#[tokio::test]
async fn a_sound_repository_has_no_damage() {
    let world = World::new();
    world.open("login").await;
    assert_eq!(find(&world).await, []);
}

#[tokio::test]
async fn an_empty_branch_goes_to_the_last_commit_of_its_reflog() {
    let world = World::new();
    let commit = world.at("main");
    write(&world.root, ".git/refs/heads/main", "");
    let failure = Checkout::containing(&world.root).await.unwrap_err();
    assert!(
        failure.message.contains("is damaged") && failure.message.contains("refs/heads/main"),
        "{failure}"
    );
    let damage = find(&world).await;
    let [Damage::Ref { name, last, .. }] = damage.as_slice() else { panic!("{damage:?}") };
    assert_eq!((name.as_str(), last.as_deref()), ("refs/heads/main", Some(commit.as_str())));
    repair(&world.root, &damage[0]).await.unwrap();
    assert_eq!((world.at("main"), status(&world.root)), (commit, String::new()));
}

#[tokio::test]
async fn a_branch_whose_commit_is_empty_goes_to_the_one_before() {
    let world = World::new();
    let before = world.at("main");
    world.write("more.txt", "more\n");
    let lost = world.commit("Lost");
    let object = world.root.join(".git/objects").join(&lost[..2]).join(&lost[2..]);
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, "").unwrap();
    write(&world.root, ".git/refs/heads/main", "");
    let failure = Checkout::containing(&world.root).await.unwrap_err();
    assert!(failure.message.contains("is damaged"), "{failure}");
    let damage = find(&world).await;
    assert_eq!(damage[0], Damage::EmptyObject(object.canonicalize().unwrap()));
    for damage in &damage {
        repair(&world.root, damage).await.unwrap();
    }
    assert_eq!(world.at("main"), before);
    assert_eq!(find(&world).await, []);
    assert_eq!(world.read("more.txt"), "more\n", "files of the checkout stay");
}

#[tokio::test]
async fn an_empty_index_is_made_again() {
    let world = World::new();
    write(&world.root, ".git/index", "");
    let failure = exclude_own_files(&world.root).await.unwrap_err();
    assert!(
        failure.message.contains("is damaged") && failure.message.contains(".git/index"),
        "{failure}"
    );
    world.write("src/a file.txt", "mine\n");
    let damage = find(&world).await;
    assert!(matches!(damage.as_slice(), [Damage::Index(_)]), "{damage:?}");
    repair(&world.root, &damage[0]).await.unwrap();
    assert_eq!(status(&world.root), "M \"src/a file.txt\"".replace("M ", " M "));
}

#[tokio::test]
async fn a_ref_that_nothing_is_known_of_is_named_and_left() {
    let world = World::new();
    write(&world.root, ".git/refs/heads/other", "");
    write(&world.root, ".git/refs/longhaul/fetched/login", "");
    let damage = find(&world).await;
    assert_eq!(damage.len(), 2);
    let failure = repair(&world.root, &damage[0]).await.unwrap_err();
    assert!(failure.message.contains("git update-ref refs/heads/other COMMIT"), "{failure}");
    repair(&world.root, &damage[1]).await.unwrap();
    assert_eq!(find(&world).await.len(), 1);
}

/// The content of a file after a power cut.
const LEFT: [&[u8]; 2] = [b"", &[0; 21]];

fn leave(world: &World, file: &str, left: &[u8]) {
    std::fs::write(world.root.join(file), left).unwrap();
}

#[tokio::test]
async fn a_damaged_head_names_its_branch_again() {
    for left in LEFT {
        let world = World::new();
        world.run(&["branch", "other"]);
        world.run(&["checkout", "--quiet", "-b", "work/new"]);
        world.open("login").await;
        leave(&world, ".git/HEAD", left);
        let failure = Checkout::containing(&world.root).await.unwrap_err();
        assert!(
            failure.message.contains("is damaged") && failure.message.contains(".git/HEAD"),
            "{failure}"
        );
        let damage = find(&world).await;
        let [Damage::Head { content, .. }] = damage.as_slice() else { panic!("{damage:?}") };
        assert_eq!(content.as_deref(), Some("ref: refs/heads/work/new"));
        repair(&world.root, &damage[0]).await.unwrap();
        assert_eq!(
            (world.run(&["branch", "--show-current"]), status(&world.root)),
            ("work/new".into(), String::new())
        );
        assert_eq!(find(&world).await, []);
    }
}

#[tokio::test]
async fn a_damaged_head_without_a_checkout_in_its_reflog_is_the_branch_at_its_commit() {
    let world = World::new();
    let check = async |expected: Option<&str>| {
        let head = std::fs::read(world.root.join(".git/HEAD")).unwrap();
        leave(&world, ".git/HEAD", b"");
        let damage = find(&world).await;
        let [Damage::Head { content, .. }] = damage.as_slice() else { panic!("{damage:?}") };
        assert_eq!(content.as_deref(), expected);
        leave(&world, ".git/HEAD", &head);
    };
    check(Some("ref: refs/heads/main")).await;
    world.run(&["branch", "other"]);
    check(None).await;
    world.write("more.txt", "more\n");
    let commit = world.commit("More");
    check(Some("ref: refs/heads/main")).await;
    world.run(&["pack-refs", "--all"]);
    check(Some("ref: refs/heads/main")).await;
    world.run(&["checkout", "--quiet", "--detach"]);
    check(Some(&commit)).await;
}

#[tokio::test]
async fn packed_refs_that_are_lost_come_back_from_their_reflogs() {
    for left in LEFT {
        let world = World::new();
        world.run(&["branch", "other"]);
        let main = world.at("main");
        world.run(&["pack-refs", "--all"]);
        leave(&world, ".git/packed-refs", left);
        let failure = Checkout::containing(&world.root).await.unwrap_err();
        assert!(
            failure.message.contains("is damaged") && failure.message.contains("packed-refs"),
            "{failure}"
        );
        let damage = find(&world).await;
        let [Damage::PackedRefs { lost, .. }] = damage.as_slice() else { panic!("{damage:?}") };
        assert_eq!(lost.as_slice(), ["refs/heads/main", "refs/heads/other"]);
        repair(&world.root, &damage[0]).await.unwrap();
        assert_eq!(
            (world.at("main"), world.at("other"), status(&world.root)),
            (main.clone(), main, String::new())
        );
        assert_eq!(find(&world).await, []);
    }
    let world = World::new();
    leave(&world, ".git/packed-refs", b"");
    assert_eq!(find(&world).await, [], "nothing is lost");
}

#[tokio::test]
async fn lines_of_packed_refs_that_git_cannot_read_are_removed() {
    let world = World::new();
    world.run(&["tag", "--annotate", "v1", "--message", "One"]);
    world.run(&["pack-refs", "--all"]);
    let (tag, main) = (world.at("v1"), world.at("main"));
    let text = std::fs::read_to_string(world.root.join(".git/packed-refs")).unwrap();
    let stray = format!("^{main}\n");
    let damaged = [
        format!("{text}junk\n"),
        text.replacen('\n', "\njunk without sense\n", 1),
        text.replace('\n', "\r\n"),
        stray + &text,
        format!("{text}{main} refs/heads/../other\n"),
        text.trim_end().to_owned(),
    ];
    for text in damaged {
        leave(&world, ".git/packed-refs", text.as_bytes());
        let damage = find(&world).await;
        let [Damage::PackedRefs { lost, .. }] = damage.as_slice() else {
            panic!("{text}: {damage:?}")
        };
        assert_eq!(lost.as_slice(), [""; 0]);
        repair(&world.root, &damage[0]).await.unwrap();
        assert_eq!(
            (find(&world).await, world.at("v1"), world.at("main")),
            (Vec::new(), tag.clone(), main.clone())
        );
    }
}

#[tokio::test]
async fn refs_that_name_a_missing_object_are_set_from_their_reflogs() {
    let missing = "1".repeat(40);
    for packs in [true, false] {
        let world = World::new();
        world.run(&["branch", "other"]);
        let main = world.at("main");
        if packs {
            world.run(&["pack-refs", "--all"]);
            let file = world.root.join(".git/packed-refs");
            let text = std::fs::read_to_string(&file).unwrap();
            leave(&world, ".git/packed-refs", text.replace(&main, &missing).as_bytes());
        } else {
            leave(&world, ".git/refs/heads/other", missing.as_bytes());
        }
        let damage = find(&world).await;
        assert!(
            damage.iter().any(|damage| {
                matches!(damage, Damage::Ref { name, last: Some(last), .. }
                    if name == "refs/heads/other" && *last == main)
            }),
            "{damage:?}"
        );
        for damage in &damage {
            repair(&world.root, damage).await.unwrap();
        }
        assert_eq!((world.at("other"), find(&world).await), (main, Vec::new()));
    }
}

#[tokio::test]
async fn a_missing_directory_of_refs_is_created_and_filled_from_reflogs() {
    let world = World::new();
    let main = world.at("main");
    std::fs::remove_dir_all(world.root.join(".git/refs")).unwrap();
    for _ in 0..2 {
        for damage in find(&world).await {
            repair(&world.root, &damage).await.unwrap();
        }
    }
    assert_eq!((find(&world).await, world.at("main")), (Vec::new(), main));
}

#[tokio::test]
async fn a_damaged_tie_to_another_checkout_is_named() {
    for left in LEFT {
        for file in [
            ".git/worktrees/second/gitdir",
            ".git/worktrees/second/commondir",
            ".git/worktrees/second/HEAD",
        ] {
            let world = World::new();
            world.run(&["worktree", "add", "--quiet", "-b", "side", "../second"]);
            assert_eq!(find(&world).await, []);
            leave(&world, file, left);
            let damage = find(&world).await;
            assert!(matches!(damage.as_slice(), [Damage::Linked { .. }]), "{file}: {damage:?}");
            assert!(damage[0].file().ends_with(file), "{damage:?}");
            repair(&world.root, &damage[0]).await.unwrap_err();
        }
        let world = World::new();
        world.run(&["worktree", "add", "--quiet", "-b", "side", "../second"]);
        leave(&world, "../second/.git", left);
        let damage = find(&world).await;
        let second = world.root.parent().unwrap().canonicalize().unwrap().join("second");
        let expected = Damage::Linked { file: second.join(".git"), checkout: Some(second.clone()) };
        assert_eq!(damage, [expected]);
        world.run(&["worktree", "repair"]);
        assert_eq!(find(&world).await, []);
        std::fs::remove_dir_all(&second).unwrap();
        assert_eq!(find(&world).await, [], "a checkout that was removed is no damage");
    }
}

#[tokio::test]
async fn a_damaged_configuration_is_named_and_nothing_else_is_blamed() {
    for left in [&[0; 3][..], b"[core\n"] {
        let world = World::new();
        let index = std::fs::read(world.root.join(".git/index")).unwrap();
        leave(&world, ".git/config", left);
        let failure = Checkout::containing(&world.root).await.unwrap_err();
        assert!(
            failure.message.contains("is damaged") && failure.message.contains(".git/config"),
            "{failure}"
        );
        let damage = find(&world).await;
        assert!(
            matches!(damage.as_slice(), [Damage::Config(file)] if file.ends_with(".git/config")),
            "{damage:?}"
        );
        repair(&world.root, &damage[0]).await.unwrap_err();
        assert_eq!(std::fs::read(world.root.join(".git/index")).unwrap(), index);
        std::fs::remove_file(world.root.join(".git/config")).unwrap();
        world.run(&["init", "--quiet"]);
        assert_eq!((find(&world).await, status(&world.root)), (vec![], String::new()));
    }
}

#[tokio::test]
async fn an_index_that_is_not_what_git_wrote_is_moved_aside_and_made_again() {
    let shorten = |bytes: &mut Vec<u8>| bytes.truncate(50);
    let flip = |bytes: &mut Vec<u8>| bytes[90] ^= 1;
    for change in [shorten as fn(&mut Vec<u8>), flip] {
        let world = World::new();
        world.run(&["worktree", "add", "--quiet", "-b", "side", "../second"]);
        let mut index = std::fs::read(world.root.join(".git/index")).unwrap();
        change(&mut index);
        leave(&world, ".git/index", &index);
        let second = world.root.parent().unwrap().join("second");
        assert_eq!(
            find_damage(&second).await.unwrap(),
            [],
            "it is not the index of the other checkout"
        );
        let damage = find(&world).await;
        assert!(matches!(damage.as_slice(), [Damage::Index(_)]), "{damage:?}");
        repair(&world.root, &damage[0]).await.unwrap();
        assert_eq!((find(&world).await, status(&world.root)), (vec![], String::new()));
        assert_eq!(std::fs::read(world.root.join(".git/index.damaged-1")).unwrap(), index);
    }
}

#[tokio::test]
async fn an_index_without_a_checksum_is_sound() {
    let world = World::new();
    world.run(&["-c", "index.skipHash=true", "update-index", "--force-write-index"]);
    assert_eq!(find(&world).await, []);
    world.run(&["update-index", "--split-index"]);
    assert_eq!(find(&world).await, [], "and one in two parts");
}

#[tokio::test]
async fn work_waits_for_a_damaged_index_by_its_name() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    let mut index = std::fs::read(world.root.join(".git/index")).unwrap();
    index.truncate(50);
    leave(&world, ".git/index", &index);
    let reason = world.land((&tip, &commit)).await.unwrap().waits_on_next.unwrap();
    assert!(
        reason.contains("/.git/index is damaged; move it away and run `git reset` in "),
        "{reason}"
    );
}

#[tokio::test]
async fn a_branch_without_its_file_comes_back_from_its_reflog() {
    let world = World::new();
    let commit = world.at("main");
    std::fs::remove_file(world.root.join(".git/refs/heads/main")).unwrap();
    let failure = Checkout::containing(&world.root).await.unwrap_err();
    assert!(failure.message.contains("refs/heads/main is missing"), "{failure}");
    let damage = find(&world).await;
    let [Damage::Ref { name, last, .. }] = damage.as_slice() else { panic!("{damage:?}") };
    assert_eq!((name.as_str(), last.as_deref()), ("refs/heads/main", Some(commit.as_str())));
    repair(&world.root, &damage[0]).await.unwrap();
    assert_eq!(
        (find(&world).await, world.at("main"), status(&world.root)),
        (vec![], commit, String::new())
    );
}

#[tokio::test]
async fn a_branch_that_was_deleted_or_has_no_commit_yet_is_no_damage() {
    let world = World::new();
    world.run(&["branch", "other"]);
    world.run(&["branch", "gone"]);
    world.run(&["branch", "-D", "gone"]);
    world.run(&["branch", "-m", "other", "renamed"]);
    world.run(&["pack-refs", "--all"]);
    assert_eq!(find(&world).await, []);
    world.run(&["checkout", "--quiet", "--orphan", "new"]);
    assert_eq!(find(&world).await, []);
    let failure = Checkout::containing(&world.root).await.unwrap_err();
    assert!(failure.message.contains("the branch `new` of "), "{failure}");
}

#[tokio::test]
async fn a_pipe_in_the_place_of_an_object_is_found_without_git() {
    let world = World::new();
    let commit = world.at("main");
    let object = world.root.join(format!(".git/objects/{}/{}", &commit[..2], &commit[2..]));
    std::fs::remove_file(&object).unwrap();
    nix::unistd::mkfifo(&object, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let damage = find_damage(&world.root).await.unwrap();
    assert_eq!(damage, [Damage::EmptyObject(object.canonicalize().unwrap())]);
    repair(&world.root, &damage[0]).await.unwrap();
    assert!(!object.exists());
}

#[tokio::test]
async fn temporary_files_of_git_are_no_damage() {
    let world = World::new();
    let commit = world.at("main");
    world.write(&format!(".git/objects/{}/tmp_obj_Ysmaq1", &commit[..2]), "");
    assert_eq!(find(&world).await, []);
}

#[tokio::test]
async fn a_missing_index_is_made_again() {
    let world = World::new();
    let (tip, commit) = world.candidate("login", "login.txt", "login\n").await;
    std::fs::remove_file(world.root.join(".git/index")).unwrap();
    let reason = world.land((&tip, &commit)).await.unwrap().waits_on_next.unwrap();
    assert!(reason.contains("/.git/index is missing; run `git reset` in "), "{reason}");
    world.write("src/a file.txt", "mine\n");
    let damage = find(&world).await;
    assert!(matches!(damage.as_slice(), [Damage::Index(_)]), "{damage:?}");
    repair(&world.root, &damage[0]).await.unwrap();
    assert_eq!(status(&world.root), " M \"src/a file.txt\"");
    assert_eq!(find(&world).await, []);
}

#[tokio::test]
async fn an_own_branch_whose_commit_is_lost_is_removed() {
    for is_packed in [false, true] {
        let world = World::new();
        world.write("more.txt", "more\n");
        let lost = world.commit("Lost");
        world.run(&["update-ref", "refs/heads/longhaul/login", &lost]);
        world.run(&["update-ref", "-d", "refs/heads/main"]);
        world.run(&["reset", "--quiet", &format!("{lost}~1")]);
        if is_packed {
            world.run(&["pack-refs", "--all"]);
        }
        let logs = world.root.join(".git/logs/refs/heads/longhaul");
        std::fs::remove_dir_all(logs).unwrap();
        let object = world.root.join(".git/objects").join(&lost[..2]).join(&lost[2..]);
        std::fs::remove_file(&object).unwrap();
        let damage = find(&world).await;
        let [Damage::Ref { name, last: None, .. }] = damage.as_slice() else {
            panic!("{damage:?}")
        };
        assert_eq!(name, "refs/heads/longhaul/login");
        repair(&world.root, &damage[0]).await.unwrap();
        assert_eq!(find(&world).await, []);
        assert_eq!(world.run(&["branch", "--list", "longhaul/*"]), "");
    }
}

#[tokio::test]
async fn a_missing_commit_of_the_history_is_named() {
    let world = World::new();
    let first = world.at("main");
    world.write("more.txt", "more\n");
    world.commit("More");
    assert!(lost_objects(&world.root).await.unwrap().is_empty());
    let object = world.root.join(".git/objects").join(&first[..2]).join(&first[2..]);
    std::fs::remove_file(&object).unwrap();
    let failure = lost_objects(&world.root).await.unwrap_err();
    assert!(failure.message.contains(&first), "{failure}");
}

#[tokio::test]
async fn a_pack_without_a_sound_index_is_indexed_again_and_no_ref_is_touched() {
    for left in [None, Some("")] {
        let world = World::new();
        let commit = world.at("main");
        world.run(&["gc", "--quiet"]);
        let pack = pack_of(&world);
        let index = pack.with_extension("idx");
        std::fs::remove_file(&index).unwrap();
        if let Some(left) = left {
            std::fs::write(&index, left).unwrap();
        }
        let damage = find(&world).await;
        assert_eq!(damage, [Damage::PackIndex(pack.canonicalize().unwrap())]);
        repair(&world.root, &damage[0]).await.unwrap();
        assert_eq!((find(&world).await, world.at("main")), (vec![], commit));
    }
}

#[tokio::test]
async fn a_shortened_pack_and_a_missing_alternate_are_named_and_no_ref_is_touched() {
    let world = World::new();
    world.run(&["gc", "--quiet"]);
    let pack = pack_of(&world);
    let bytes = std::fs::read(&pack).unwrap();
    std::fs::remove_file(&pack).unwrap();
    std::fs::write(&pack, &bytes[..bytes.len() - 7]).unwrap();
    let damage = find(&world).await;
    assert_eq!(damage, [Damage::Pack(pack.canonicalize().unwrap())]);
    repair(&world.root, &damage[0]).await.unwrap_err();

    let world = World::new();
    write(&world.root, ".git/objects/info/alternates", "/no/such/objects\n");
    let damage = find(&world).await;
    let [Damage::Alternate { missing, .. }] = damage.as_slice() else { panic!("{damage:?}") };
    assert_eq!(missing, std::path::Path::new("/no/such/objects"));
}

#[tokio::test]
async fn missing_objects_and_a_damaged_shallow_file_are_named() {
    let world = World::new();
    let objects = world.root.join(".git/objects");
    std::fs::rename(&objects, world.root.join(".git/objects.away")).unwrap();
    let failure = Checkout::containing(&world.root).await.unwrap_err();
    assert!(failure.message.contains("git cannot read"), "{failure}");
    assert!(!failure.message.contains("git init"), "{failure}");
    let damage = find(&world).await;
    assert!(matches!(damage.as_slice(), [Damage::NoObjects(_)]), "{damage:?}");
    repair(&world.root, &damage[0]).await.unwrap_err();

    let world = World::new();
    write(&world.root, ".git/shallow", "garbage\n");
    let damage = find(&world).await;
    assert!(matches!(damage.as_slice(), [Damage::Shallow(_)]), "{damage:?}");
    repair(&world.root, &damage[0]).await.unwrap_err();
    write(&world.root, ".git/shallow", &format!("{}\n", world.at("main")));
    assert_eq!(find(&world).await, []);
}

#[tokio::test]
async fn a_repository_with_a_reftable_is_not_damaged() {
    let place = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let names = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
        git.arg("-C").arg(place.path()).args(names).args(args).status().unwrap().success()
    };
    if !git(&["init", "--quiet", "--ref-format=reftable", "."]) {
        eprintln!("not tried: this git has no reftable");
        return;
    }
    assert!(git(&["commit", "--quiet", "--allow-empty", "--message", "Begin"]));
    assert_eq!(longhaul_activities::git::find_damage(place.path()).await.unwrap(), []);
}

fn pack_of(world: &World) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(world.root.join(".git/objects/pack")).unwrap();
    let is_pack = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "pack");
    files.find_map(|file| Some(file.unwrap().path()).filter(is_pack)).unwrap()
}
