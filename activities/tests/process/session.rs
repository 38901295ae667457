//! Sessions of an agent: its inputs, its leftovers, and a report that is never paid for twice.

use longhaul_activities::git::GitHandlers;
use longhaul_activities::model::Limiter;
use longhaul_activities::process::{Supervisor, owned};
use longhaul_activities::session::SessionHandler;
use longhaul_engine::{Failure, Handler, Probe};
use longhaul_workflows::backlog::{Feature, FeatureId};
use longhaul_workflows::contracts::{
    Feedback, SessionEnding, SessionInput, SessionReason, SessionReport,
};
use longhaul_workflows::settings::{AgentSettings, EnvSource};

use super::support::{World, attempt, supervisor, wait_for};

pub(crate) fn input(world: &World) -> SessionInput {
    SessionInput {
        project: world.project(),
        target: "main".into(),
        feature: Feature::new(FeatureId::new("login").unwrap(), "Log in"),
        number: 2,
        reason: SessionReason::GatesFailed,
        gates: Vec::new(),
        feedback: Feedback { notes: "The login needs a form.".into(), ..Feedback::default() },
        agent: AgentSettings {
            command: vec!["./agent.sh".into(), "an argument".into()],
            write: Some(vec![world.text_path("out")]),
            ..AgentSettings::default()
        },
        available: None,
        held_out: None,
        redo: false,
    }
}

fn handler(world: &World) -> SessionHandler {
    handler_with(world, supervisor(), world.handlers())
}

fn handler_with(world: &World, supervisor: Supervisor, git: GitHandlers) -> SessionHandler {
    let data = world.path("data");
    SessionHandler::new(&data, supervisor, git, Limiter::new(&data))
}

pub(crate) async fn perform(world: &World, input: SessionInput) -> Result<SessionReport, Failure> {
    handler(world).perform(input, &attempt("shop/login", 3)).await
}

async fn session(script: &str) -> SessionReport {
    let world = World::with_git().await;
    world.script("root/agent.sh", &format!("#!/bin/sh\n{script}\n"));
    perform(&world, input(&world)).await.unwrap()
}

#[tokio::test]
async fn exit_codes_are_claims() {
    let failed =
        |reason: &str| SessionEnding::Failed { reason: reason.into(), lacks_command: false };
    assert_eq!(session("exit 0").await.ending, SessionEnding::ClaimsDone);
    assert_eq!(session("exit 75").await.ending, SessionEnding::ContextFull);
    assert_eq!(
        session("touch $LONGHAUL_CONTEXT_FULL_FILE").await.ending,
        SessionEnding::ContextFull
    );
    assert_eq!(session("exit 1").await.ending, failed("exit code 1"));
    assert_eq!(session("kill -9 $$").await.ending, failed("killed by signal 9"));
}

#[tokio::test]
async fn the_agent_gets_its_prompt_its_feature_and_its_place() {
    let report = session(
        "grep login.needs; grep login.needs $LONGHAUL_PROMPT_FILE; grep name $LONGHAUL_FEATURE_FILE
         echo $1, $LONGHAUL_FEATURE_ID, $LONGHAUL_RUN_ID, $LONGHAUL_SESSION, $LONGHAUL_REASON
         cat code.txt; printf 'Mind the gap.' >$LONGHAUL_NOTES_FILE",
    );
    let report = report.await;
    let expected = "The login needs a form.\nThe login needs a form.\n  \"name\": \"Log in\",\n\
                    an argument, login, shop/login, 2, gates_failed\ngood\n";
    assert_eq!(report.output_tail, expected);
    assert_eq!(report.notes, "Mind the gap.");
}

#[tokio::test]
async fn notes_are_bounded_and_only_read_from_a_plain_file() {
    let notes = session(
        "head -c 100000 /dev/zero | tr '\\0' n >$LONGHAUL_NOTES_FILE; printf end \
         >>$LONGHAUL_NOTES_FILE",
    );
    let notes = notes.await.notes;
    assert_eq!((notes.len(), notes.ends_with("nend")), (64 * 1024, true));
    for (script, reason) in [
        ("rm $LONGHAUL_NOTES_FILE; mkfifo $LONGHAUL_NOTES_FILE", "notes.md is a named pipe"),
        ("ln -sf /etc/passwd $LONGHAUL_NOTES_FILE", "notes.md is a link that leads out of"),
    ] {
        let report = session(script).await;
        assert_eq!(report.notes, "");
        assert!(
            report.unread_notes.as_ref().is_some_and(|unread| unread.contains(reason)),
            "{report:?}"
        );
    }
    assert_eq!(session("truncate -s 1T $LONGHAUL_NOTES_FILE").await.notes.len(), 64 * 1024);
    assert_eq!(session("rm -r .longhaul; ln -s / .longhaul").await.notes, "");
    assert_eq!(session("rm -r $(dirname $LONGHAUL_NOTES_FILE)/notes.md").await.notes, "");
}

