//! The repository shows which run landed, whatever the log holds.

use longhaul_activities::git::Landings;
use longhaul_engine::RunId;
use longhaul_workflows::contracts::LandedWork;
use longhaul_workflows::contracts::{MergeStyle, Merged};

use crate::support::{World, commit, id, run, write};

async fn landed(world: &World, feature: &str, counted: Landings) -> Option<LandedWork> {
    let run = RunId::new(format!("shop-1a2b3c/{feature}")).unwrap();
    world.git.landed_work(&world.project(), "main", &id(feature), &run, counted).await.unwrap()
}

#[tokio::test]
async fn a_run_that_landed_is_known_by_its_commit() {
    let world = World::new();
    let (tip, candidate) = world.candidate("login", "login.txt", "login\n").await;
    assert_eq!(
        landed(&world, "login", Landings::All).await,
        None,
        "nothing leads to the candidate yet"
    );
    world.land((&tip, &candidate)).await.unwrap();
    world.write("other.txt", "other\n");
    world.commit("Other");
    let work = LandedWork {
        commit: candidate,
        files: vec!["feature_list.json".into(), "login.txt".into()],
    };
    assert_eq!(landed(&world, "login", Landings::All).await, Some(work.clone()));
    assert_eq!(landed(&world, "login", Landings::OfClosedRun).await, None);
    world.close("login").await;
    assert_eq!(landed(&world, "login", Landings::OfClosedRun).await, Some(work));
    assert_eq!(landed(&world, "cart", Landings::All).await, None);
    world.run(&["reset", "--quiet", "--hard", &tip]);
    assert_eq!(landed(&world, "login", Landings::All).await, None, "the target went back");
}

#[tokio::test]
async fn work_that_waits_for_the_checkout_has_landed() {
    let world = World::new();
    let (tip, candidate) = world.candidate("login", "src/b.txt", "login\n").await;
    world.write("src/a file.txt", "in the middle of something\n");
    assert!(world.land((&tip, &candidate)).await.unwrap().waits_on_next.is_some());
    assert_eq!(
        landed(&world, "login", Landings::All).await.map(|work| work.commit),
        Some(candidate)
    );
}

#[tokio::test]
async fn trailers_that_an_agent_wrote_are_no_landing() {
    let world = World::new();
    world.open("login").await;
    let tree = world.tree("login");
    write(&tree, "login.txt", "login\n");
    commit(&tree, "Claim another\n\nFeature-Id: cart\nRun-Id: shop-1a2b3c/cart");
    let sealed = world.seal("login").await.commit;
    let merged = world.merge("login", &sealed, MergeStyle::Merge).await;
    let Merged::Candidate { commit: candidate, tip, .. } = merged else { panic!("{merged:?}") };
    world.land((&tip, &candidate)).await.unwrap();
    assert!(world.run(&["log", "--format=%B", "main"]).contains("Run-Id: shop-1a2b3c/cart"));
    assert_eq!(landed(&world, "cart", Landings::All).await, None);
    assert_eq!(
        landed(&world, "login", Landings::All).await.map(|work| work.commit),
        Some(candidate)
    );
}

#[tokio::test]
async fn work_that_landed_does_not_land_again_over_what_came_after() {
    let world = World::new();
    world.open("login").await;
    write(&world.tree("login"), "login.txt", "login\n");
    let sealed = world.seal("login").await.commit;
    let merged = world.merge("login", &sealed, MergeStyle::Squash).await;
    let Merged::Candidate { commit: candidate, tip, .. } = merged else { panic!("{merged:?}") };
    world.land((&tip, &candidate)).await.unwrap();
    world.run(&["rm", "--quiet", "login.txt"]);
    let after = world.commit("Move login elsewhere");

    let merged = world.merge("login", &sealed, MergeStyle::Squash).await;
    let Merged::Candidate { commit: again, tip, files, .. } = merged else { panic!("{merged:?}") };
    assert_eq!((again.as_str(), tip.as_str(), files), (after.as_str(), after.as_str(), Vec::new()));

    // Work continued on the target lands again.
    let tree = world.tree("login");
    run(
        &tree,
        &[
            "-c",
            "protocol.file.allow=always",
            "fetch",
            "--quiet",
            world.root.to_str().unwrap(),
            "main",
        ],
    );
    run(&tree, &["merge", "--quiet", "-m", "Bring the target in", "FETCH_HEAD"]);
    write(&tree, "login.txt", "login once more\n");
    let sealed = world.seal_in("login", 7).await.commit;
    let merged = world.merge("login", &sealed, MergeStyle::Squash).await;
    let Merged::Candidate { commit: again, files, .. } = merged else { panic!("{merged:?}") };
    assert_ne!(again, after);
    assert_eq!(files, ["login.txt"]);
}
