//! Texts of the read views for hand-made runs in every state.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use longhaul_engine::event::Cause;
use longhaul_engine::store::{Commit, Creation, Delivery};
use longhaul_engine::{
    CommandDigest, Event, EventKind, EventLog, Failure, MessageBody, Payload, RequestedBy, RunId,
    RunReader, Slot, Stop, Summary,
};
use longhaul_storage::MemoryStore;
use longhaul_workflows::backlog::{Feature, FeatureId};
use longhaul_workflows::contracts::{
    Feedback, ProjectRef, SealInput, SealStep, SessionInput, SessionReason,
};
use longhaul_workflows::feature::{FeatureProgress, Stage};
use longhaul_workflows::project::ProjectSummary;
use longhaul_workflows::projection::State;
use longhaul_workflows::resources::Resources;
use longhaul_workflows::session::{SessionStart, SessionWorkflow};
use longhaul_workflows::settings::AgentSettings;
use serde_json::json;

use crate::owner::Owner;
use crate::run_kind::RunKind;

use super::{ListDocument, ListRuns, Name, View};

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::seconds(seconds)
}

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn request(why: &str) -> RequestedBy {
    RequestedBy { by: "ada".into(), why: why.into() }
}

/// A log that a test writes.
#[derive(Default)]
struct Log {
    store: MemoryStore,
    stuck: BTreeMap<RunId, Stop>,
}

impl Log {
    async fn begin(&self, run: &str, workflow: &str, parent: Option<&str>) {
        self.begin_with(run, workflow, parent, Payload::null()).await;
    }

    /// A session of a feature run: it begins in both histories.
    async fn session(&self, feature_run: &str) {
        let run = format!("{feature_run}/1");
        let input = Payload::of(&session_start(id(&run)));
        let workflow = SessionWorkflow::NAME;
        let begun = EventKind::ChildStarted {
            command: 1,
            run: id(&run),
            workflow: workflow.into(),
            input: input.clone(),
        };
        self.add(feature_run, vec![begun]).await;
        self.begin_with(&run, workflow, Some(feature_run), input).await;
    }

    async fn begin_with(&self, run: &str, workflow: &str, parent: Option<&str>, input: Payload) {
        let labels = BTreeMap::from([("team".to_owned(), run[..1].to_owned())]);
        let kind = EventKind::RunStarted {
            workflow: workflow.into(),
            input,
            parent: parent.map(id),
            labels,
            cause: Cause::Started,
        };
        let event = Event { position: 0, at: at(0), kind };
        let summary = Summary::begin(&event).unwrap();
        let mut commit = Commit::of(id(run), Vec::new());
        commit.creations.push(Creation { run: id(run), event, summary });
        self.store.commit(commit).await.unwrap();
    }

    async fn add(&self, run: &str, kinds: Vec<EventKind>) {
        let run = id(run);
        let mut summary = self.store.summary(&run).await.unwrap().unwrap();
        let end = self.store.read(&run, 0).await.unwrap().len() as u64;
        let published = kinds.iter().filter_map(|kind| match kind {
            EventKind::StatusPublished { key, value, .. } => {
                Some((key.clone(), Some(value.clone())))
            }
            _ => None,
        });
        let published = published.collect();
        let seconds = i64::try_from(end).unwrap();
        let events = kinds.into_iter().zip(0..);
        let events: Vec<Event> = events
            .map(|(kind, nth)| Event {
                position: end + nth,
                at: at(seconds + i64::try_from(nth).unwrap()),
                kind,
            })
            .collect();
        for event in &events {
            summary.apply(event);
        }
        let commit = Commit { summary: Some(summary), published, ..Commit::of(run, events) };
        self.store.commit(commit).await.unwrap();
    }

    fn view(&self) -> View<'_> {
        View {
            store: &self.store,
            directory: PathBuf::from("/data"),
            owner: Owner {
                stuck: self.stuck.clone(),
                is_running: true,
                served: vec![RunId::new("p").unwrap()],
                ..Owner::default()
            },
        }
    }

    async fn list(&self, query: ListRuns) -> ListDocument {
        self.view().list(&query).await.unwrap()
    }

    /// The reasons why a run makes no progress: kind and text.
    async fn why(&self, run: &str) -> Vec<String> {
        let name = Name { text: run.into(), project: None, whole: false };
        let why = self.view().why(name, None).await.unwrap();
        let reasons = why.reasons.iter();
        reasons
            .map(|reason| format!("{}: {}", json!(reason.kind).as_str().unwrap(), reason.text))
            .collect()
    }

    async fn check_why(&self, run: &str, expected: &[&str]) {
        assert_eq!(self.why(run).await, expected, "{run}");
    }
}

