//! The events of a feature: three sessions, a reverted file, a failed gate, a landing.

use longhaul_engine::{EventKind, Message, MessageBody, Outcome, Payload, RunId};
use longhaul_workflows::backlog::Feature;
use longhaul_workflows::contracts::{
    ChecksInput, ChecksReport, CloseInput, CloseWorktree, Evidence, Feedback, Land, LandInput,
    Landed, MergeCandidate, MergeInput, MergeStyle, Merged, OpenInput, OpenWorktree, PassMark,
    ProjectRef, RunChecks, RunSession, RunSetup, Seal, SealInput, SealStep, Sealed, SessionEnding,
    SessionInput, SessionReason, SessionReport, SetupInput, SetupReport, StepTree, Tampering,
    Worktree,
};
use longhaul_workflows::feature::{FeatureOutcome, FeatureProgress, Stage};
use longhaul_workflows::resources::Resources;
use longhaul_workflows::session::{SessionStart, SessionWorkflow};
use longhaul_workflows::settings::AgentSettings;

use crate::world::{World, id, in_progress, passed};

pub(crate) const RUN: &str = "shop/login/1";

/// Records them all, from the start of the run to the project's reaction to its outcome.
pub(crate) async fn record(world: &mut World) {
    prepare(world).await;
    first_session(world).await;
    second_session(world).await;
    third_session(world).await;
    land(world).await;
}

pub(crate) async fn prepare(world: &mut World) {
    world.feature("login", in_progress(RUN)).await;
    world.project(|view| view.in_progress = 1).await;
    world.start(RUN).await;
    let worktree = Worktree {
        branch: "longhaul/login".into(),
        head: "c0".into(),
        rescued: None,
        has_work: false,
        landed: None,
    };
    let open = OpenInput {
        project: project(),
        target: "main".into(),
        feature: id("login"),
        called_done: false,
        may_have_landed: false,
    };
    world.completed::<OpenWorktree>(RUN, &open, &worktree).await;
    let setup = SetupInput {
        project: project(),
        feature: id("login"),
        tree: StepTree::Feature,
        commit: None,
        script: "init.sh".into(),
        timeout_seconds: 60,
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement::default(),
    };
    let report = SetupReport { evidence: Some(evidence("set-up", 0, "ready\n")) };
    world.completed::<RunSetup>(RUN, &setup, &report).await;
    checks(world, "c0", &[evidence("build", 0, "")]).await;
}

pub(crate) async fn first_session(world: &mut World) {
    enter(world, at_session(1, SessionReason::Start), 1).await;
    let input = session(1, SessionReason::Start);
    begin(world, RUN, &input).await;
    end(world, RUN, &input, &report(SessionEnding::ContextFull, "Half of the form.\n")).await;
    seal(world, "c1", &["src/form.rs"], &[]).await;
}

pub(crate) async fn second_session(world: &mut World) {
    enter(world, at_session(2, SessionReason::Continue), 2).await;
    let input = session(2, SessionReason::Continue);
    begin(world, RUN, &input).await;
    end(world, RUN, &input, &report(SessionEnding::ClaimsDone, "")).await;
    let flipped = Tampering {
        file: "feature_list.json".into(),
        what: "`login`: `passes` false -> true".into(),
    };
    seal(world, "c2", &["src/form.rs", "src/main.rs"], &[flipped]).await;
    enter(world, Stage::Gates, 2).await;
    let output = "running 2 tests\n\u{1b}[31mFAILED\u{1b}[0m: no such user\n";
    checks(world, "c2", &[evidence("unit", 0, ""), evidence("end-to-end", 1, output)]).await;
}

pub(crate) async fn third_session(world: &mut World) {
    enter(world, at_session(3, SessionReason::GatesFailed), 3).await;
    let input = session(3, SessionReason::GatesFailed);
    begin(world, RUN, &input).await;
    end(world, RUN, &input, &report(SessionEnding::ClaimsDone, "The user is made first.")).await;
    seal(world, "c3", &["src/form.rs", "src/main.rs"], &[]).await;
    enter(world, Stage::Gates, 3).await;
    checks(world, "c3", &[evidence("unit", 0, ""), evidence("end-to-end", 0, "")]).await;
}

pub(crate) async fn land(world: &mut World) {
    enter(world, Stage::Merging, 3).await;
    let merge = MergeInput {
        mark: PassMark::Own,
        project: project(),
        target: "main".into(),
        feature: id("login"),
        commit: "c3".into(),
        style: MergeStyle::Squash,
        protected: Vec::new(),
        list_file: "feature_list.json".into(),
        subject: "The login page".into(),
        body: String::new(),
        at: "2026-01-31T08:59:59Z".into(),
        tree: 0,
    };
    let candidate = Merged::Candidate {
        commit: "c4".into(),
        tip: "c0".into(),
        files: vec!["src/form.rs".into()],
        same_as_work: false,
        put_back: Vec::new(),
        outside: Vec::new(),
    };
    world.completed::<MergeCandidate>(RUN, &merge, &candidate).await;
    checks(world, "c4", &[evidence("unit", 0, "")]).await;
    let land = LandInput {
        project: project(),
        target: "main".into(),
        tip: "c0".into(),
        commit: "c4".into(),
        list_file: "feature_list.json".into(),
        feature: id("login"),
        version: None,
    };
    world.started::<Land>(RUN, &land, 1).await;
    let landed = Landed::at("c4".into(), None);
    world.completed::<Land>(RUN, &land, &landed).await;
    let close = CloseInput { project: project(), feature: id("login") };
    world.completed::<CloseWorktree>(RUN, &close, &()).await;
    let progress =
        FeatureProgress { sessions: 3, failed_gates: 1, tampered: 1, ..FeatureProgress::default() };
    let files = vec!["src/form.rs".into(), "src/main.rs".into()];
    let (commit, checks) = ("c4".into(), Vec::new());
    let outcome = FeatureOutcome::Passed {
        commit,
        waits_on_next: None,
        progress,
        files,
        checks,
        claim: false,
    };
    world.record(RUN, EventKind::RunCompleted { output: Payload::of(&outcome) }).await;
    world.feature("login", passed(RUN, 3, "c4")).await;
    world.project(|view| view.passed = 1).await;
}