#[tokio::test]
async fn the_variables_of_longhaul_cannot_be_replaced() {
    let world = World::with_git().await;
    world.script("root/agent.sh", "#!/bin/sh\necho $MODE $LONGHAUL_SESSION\n");
    let mut input = input(&world);
    world.write("root/longhaul.toml", "[agent.env]\nMODE = \"fast\"\nLONGHAUL_SESSION = \"99\"\n");
    input.agent.env =
        ["MODE", "LONGHAUL_SESSION"].map(|name| (name.into(), EnvSource::SETTINGS)).into();
    assert_eq!(perform(&world, input).await.unwrap().output_tail, "fast 2\n");
}

#[tokio::test]
async fn a_silent_agent_has_failed() {
    let world = World::with_git().await;
    world.script("root/agent.sh", "#!/bin/sh\nexec sleep 600\n");
    let mut input = input(&world);
    input.agent.silence_timeout.0 = 1;
    let report = perform(&world, input).await.unwrap();
    assert_eq!(
        report.ending,
        SessionEnding::Failed { reason: "silent for 1 s".into(), lacks_command: false }
    );
}

#[tokio::test]
async fn an_agent_that_works_without_a_word_is_alive() {
    for work in
        ["echo $n >code.txt; sleep 0.3", "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"]
    {
        let world = World::with_git().await;
        let script = format!(
            "#!/bin/sh\nuntil=$(($(date +%s) + 4))\nwhile [ $(date +%s) -lt $until ]; do {work}; \
             done\n"
        );
        world.script("root/agent.sh", &script);
        let mut input = input(&world);
        input.agent.silence_timeout.0 = 1;
        let report = perform(&world, input).await.unwrap();
        assert_eq!(report.ending, SessionEnding::ClaimsDone, "{work}");
    }
}

#[tokio::test]
async fn the_users_progress_file_is_brought_along_unless_the_branch_has_its_own() {
    let world = World::with_git().await;
    world.write("root/claude-progress.txt", "from the user");
    world.write("elsewhere", "untouched");
    std::os::unix::fs::symlink(world.path("elsewhere"), world.path("work/claude-progress.txt"))
        .unwrap();
    world.script("root/agent.sh", "#!/bin/sh\ncat claude-progress.txt\n");
    assert_eq!(perform(&world, input(&world)).await.unwrap().output_tail, "from the user");
    assert_eq!(world.read("elsewhere"), "untouched");

    world.write("work/claude-progress.txt", "of the branch");
    world.commit();
    world.open().await;
    let next = handler(&world).perform(input(&world), &attempt("shop/login", 4)).await.unwrap();
    assert_eq!(next.output_tail, "of the branch");
}

#[tokio::test]
async fn a_report_is_given_again_and_the_agent_is_not() {
    let world = World::with_git().await;
    let input = input(&world);
    world.script("root/agent.sh", "#!/bin/sh\necho x >>../../../../out/count\nexit 1\n");
    let report = perform(&world, input.clone()).await.unwrap();
    assert_eq!(
        handler(&world).probe(input.clone(), &attempt("shop/login", 3)).await,
        Probe::Happened(report.clone())
    );
    assert_eq!(perform(&world, input.clone()).await.unwrap(), report);
    assert_eq!(world.read("out/count"), "x\n");

    let other_call = handler(&world).probe(input.clone(), &attempt("shop/login", 4)).await;
    assert_eq!(other_call, Probe::NotHappened);
    let other_input = SessionInput { feedback: Feedback::default(), ..input };
    perform(&world, other_input).await.unwrap();
    assert_eq!(world.read("out/count"), "x\nx\n");
}

