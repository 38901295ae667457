//! Checks: their inputs, and their leftovers.

use std::time::Duration;

use longhaul_activities::checks::ChecksHandler;
use longhaul_engine::{Failure, Handler};
use longhaul_workflows::backlog::{Check, FeatureId};
use longhaul_workflows::contracts::{ChecksInput, ChecksReport, Evidence, RunChecks, StepTree};

use super::support::{World, attempt, git_in, supervisor};

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
        project: world.project(),
        feature: FeatureId::new("login").unwrap(),
        tree: StepTree::Feature,
        commit: world.git(&["rev-parse", "HEAD"]),
        checks: checks.iter().map(check).collect(),
        is_baseline: false,
        repeat: false,
        same_as: None,
        protected: vec!["acceptance/**".into()],
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement::default(),
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), world.handlers());
    Handler::<RunChecks>::perform(&handler, input, &attempt("shop/login", 5)).await
}

#[tokio::test]
async fn checks_stop_at_the_first_that_fails() {
    let world = World::with_git().await;
    let report =
        perform(&world, &[("unit", "echo fine"), ("e2e", "echo bad; exit 2"), ("late", "true")])
            .await
            .unwrap();
    let results: Vec<_> = report
        .evidence
        .iter()
        .map(|e| (e.name.as_str(), e.ending(), e.output_tail.as_str()))
        .collect();
    assert_eq!(
        results,
        [("unit", "exit code 0".into(), "fine\n"), ("e2e", "exit code 2".into(), "bad\n")]
    );
    let failed = report.failed().unwrap();
    assert_eq!(
        (failed.command.as_str(), &failed.commit),
        ("echo bad; exit 2", &world.git(&["rev-parse", "HEAD"]))
    );
    assert_eq!(failed.output_digest, blake3::hash(b"bad\n").to_hex().to_string());
    assert_eq!(failed.log, "logs/shop~login/5.0-1-e2e.log");
}

#[tokio::test]
async fn a_check_that_takes_too_long_has_failed() {
    let world = World::with_git().await;
    let report = perform_within(Some(2), &world, &[("slow", "sleep 600")]).await.unwrap();
    assert_eq!(
        report.failed().map(longhaul_workflows::contracts::Evidence::ending),
        Some("timed out after 2 s".into())
    );
}

#[tokio::test]
async fn a_check_gets_its_feature_and_commit() {
    let world = World::with_git().await;
    let commit = world.git(&["rev-parse", "HEAD"]);
    let report =
        perform(&world, &[("ids", "echo $LONGHAUL_FEATURE_ID $LONGHAUL_COMMIT")]).await.unwrap();
    assert_eq!(report.evidence[0].output_tail, format!("login {commit}\n"));
}

#[tokio::test]
async fn checks_see_the_commit_where_no_agent_has_worked() {
    let world = World::with_git().await;
    let commit = world.git(&["rev-parse", "HEAD"]);
    world.write("work/code.txt", "uncommitted\n");
    world.write("work/untracked", "");
    world.write("work/build", "of the agent\n");
    let checks = [
        (
            "see",
            "cat code.txt; cat build 2>/dev/null; ls untracked 2>/dev/null; git status --short; \
             git rev-parse HEAD",
        ),
        (
            "dirty",
            "echo worse >code.txt; git init -q nested; mkdir made; echo cache >>build; touch \
             .git/index.lock",
        ),
    ];
    for _ in 0..2 {
        let report = perform(&world, &checks).await.unwrap();
        assert_eq!(report.evidence[0].output_tail, format!("good\n{commit}\n"));
    }
    assert_eq!(world.read("work/code.txt"), "uncommitted\n");
    assert_eq!(world.read("work/build"), "of the agent\n");
}

#[tokio::test]
async fn no_branch_is_moved_by_a_check() {
    let world = World::with_git().await;
    let commit = world.git(&["rev-parse", "HEAD"]);
    let commits = "git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m more";
    let checks = [("one", commits), ("two", &*format!("git checkout -q -b other && {commits}"))];
    perform(&world, &checks).await.unwrap();
    let root = world.path("root");
    let refs = git_in(&root, &["for-each-ref", "--format=%(objectname) %(refname)"]);
    assert_eq!(refs, format!("{commit} refs/heads/longhaul/login\n{commit} refs/heads/main"));
    let report = perform(&world, &[("three", "git rev-parse HEAD; git symbolic-ref -q HEAD")])
        .await
        .unwrap();
    assert_eq!(
        report.evidence[0].output_tail,
        format!("{commit}\n"),
        "each run begins on the commit"
    );
}