fn session_start(id: RunId) -> SessionStart {
    let project: ProjectRef = serde_json::from_value(json!({"id": "p", "root": "/p"})).unwrap();
    let feature = FeatureId::new("f").unwrap();
    let target = "main".to_owned();
    SessionStart {
        id,
        session: SessionInput {
            project: project.clone(),
            target: target.clone(),
            feature: Feature::new(feature.clone(), "F"),
            number: 1,
            reason: SessionReason::Start,
            gates: Vec::new(),
            feedback: Feedback::default(),
            agent: AgentSettings::default(),
            available: None,
            held_out: None,
            redo: false,
        },
        seal: SealInput {
            project,
            target,
            feature,
            protected: Vec::new(),
            list_file: String::new(),
            step: SealStep::Found,
        },
        handoff: None,
        task: None,
        available: Resources::default(),
    }
}

fn session(number: u32) -> Stage {
    let reason = SessionReason::Start;
    Stage::Session { number, reason, after_tampering: false, after_no_change: false }
}

/// Publishes a stage.
fn enter(stage: Stage) -> EventKind {
    let progress = FeatureProgress { stage: Some(stage), ..FeatureProgress::default() };
    EventKind::StatusPublished {
        command: 0,
        key: FeatureProgress::KEY.into(),
        value: Payload::of(&progress),
    }
}

fn failed(failure: Failure, retry_at: Option<DateTime<Utc>>) -> EventKind {
    let slot = Slot::only(1);
    EventKind::ActivityFailed {
        slot,
        name: "run_session".into(),
        input: Payload::null(),
        attempt: 2,
        failure,
        retry_at,
    }
}

async fn with(kinds: Vec<EventKind>) -> Log {
    let log = Log::default();
    log.begin("p", "project", None).await;
    log.begin("p/f/1", "feature", Some("p")).await;
    log.add("p/f/1", kinds).await;
    log
}

#[tokio::test]
async fn retries_limits_and_timers_say_when_they_end() {
    let log = with(vec![failed(Failure::retryable("no network."), Some(at(90)))]).await;
    let text = "retry: Attempt 2 of run session failed: no network. \
                The next one is due at 2024-10-04 00:01:30 UTC.";
    log.check_why("p/f/1", &[text]).await;
    let log =
        with(vec![failed(Failure::rate_limited(at(3600), "5-hour limit"), Some(at(3600)))]).await;
    log.check_why(
        "p/f/1",
        &["rate_limited: run session is limited until 2024-10-04 01:00:00 UTC: 5-hour limit"],
    )
    .await;
    let log = with(vec![EventKind::TimerStarted { command: 1, fire_at: at(60) }]).await;
    log.check_why("p/f/1", &["timer: It waits until 2024-10-04 00:01:00 UTC."]).await;
    let log =
        with(vec![EventKind::RunFailed { failure: Failure::terminal("no such agent") }]).await;
    log.check_why("p/f/1", &["failed: It failed: no such agent"]).await;
}

#[tokio::test]
async fn people_are_named_with_their_reasons() {
    let log = with(vec![EventKind::RunPaused(request("lunch"))]).await;
    log.check_why("p/f/1", &["paused: It was paused by ada: lunch."]).await;

    let log = with(vec![enter(session(1))]).await;
    let delivery = Delivery { to: id("p/f/1"), at: at(9), body: MessageBody::Pause(request("")) };
    log.store.deliver(delivery).await.unwrap();
    let reasons = log.why("p/f/1").await;
    assert_eq!(reasons[0], "pending: Pending: pause by ada.");

    let delivered = EventKind::CancelDelivered {
        command: 1,
        digest: CommandDigest([0; 32]),
        request: request("too dear"),
    };
    let log = with(vec![delivered, EventKind::RunCancelled]).await;
    log.check_why("p/f/1", &["cancelled: It was cancelled by ada: too dear."]).await;

    let slot = Slot::only(1);
    let effect = longhaul_engine::UnknownEffect {
        activity: "land".into(),
        attempt: 1,
        reason: "no answer".into(),
    };
    let log = with(vec![EventKind::RunParked { slot, effect }]).await;
    log.check_why(
        "p/f/1",
        &["parked: The run is parked: \
           it is unknown whether `land` (attempt 1) happened: no answer."],
    )
    .await;
}

