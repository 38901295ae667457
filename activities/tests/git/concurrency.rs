//! Many features of one repository at the same time.

use crate::support::{World, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn features_open_seal_and_close_at_the_same_time() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|number| format!("feature-{number}")).collect();
    let world = std::sync::Arc::new(world);
    let tasks: Vec<_> = names
        .into_iter()
        .map(|name| {
            let world = std::sync::Arc::clone(&world);
            tokio::spawn(async move {
                world.open(&name).await;
                write(&world.tree(&name), &format!("{name}.txt"), "work\n");
                assert_eq!(world.seal(&name).await.files, [format!("{name}.txt")]);
                world.close(&name).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(world.run(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(world.run(&["for-each-ref", "refs/longhaul/features"]).lines().count(), 8);
}
