//! Set-up scripts: located inside the work tree, run, and reported.

use longhaul_activities::checks::ChecksHandler;
use longhaul_engine::{Failure, FailureKind, Handler};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::contracts::{Evidence, RunSetup, SetupInput, StepTree};

use super::support::{World, attempt, supervisor};

async fn perform(world: &World, script: &str) -> Result<Option<Evidence>, Failure> {
    let input = SetupInput {
        project: world.project(),
        feature: FeatureId::new("login").unwrap(),
        tree: StepTree::Feature,
        commit: None,
        script: script.into(),
        timeout_seconds: 60,
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement::default(),
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), world.handlers());
    Ok(Handler::<RunSetup>::perform(&handler, input, &attempt("shop/login", 1)).await?.evidence)
}

async fn check(world: &World, script: &str, expected: (&str, &str, &str)) {
    let evidence = perform(world, script).await.unwrap().expect("there is such a script");
    assert_eq!(
        (evidence.command.as_str(), evidence.ending().as_str(), evidence.output_tail.as_str()),
        expected
    );
    assert_eq!(evidence.commit, world.git(&["rev-parse", "HEAD"]));
}

#[tokio::test]
async fn scripts_run_in_the_work_tree_and_what_they_make_stays() {
    let world = World::with_git().await;
    world.script("work/run.sh", "#!/bin/sh\ncat code.txt; touch made; exit 3\n");
    check(&world, "run.sh", ("./run.sh", "exit code 3", "good\n")).await;
    assert!(world.path("work/made").exists());
    world.write("work/plain.sh", "echo $LONGHAUL_FEATURE_ID\n");
    check(&world, "./plain.sh", ("sh ./plain.sh", "exit code 0", "login\n")).await;
}

#[tokio::test]
async fn a_script_with_a_bad_first_line_is_a_report() {
    let world = World::with_git().await;
    world.script("work/odd.sh", "#!/no/such/interpreter\n");
    let evidence = perform(&world, "odd.sh").await.unwrap().unwrap();
    assert!(matches!(evidence.exit_code, Some(126 | 127)), "{}", evidence.ending());
}

#[tokio::test]
async fn a_script_that_is_not_there_is_skipped() {
    assert_eq!(perform(&World::with_git().await, "init.sh").await, Ok(None));
}

#[tokio::test]
async fn a_script_outside_the_work_tree_is_refused() {
    let world = World::with_git().await;
    world.script("root/evil.sh", "#!/bin/sh\n");
    std::os::unix::fs::symlink(world.path("root/evil.sh"), world.path("work/link.sh")).unwrap();
    for script in ["../root/evil.sh", &world.text_path("root/evil.sh"), "link.sh"] {
        let failure = perform(&world, script).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Terminal);
        assert!(failure.message.contains("is not inside the work tree"), "{failure}");
    }
}
