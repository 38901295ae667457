//! Checks: what they run on, what they leave.

use longhaul_activities::checks::ChecksHandler;
use longhaul_activities::git::GitHandlers;
use longhaul_engine::{Failure, Handler};
use longhaul_workflows::backlog::{Check, FeatureId};
use longhaul_workflows::contracts::{ChecksInput, ChecksReport, ProjectRef, RunChecks};

use super::support::{World, attempt, supervisor};

async fn perform(world: &World, checks: &[(&str, &str)]) -> Result<ChecksReport, Failure> {
    perform_within(None, world, checks).await
}

async fn perform_within(
    timeout_seconds: Option<u64>,
    world: &World,
    checks: &[(&str, &str)],
) -> Result<ChecksReport, Failure> {
    let check = |(name, run): &(&str, &str)| Check {
        name: (*name).into(),
        run: (*run).into(),
        timeout_seconds,
        ..Check::default()
    };
    let input = ChecksInput {
        project: ProjectRef { id: "shop".into(), root: world.text_path("root") },
        feature: FeatureId::new("login").unwrap(),
        worktree: world.text_path("work"),
        commit: world.git(&["rev-parse", "HEAD"]),
        checks: checks.iter().map(check).collect(),
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement::default(),
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), GitHandlers::new(world.path("data")));
    Handler::<RunChecks>::perform(&handler, input, &attempt("shop/login", 5)).await
}

#[tokio::test]
async fn checks_stop_at_the_first_that_fails() {
    let world = World::with_git();
    let report =
        perform(&world, &[("unit", "echo fine"), ("e2e", "echo bad; exit 2"), ("late", "true")]).await.unwrap();
    let told: Vec<_> = report.evidence.iter().map(|e| (e.name.as_str(), e.ending(), e.output_tail.as_str())).collect();
    assert_eq!(told, [("unit", "exit code 0".into(), "fine\n"), ("e2e", "exit code 2".into(), "bad\n")]);
    let failed = report.failed().unwrap();
    assert_eq!((failed.command.as_str(), &failed.commit), ("echo bad; exit 2", &world.git(&["rev-parse", "HEAD"])));
    assert_eq!(failed.output_digest, blake3::hash(b"bad\n").to_hex().to_string());
    assert_eq!(failed.log, world.text_path("data/logs/shop~login/5.0-1-e2e.log"));
}

#[tokio::test]
async fn a_check_that_takes_too_long_has_failed() {
    let world = World::with_git();
    let report = perform_within(Some(2), &world, &[("slow", "sleep 600")]).await.unwrap();
    assert_eq!(
        report.failed().map(longhaul_workflows::contracts::Evidence::ending),
        Some("timed out after 2 s".into())
    );
}

#[tokio::test]
async fn a_check_is_told_what_it_checks() {
    let world = World::with_git();
    let commit = world.git(&["rev-parse", "HEAD"]);
    let report = perform(&world, &[("who", "echo $LONGHAUL_FEATURE_ID $LONGHAUL_COMMIT")]).await.unwrap();
    assert_eq!(report.evidence[0].output_tail, format!("login {commit}\n"));
}

#[tokio::test]
async fn checks_see_the_commit_and_leave_it_as_it_was() {
    let world = World::with_git();
    let commit = world.git(&["rev-parse", "HEAD"]);
    world.write("work/code.txt", "uncommitted\n");
    world.write("work/untracked", "");
    world.write("work/build", "a cache\n");
    let report = perform(
        &world,
        &[
            ("see", "cat code.txt build; ls untracked 2>&1 | wc -l; git status --short"),
            ("dirty", "echo worse >code.txt; git init -q nested; mkdir made; echo more >>build; touch .git/index.lock"),
        ],
    );
    assert_eq!(report.await.unwrap().evidence[0].output_tail.replace(' ', ""), "good\nacache\n1\n");
    assert_eq!(world.git(&["status", "--short", "--ignored"]), "!! build");
    assert_eq!(world.read("work/build"), "a cache\nmore\n");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), commit);
}

#[tokio::test]
async fn no_branch_is_moved_by_a_check() {
    let world = World::with_git();
    let commit = world.git(&["rev-parse", "HEAD"]);
    world.git(&["branch", "other"]);
    let commits = "git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m more";
    perform(&world, &[("one", commits), ("two", &format!("git checkout -q other && {commits}"))]).await.unwrap();
    assert_eq!(world.git(&["rev-parse", "longhaul/login"]), commit);
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/longhaul/login");
    assert_eq!(world.git(&["rev-list", "--count", "longhaul/login..other"]), "1");

    world.git(&["checkout", "--quiet", "--detach"]);
    perform(&world, &[("three", "git checkout -q other")]).await.unwrap();
    assert_eq!(world.git(&["rev-parse", "--symbolic-full-name", "HEAD"]), "HEAD");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), commit);
}

/// What a hidden check and a plain one after it print, with held-out files at `held_out`.
async fn held_out(world: &World, held_out: &str, checks: &[Check]) -> Result<ChecksReport, Failure> {
    let input = ChecksInput {
        project: ProjectRef { id: "shop".into(), root: world.text_path("root") },
        feature: FeatureId::new("login").unwrap(),
        worktree: world.text_path("work"),
        commit: world.git(&["rev-parse", "HEAD"]),
        checks: checks.to_vec(),
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement {
            held_out: Some(held_out.into()),
            ..longhaul_workflows::settings::Confinement::default()
        },
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), GitHandlers::new(world.path("data")));
    Handler::<RunChecks>::perform(&handler, input, &attempt("shop/login", 5)).await
}

#[tokio::test]
async fn only_held_out_checks_see_what_is_held_out() {
    let world = World::with_git();
    std::fs::create_dir(world.path("held")).unwrap();
    world.write("held/answer", "42\n");
    let hidden = Check {
        name: "hidden".into(),
        run: "cat $LONGHAUL_HIDDEN/answer; echo x >$LONGHAUL_HIDDEN/answer".into(),
        hidden: true,
        message: Some("The answer is wrong.".into()),
        ..Check::default()
    };
    let look = format!("cat {}", world.text_path("held/answer"));
    let plain = Check { name: "plain".into(), run: look, ..Check::default() };
    let see = Check { run: "cat $LONGHAUL_HIDDEN/answer".into(), ..hidden.clone() };
    let first = held_out(&world, "../held", &[see.clone(), plain.clone()]).await.unwrap();
    assert_eq!(first.evidence[0].output_tail, "42\n");
    let digest = |report: &ChecksReport| report.evidence[0].held_out.clone().unwrap().digest;
    let is_confined = longhaul_activities::process::available().best().is_some();
    assert_eq!(first.evidence[1].passed(), !is_confined, "{:?}", first.evidence[1]);
    if is_confined {
        let report = held_out(&world, "../held", &[hidden]).await.unwrap();
        assert!(!report.evidence[0].passed());
        assert_eq!(world.read("held/answer"), "42\n");
        assert_eq!(digest(&report), digest(&first));
    }
    world.write("held/answer", "43\n");
    let second = held_out(&world, "../held", std::slice::from_ref(&see)).await.unwrap();
    assert_ne!(digest(&second), digest(&first));

    for (folder, wrong) in [("../nothing", "cannot be used"), ("inside", "is in the repository")] {
        std::fs::create_dir_all(world.path("root/inside")).unwrap();
        let failure = held_out(&world, folder, std::slice::from_ref(&see)).await.unwrap_err();
        assert!(failure.message.contains(wrong), "{failure}");
    }
}