#[tokio::test]
async fn places_and_turns_name_those_who_have_them() {
    let log = with(vec![enter(session(1))]).await;
    log.session("p/f/1").await;
    log.begin("p/g/1", "feature", Some("p")).await;
    log.session("p/g/1").await;
    let slot = Slot::only(1);
    let name = "run_session".into();
    log.add(
        "p/g/1/1",
        vec![EventKind::ActivityStarted { slot, name, input: Payload::null(), attempt: 1 }],
    )
    .await;
    log.check_why("p/f/1", &["pool: It waits for a free place among the agents: 1 at work."]).await;

    let waits = EventKind::MessageAwaited { command: 1, deadline: None };
    let log = with(vec![enter(Stage::TurnToMerge), waits]).await;
    let summary = json!({
        "root": "/p", "target": "main", "list_file": "", "phase": "working", "halted": null,
        "synced": "", "problem": null, "waits_on_next": null, "merging": ["g"],
        "merge_queue": ["h", "f"], "parallel": 3, "features": 3, "passed": 0, "in_progress": 3,
        "blocked": 0,
    });
    let key = ProjectSummary::KEY.into();
    let value = Payload::of(&summary);
    log.add("p", vec![EventKind::StatusPublished { command: 1, key, value }]).await;
    log.check_why("p/f/1", &["turn: It waits for its turn to merge: g merges; before it: h."])
        .await;
}

#[tokio::test]
async fn what_is_stuck_says_so_first() {
    let mut log = with(vec![enter(Stage::Gates)]).await;
    log.stuck.insert(id("p/f/1"), Stop::Failed(Failure::terminal("the disk is full")));
    log.check_why(
        "p/f/1",
        &["stuck: It cannot go on in the process that runs it: the disk is full"],
    )
    .await;
}

#[tokio::test]
async fn only_a_recorded_outcome_is_shown_as_passed() {
    let completed = |output: Payload| EventKind::RunCompleted { output };
    let unreadable = Payload::of(&json!({"outcome": "of another version"}));
    let log = with(Vec::new()).await;
    log.session("p/f/1").await;
    log.add("p/f/1/1", vec![completed(unreadable.clone())]).await;
    log.add("p/f/1", vec![completed(unreadable)]).await;
    log.begin("p/g/1", "feature", Some("p")).await;
    log.add("p/g/1", vec![completed(Payload::null())]).await;
    let page = log.list(ListRuns { limit: 9, ..ListRuns::default() }).await;
    for run in ["p/f/1", "p/f/1/1", "p/g/1"] {
        let line = page.runs.iter().find(|line| line.header.id() == run).unwrap();
        assert_eq!(line.header.status, State::Failed, "{run}");
        let reason = line.reason.clone().unwrap();
        assert!(reason.starts_with("its outcome cannot be read: "), "{run}: {reason}");
        assert_eq!(log.why(run).await[0], format!("failed: It failed: {reason}"));
    }
}

#[tokio::test]
async fn pages_of_a_list_are_stable() {
    let log = Log::default();
    for number in 0..25 {
        log.begin(&format!("p/f{number:02}/1"), "feature", Some("p")).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let query = ListRuns { limit: 10, after: after.clone(), ..ListRuns::default() };
        let page = log.list(query).await;
        seen.extend(page.runs.iter().map(|line| line.header.id().to_owned()));
        // A run that starts between two pages does not move later entries.
        log.begin(&format!("a/new/{}", seen.len()), "feature", None).await;
        match page.next {
            Some(next) => after = super::list::Cursor::read(&next),
            None => break,
        }
    }
    seen.retain(|run| run.starts_with("p/"));
    let expected: Vec<String> = (0..25).map(|number| format!("p/f{number:02}/1")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_list_is_filtered() {
    let log = with(vec![EventKind::RunPaused(request("lunch"))]).await;
    log.begin("q", "project", None).await;
    let runs = async |query: ListRuns| {
        let page = log.list(ListRuns { limit: 9, ..query }).await;
        page.runs.iter().map(|line| line.header.id().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let all = ListRuns::default();
    assert_eq!(runs(all.clone()).await, "p p/f/1 q");
    assert_eq!(runs(ListRuns { project: Some(id("p")), ..all.clone() }).await, "p p/f/1");
    assert_eq!(runs(ListRuns { status: vec![State::Paused], ..all.clone() }).await, "p/f/1");
    assert_eq!(runs(ListRuns { kind: Some(RunKind::Project), ..all.clone() }).await, "p q");
    assert_eq!(runs(ListRuns { feature: Some("f".into()), ..all.clone() }).await, "p/f/1");
    assert_eq!(
        runs(ListRuns { labels: vec![("team".into(), "q".into())], ..all.clone() }).await,
        "q"
    );
    assert_eq!(runs(ListRuns { since: Some(at(1)), ..all.clone() }).await, "");
    assert_eq!(runs(ListRuns { until: Some(at(1)), ..all }).await, "p p/f/1 q");
}