#[tokio::test]
async fn protected_files_are_put_back_before_each_check() {
    let world = World::with_git().await;
    std::fs::create_dir(world.path("work/acceptance")).unwrap();
    world.script("work/acceptance/login.sh", "grep -q good code.txt\n");
    world.commit();
    world.open().await;
    let tampering = "cd acceptance && printf 'grep -q  ood code.txt\\n' >login.sh && \
                     touch -r ../code.txt login.sh && chmod -x login.sh && echo bad >helper.sh && \
                     mkdir -p __pycache__ && touch __pycache__/x";
    let see = "cat acceptance/login.sh; ls acceptance; test -x acceptance/login.sh";
    let moved = "rm -r acceptance && mkdir /tmp/$$ && ln -s /tmp/$$ acceptance && rmdir /tmp/$$";
    let checks = [("tamper", tampering), ("see", see), ("move", moved), ("see again", see)];
    let report = perform(&world, &checks).await.unwrap();
    let seen: Vec<_> = report
        .evidence
        .iter()
        .map(|evidence| (evidence.passed(), &*evidence.output_tail))
        .collect();
    let right = (true, "grep -q good code.txt\nlogin.sh\n");
    assert_eq!(seen, [(true, ""), right, (true, ""), right]);
}

#[tokio::test]
async fn gates_are_set_up_for_each_commit_and_a_failure_is_evidence() {
    let world = World::with_git().await;
    world.write("work/init.sh", "echo ran >>build\n");
    world.commit();
    world.open().await;
    let see = [("see", "cat build")];
    assert_eq!(perform(&world, &see).await.unwrap().evidence[0].output_tail, "ran\n");
    assert_eq!(
        perform(&world, &see).await.unwrap().evidence[0].output_tail,
        "ran\n",
        "it is set up anew, without what the first set-up left"
    );
    world.write("work/init.sh", "echo ran >>build; exit $((1 + $(wc -l <build)))\n");
    world.commit();
    world.open().await;
    let report = perform(&world, &see).await.unwrap();
    let failed = report.failed().unwrap();
    assert_eq!((failed.name.as_str(), failed.ending().as_str()), ("setup", "exit code 2"));
    assert_eq!(report.evidence.len(), 1, "no check runs then");
}

/// Whether a check passes on a commit in an integration tree.
async fn passes_merged(world: &World, command: u32, commit: &str, run: &str) -> bool {
    let input = ChecksInput {
        project: world.project(),
        feature: FeatureId::new("login").unwrap(),
        tree: StepTree::Integration(0),
        commit: commit.into(),
        checks: vec![Check { name: "merged".into(), run: run.into(), ..Check::default() }],
        is_baseline: false,
        repeat: false,
        same_as: None,
        protected: Vec::new(),
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement::default(),
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), world.handlers());
    let report = Handler::<RunChecks>::perform(&handler, input, &attempt("shop/login", command))
        .await
        .unwrap();
    report.failed().is_none()
}

#[tokio::test]
async fn two_runs_with_one_tree_of_merged_results_check_one_after_the_other() {
    let world = World::with_git().await;
    let first = world.git(&["rev-parse", "HEAD"]);
    world.write("work/code.txt", "other\n");
    let second = world.commit();
    world.open().await;
    let begun = world.path("data/worktrees/shop/.integrate/begun");
    let wait = "touch begun; until test -e go; do sleep 0.05; done; grep good code.txt";
    let other = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut check = std::pin::pin!(passes_merged(&world, 6, &second, "grep other code.txt"));
        let early = tokio::time::timeout(Duration::from_millis(300), &mut check).await;
        world.write("data/worktrees/shop/.integrate/go", "");
        assert!(early.is_err(), "the tree is in use");
        check.await
    };
    assert_eq!(tokio::join!(passes_merged(&world, 5, &first, wait), other), (true, true));
}

/// The output of a hidden check and of a plain one after it, with held-out files at `held_out`.
async fn held_out(
    world: &World,
    held_out: &str,
    checks: &[Check],
) -> Result<ChecksReport, Failure> {
    let input = ChecksInput {
        project: world.project(),
        feature: FeatureId::new("login").unwrap(),
        tree: StepTree::Feature,
        commit: world.git(&["rev-parse", "HEAD"]),
        checks: checks.to_vec(),
        is_baseline: false,
        repeat: false,
        same_as: None,
        protected: Vec::new(),
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement {
            held_out: Some(held_out.into()),
            ..longhaul_workflows::settings::Confinement::default()
        },
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), world.handlers());
    Handler::<RunChecks>::perform(&handler, input, &attempt("shop/login", 5)).await
}

