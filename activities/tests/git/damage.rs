//! What a power cut leaves of a repository is found, named, and put right where git holds enough.

use longhaul_activities::git::{Checkout, Damage, find_damage, repair};

use crate::support::{World, status, write};

async fn found(world: &World) -> Vec<Damage> {
    find_damage(&world.root).await.unwrap()
}

#[tokio::test]
async fn a_sound_repository_has_no_damage() {
    let world = World::new();
    world.open("login").await;
    assert_eq!(found(&world).await, []);
}

#[tokio::test]
async fn an_empty_branch_goes_to_the_last_commit_of_its_reflog() {
    let world = World::new();
    let commit = world.at("main");
    write(&world.root, ".git/refs/heads/main", "");
    let failure = Checkout::containing(&world.root).await.unwrap_err();
    assert!(failure.message.contains("is damaged") && failure.message.contains("refs/heads/main"), "{failure}");
    let damage = found(&world).await;
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
    let damage = found(&world).await;
    assert_eq!(damage[0], Damage::EmptyObject(object.canonicalize().unwrap()));
    for damage in &damage {
        repair(&world.root, damage).await.unwrap();
    }
    assert_eq!(world.at("main"), before);
    assert_eq!(found(&world).await, []);
    assert_eq!(world.read("more.txt"), "more\n", "files of the checkout stay");
}

#[tokio::test]
async fn an_empty_index_is_made_again() {
    let world = World::new();
    write(&world.root, ".git/index", "");
    world.write("src/a file.txt", "mine\n");
    let damage = found(&world).await;
    assert!(matches!(damage.as_slice(), [Damage::Index(_)]), "{damage:?}");
    repair(&world.root, &damage[0]).await.unwrap();
    assert_eq!(status(&world.root), "M \"src/a file.txt\"".replace("M ", " M "));
}

#[tokio::test]
async fn a_ref_that_nothing_is_known_of_is_named_and_left() {
    let world = World::new();
    write(&world.root, ".git/refs/heads/other", "");
    write(&world.root, ".git/refs/longhaul/fetched/login", "");
    let damage = found(&world).await;
    assert_eq!(damage.len(), 2);
    let failure = repair(&world.root, &damage[0]).await.unwrap_err();
    assert!(failure.message.contains("git update-ref refs/heads/other COMMIT"), "{failure}");
    repair(&world.root, &damage[1]).await.unwrap();
    assert_eq!(found(&world).await.len(), 1);
}