/// An agent has exited, and Longhaul is killed before it reports the end. Returns what the next
/// life finds.
async fn killed_after_the_end(world: &World, agent: &str) -> Probe<SessionReport> {
    let input = input(world);
    // Its child ignores SIGTERM: the supervisor ends it before it reports to its owner.
    let child = "(trap '' TERM; echo $$ >>../../../../out/pids; sleep 600) >/dev/null 2>&1 &";
    world.script("root/agent.sh", &format!("#!/bin/sh\n{child}\n{agent}\n"));
    let patient = Supervisor { grace: std::time::Duration::from_mins(10), ..supervisor() };
    let dying = handler_with(world, patient, world.handlers());
    let call = attempt("shop/login", 3);
    let folder = world.path("data/sessions/shop~login/3.0");
    let outcome = || {
        let mut files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        files.find(|file| file.file_name().to_string_lossy().starts_with("outcome-"))
    };
    tokio::select! {
        _ = dying.perform(input.clone(), &call) => panic!("a child of the agent is alive"),
        _ = wait_for("the outcome", outcome) => {}
    };
    let next = GitHandlers::new(world.path("data"));
    let next = handler_with(world, supervisor(), next);
    next.probe(input, &call).await
}

#[tokio::test]
async fn a_session_that_ended_right_before_longhaul_was_killed_is_not_repeated() {
    let world = World::with_git().await;
    let agent = "echo made >made.txt; printf notes >$LONGHAUL_NOTES_FILE; exit 0";
    let found = killed_after_the_end(&world, agent).await;
    let Probe::Happened(report) = found else { panic!("{found:?}") };
    assert_eq!((report.ending, report.notes.as_str()), (SessionEnding::ClaimsDone, "notes"));
    assert_eq!(world.read("work/made.txt"), "made\n");
    assert_eq!(owned(&world.path("data")), []);
    let again = handler(&world).probe(input(&world), &attempt("shop/login", 3)).await;
    assert!(matches!(again, Probe::Happened(_)), "{again:?}");
}

#[tokio::test]
async fn an_outcome_counts_until_the_system_is_started_again() {
    let world = World::with_git().await;
    assert!(matches!(killed_after_the_end(&world, "exit 1").await, Probe::Happened(_)));
    let folder = world.path("data/sessions/shop~login/3.0");
    std::fs::remove_file(folder.join("report.json")).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replace(boot.trim(), "an earlier one")).unwrap();
    }
    let found = handler(&world).probe(input(&world), &attempt("shop/login", 3)).await;
    assert_eq!(found, Probe::NotHappened);
}

#[tokio::test]
async fn a_session_that_was_cut_runs_again_and_its_uncommitted_work_is_kept() {
    let world = World::with_git().await;
    let input = input(&world);
    let agent = "#!/bin/sh\nls\n[ -e \"$PWD/../../../../out/second\" ] && exit 0\n\
                 echo early >$LONGHAUL_NOTES_FILE\necho half >half.txt\necho $$ \
                 >>../../../../out/pids\nsleep 600\n";
    world.script("root/agent.sh", agent);
    tokio::select! {
        _ = perform(&world, input.clone()) => panic!("the agent sleeps"),
        _ = wait_for("the agent", || world.pids_in("out/pids", 1)) => {}
    };
    assert_eq!(
        handler(&world).probe(input.clone(), &attempt("shop/login", 3)).await,
        Probe::NotHappened
    );
    assert_eq!(owned(&world.path("data")), []);

    world.write("out/second", "");
    let report = perform(&world, input).await.unwrap();
    assert_eq!((report.ending, report.notes.as_str()), (SessionEnding::ClaimsDone, ""));
    assert_eq!(
        report.output_tail, "code.txt\nlonghaul.toml\n",
        "the work tree is as it was committed"
    );
    assert_eq!(world.read("data/sessions/shop~login/3.0.lost-1/notes.md"), "early\n");

    let reference = "refs/longhaul/rescue/shop/login/3.0";
    let prompt = world.read("data/sessions/shop~login/3.0/prompt.md");
    assert!(prompt.contains(&format!("`git show {reference}`")), "{prompt}");
    let kept = std::process::Command::new("git")
        .args(["-C", &world.text_path("root"), "show", &format!("{reference}:half.txt")])
        .output();
    assert_eq!(String::from_utf8(kept.unwrap().stdout).unwrap(), "half\n");
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_is_reported() {
    let world = World::with_git().await;
    let usual = input(&world);
    let with = |command: &[&str]| {
        let mut input = usual.clone();
        input.agent.command = command.iter().map(|part| (*part).into()).collect();
        perform(&world, input)
    };
    for (command, expected) in [
        (&[][..], "set `[agent] command` to a program"),
        (&[""], "set `[agent] command` to a program"),
        (&["no-such-agent"], "or correct `[agent] command` in longhaul.toml."),
        (&["./no-such-agent"], "/root/no-such-agent` cannot be started"),
    ] {
        let report = with(command).await.unwrap();
        let SessionEnding::NotStarted { reason } = report.ending else {
            panic!("{:?}", report.ending)
        };
        assert!(reason.contains(expected), "{reason}");
    }
}