pub(crate) fn project() -> ProjectRef {
    ProjectRef { id: "shop".into(), root: "/shop".into() }
}

pub(crate) fn session(number: u32, reason: SessionReason) -> SessionInput {
    SessionInput {
        project: project(),
        target: "main".into(),
        feature: Feature::new(id("login"), "The login page"),
        number,
        reason,
        gates: Vec::new(),
        feedback: Feedback::default(),
        agent: AgentSettings::default(),
        available: None,
        held_out: None,
        redo: false,
    }
}

/// The run of a session.
pub(crate) fn run_of(run: &str, input: &SessionInput) -> String {
    format!("{run}/{}", input.number)
}

/// Records the begin of a session in its run and in that of its feature, in one second.
pub(crate) async fn begin(world: &mut World, run: &str, input: &SessionInput) {
    let own = run_of(run, input);
    let began = world.now;
    let start = SessionStart {
        id: RunId::new(own.clone()).unwrap(),
        session: input.clone(),
        seal: seal_input(),
        handoff: None,
        task: None,
        available: Resources::default(),
    };
    let kind = EventKind::ChildStarted {
        command: 1,
        run: start.id.clone(),
        workflow: SessionWorkflow::NAME.into(),
        input: Payload::of(&start),
    };
    world.record(run, kind).await;
    let now = world.now;
    world.now = began;
    world.start(&own).await;
    world.now = began;
    world.started::<RunSession>(&own, input, 1).await;
    world.now = now;
}

/// Records the end of a session in its run and in that of its feature, in one second.
pub(crate) async fn end(
    world: &mut World,
    run: &str,
    input: &SessionInput,
    report: &SessionReport,
) {
    let own = run_of(run, input);
    let now = world.now;
    world.completed::<RunSession>(&own, input, report).await;
    world.now = now;
    world.record(&own, EventKind::RunCompleted { output: Payload::of(report) }).await;
    world.now = now;
    let outcome = Outcome::Completed(Payload::of(report));
    let body = MessageBody::ChildEnded { run: RunId::new(own).unwrap(), outcome };
    let message = Some(Message { seq: 1, at: now, body });
    world.record(run, EventKind::MessageReceived { command: 1, message }).await;
}

pub(crate) fn report(ending: SessionEnding, notes: &str) -> SessionReport {
    SessionReport {
        notes: notes.into(),
        duration_ms: 65_000,
        output_digest: "d".into(),
        output_tail: "the end of its output\n".into(),
        log: "/log".into(),
        ..SessionReport::without_agent(ending)
    }
}

pub(crate) fn evidence(name: &str, exit_code: i32, output: &str) -> Evidence {
    Evidence {
        reused: false,
        held_out: None,
        put_back: Vec::new(),
        is_setup: false,
        unmet_need: None,
        name: name.into(),
        command: format!("./{name}.sh"),
        commit: "c".into(),
        exit_code: Some(exit_code),
        ended_by: None,
        duration_ms: 10,
        output_digest: "d".into(),
        output_tail: output.into(),
        log: "/log".into(),
    }
}

pub(crate) async fn checks(world: &mut World, commit: &str, evidence: &[Evidence]) {
    let input = ChecksInput {
        project: project(),
        feature: id("login"),
        tree: StepTree::Feature,
        commit: commit.into(),
        checks: Vec::new(),
        is_baseline: false,
        repeat: false,
        same_as: None,
        protected: Vec::new(),
        pass_env: Vec::new(),
        confinement: longhaul_workflows::settings::Confinement::default(),
    };
    world.completed::<RunChecks>(RUN, &input, &ChecksReport { evidence: evidence.to_vec() }).await;
}

pub(crate) async fn seal(world: &mut World, commit: &str, files: &[&str], tampered: &[Tampering]) {
    let sealed = Sealed {
        left_out: Vec::new(),
        outside: Vec::new(),
        commit: commit.into(),
        files: files.iter().map(ToString::to_string).collect(),
        tampered: tampered.to_vec(),
        rescued: (!tampered.is_empty()).then(|| "refs/longhaul/rescue/shop/login/1/9.0".into()),
        notes: String::new(),
        unread_notes: None,
    };
    world.completed::<Seal>(RUN, &seal_input(), &sealed).await;
}

fn seal_input() -> SealInput {
    SealInput {
        project: project(),
        target: "main".into(),
        feature: id("login"),
        protected: Vec::new(),
        list_file: "feature_list.json".into(),
        step: SealStep::Found,
    }
}

pub(crate) async fn enter(world: &mut World, stage: Stage, sessions: u32) {
    let progress = FeatureProgress { stage: Some(stage), sessions, ..FeatureProgress::default() };
    world.publish(RUN, FeatureProgress::KEY, Payload::of(&progress)).await;
}

pub(crate) fn at_session(number: u32, reason: SessionReason) -> Stage {
    Stage::Session { number, reason, after_tampering: false, after_no_change: false }
}