#[tokio::test]
async fn only_held_out_checks_see_what_is_held_out() {
    let world = World::with_git().await;
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
    let is_confined = longhaul_activities::process::available().best().is_some();
    let first = held_out(&world, "../held", &[plain.clone(), see.clone()]).await.unwrap();
    assert_eq!(first.evidence.len(), if is_confined { 1 } else { 2 }, "{first:?}");
    let first = held_out(&world, "../held", std::slice::from_ref(&see)).await.unwrap();
    assert_eq!(first.evidence[0].output_tail, "42\n");
    let digest = |report: &ChecksReport| report.evidence[0].held_out.clone().unwrap().digest;
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

#[tokio::test]
async fn what_a_held_out_check_writes_is_gone_before_anything_else_runs() {
    if longhaul_activities::process::available().best().is_none() {
        eprintln!("not tried: there is no sandbox");
        return;
    }
    let world = World::with_git().await;
    std::fs::create_dir(world.path("held")).unwrap();
    world.write("held/secret", "secret\n");
    let name = format!("learnt-{}", std::process::id());
    let places =
        format!("\"{}\" /tmp /var/tmp /dev/shm \"$HOME/.cache\" . build", world.text_path("out"));
    let leave = format!(
        "mkdir -p build; for dir in {places}; do cp $LONGHAUL_HIDDEN/secret $dir/{name}; done \
         2>/dev/null; cat $LONGHAUL_HIDDEN/secret"
    );
    let look = format!("for dir in {places}; do cat $dir/{name}; done 2>/dev/null; true");
    let check = |name: &str, run: &str, hidden| Check {
        name: name.into(),
        run: run.into(),
        hidden,
        message: hidden.then(|| "No.".into()),
        ..Check::default()
    };
    let handler = ChecksHandler::new(world.path("data"), supervisor(), world.handlers());
    let perform = async |checks, call| {
        let input = ChecksInput {
            project: world.project(),
            feature: FeatureId::new("login").unwrap(),
            tree: StepTree::Feature,
            commit: world.git(&["rev-parse", "HEAD"]),
            checks,
            is_baseline: false,
            repeat: true,
            same_as: None,
            protected: Vec::new(),
            pass_env: Vec::new(),
            confinement: longhaul_workflows::settings::Confinement {
                write: Some(vec![world.text_path("out"), "~/.cache".into()]),
                held_out: Some("../held".into()),
                ..Default::default()
            },
        };
        Handler::<RunChecks>::perform(&handler, input, &attempt("shop/login", call)).await.unwrap()
    };
    let both = vec![check("held", &leave, true), check("look", &look, false)];
    let report = perform(both, 5).await;
    let said: Vec<_> =
        report.evidence.iter().map(|e| (e.name.as_str(), e.output_tail.as_str())).collect();
    assert_eq!(said, [("look", ""), ("held", "secret\n")]);
    let report = perform(vec![check("look", &look, false)], 6).await;
    assert_eq!(report.evidence[0].output_tail, "");
}

#[tokio::test]
async fn a_check_that_passed_on_the_same_content_is_not_repeated() {
    let world = World::with_git().await;
    world.write("work/list", "no mark\n");
    let sealed = world.commit();
    world.write("work/list", "a mark\n");
    let marked = world.commit();
    world.write("work/list", "another text\n");
    let changed = world.commit();
    world.open().await;
    let handler = ChecksHandler::new(world.path("data"), supervisor(), world.handlers());
    std::fs::create_dir_all(world.path("out")).unwrap();
    let ran = world.text_path("out/ran");
    let check = |name: &str, run: &str| Check {
        name: name.into(),
        run: format!("echo {name} >>{ran}; {run}"),
        ..Check::default()
    };
    let build = check("build", "touch built");
    let other = check("other", "test -e built");
    let call = std::cell::Cell::new(5);
    let perform = async |commit: &str, same_as: Option<&str>, checks: &[&Check], repeat: bool| {
        let input = ChecksInput {
            is_baseline: false,
            project: world.project(),
            feature: FeatureId::new("login").unwrap(),
            tree: StepTree::Feature,
            commit: commit.into(),
            checks: checks.iter().copied().cloned().collect(),
            repeat,
            same_as: same_as.map(str::to_owned),
            protected: Vec::new(),
            pass_env: Vec::new(),
            confinement: longhaul_workflows::settings::Confinement {
                write: Some(vec![world.text_path("out")]),
                ..Default::default()
            },
        };
        call.set(call.get() + 1);
        let attempt = attempt("shop/login", call.get());
        let report = Handler::<RunChecks>::perform(&handler, input, &attempt).await.unwrap();
        assert!(report.failed().is_none(), "{report:?}");
        let of = |evidence: &Evidence| (evidence.reused, evidence.commit.clone());
        let evidence: Vec<_> = report.evidence.iter().map(of).collect();
        let lines = std::fs::read_to_string(world.path("out/ran")).unwrap_or_default();
        let _ = std::fs::remove_file(world.path("out/ran"));
        (evidence, lines.lines().collect::<Vec<_>>().join(" "))
    };
    let at = |reused: bool, commit: &str| (reused, commit.to_owned());
    let first = perform(&sealed, None, &[&build], false).await;
    assert_eq!(first, (vec![at(false, &sealed)], "build".into()));
    let again = perform(&marked, Some(&sealed), &[&build], false).await;
    assert_eq!(again, (vec![at(true, &sealed)], String::new()), "only the mark differs");
    let more = perform(&marked, Some(&sealed), &[&build, &other], false).await;
    let expected = vec![at(true, &sealed), at(false, &sealed)];
    assert_eq!(more, (expected, "other".into()), "it goes on in the tree that `build` left");
    let forced = perform(&marked, Some(&sealed), &[&build], true).await;
    assert_eq!(forced, (vec![at(false, &marked)], "build".into()));
    let other_content = perform(&changed, None, &[&build, &other], false).await;
    let expected = vec![at(false, &changed), at(false, &changed)];
    assert_eq!(other_content, (expected, "build other".into()));
}
