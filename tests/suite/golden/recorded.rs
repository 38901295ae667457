//! The stories that were recorded, and recording them anew.

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_engine::{
    Activity, Engine, Event, EventKind, MessageBody, NewRun, Options, Parts, Payload, RequestedBy,
    RunReader,
};
use longhaul_storage::{MemoryStore, history_file};
use longhaul_tests::history::workflows;
use longhaul_tests::script::{id, sync, until};
use longhaul_workflows::contracts::{ProjectRef, RunSession};
use longhaul_workflows::feature::Note;
use longhaul_workflows::project::{Phase, ProjectInput, ProjectSummary, ProjectWorkflow, signal};

use super::batch;
use super::world::{Habit, Plan, World};

const PROJECT: &str = "shop";
const LOGIN: &str = "shop/login/1";
/// Its first session.
const SESSION: &str = "shop/login/1/1";

/// Nearly as many messages as let a project go on as new.
const MANY: u32 = 1970;

/// What happens to a project besides what its features do.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    /// The run of the feature is cancelled in its session.
    Cancelled,
    /// A person sends a note in the last session that it may have.
    Told,
    /// An hour passes.
    AnHour,
    /// It is none of a project, but of a batch of some.
    Batch,
    /// So many messages come while a feature is worked on that the project goes on as new.
    ManyMessages,
}

/// A history to record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Story {
    /// The name of its file, without the ending.
    pub(super) name: &'static str,
    plans: &'static [Plan],
    then: Then,
    /// Whose history it is.
    run: &'static str,
    /// What it must tell: texts of its file, in this order.
    pub(super) tells: &'static [&'static str],
}

const fn plan(id: &'static str, needs: &'static [&'static str], habit: Habit) -> Plan {
    Plan { id, needs, habit }
}

const fn login(
    name: &'static str,
    plans: &'static [Plan; 1],
    then: Then,
    tells: &'static [&'static str],
) -> Story {
    Story { name, plans, then, run: LOGIN, tells }
}

/// All of them.
pub(super) const STORIES: [Story; 13] = [
    login(
        "feature-passes-at-once",
        &[plan("login", &[], Habit::Plain)],
        Then::Nothing,
        &[r#"{"outcome":"passed""#],
    ),
    login(
        "feature-gate-repaired",
        &[plan("login", &[], Habit::FailsGate)],
        Then::Nothing,
        &[
            r#""exit_code":1"#,
            r#""number":2,"reason":"gates_failed","after_"#,
            r#"{"outcome":"passed""#,
        ],
    ),
    login(
        "feature-context-fills",
        &[plan("login", &[], Habit::Fills)],
        Then::Nothing,
        &[
            "context_full",
            r#""number":2,"reason":"continue","after_"#,
            "the printer is not",
            r#"{"outcome":"passed""#,
        ],
    ),
    login(
        "feature-tampers",
        &[plan("login", &[], Habit::Tampers)],
        Then::Nothing,
        &[
            "passes was set to true",
            r#""reason":"gates_failed","after_tampering":true"#,
            r#"{"outcome":"passed""#,
        ],
    ),
    login(
        "feature-merge-conflict",
        &[plan("login", &[], Habit::Conflicts)],
        Then::Nothing,
        &[
            r#"{"result":"conflict""#,
            "merge_lease_released",
            r#""number":2,"reason":"conflict","after_"#,
            r#"{"outcome":"passed""#,
        ],
    ),
    login(
        "feature-merged-setup",
        &[plan("login", &[], Habit::NeedsMore)],
        Then::Nothing,
        &[
            r#""name":"merge_candidate""#,
            "the printer's driver",
            r#""number":2,"reason":"gates_failed","after_"#,
            r#"{"outcome":"passed""#,
        ],
    ),
    login(
        "feature-blocked",
        &[plan("login", &[], Habit::NeverPasses)],
        Then::Nothing,
        &[
            r#""number":2,"reason":"retry","after_"#,
            r#""number":3,"reason":"gates_failed","after_"#,
            r#""outcome":"blocked","block":{"reason":{"kind":"attempts","of":"failed_gates","count":2}"#,
        ],
    ),
    login(
        "feature-told-at-last",
        &[plan("login", &[], Habit::Persuaded)],
        Then::Told,
        &[
            r#""number":2,"reason":"gates_failed","after_"#,
            r#""giving_up""#,
            "mind the brackets",
            r#""number":3,"reason""#,
            r#"{"outcome":"passed""#,
        ],
    ),
    Story {
        name: "session-rate-limited",
        plans: &[plan("login", &[], Habit::Limited)],
        then: Then::AnHour,
        run: SESSION,
        tells: &[r#""kind":{"rate_limited""#, r#""attempt":2"#, r#""kind":"RunCompleted""#],
    },
    login(
        "feature-cancelled",
        &[plan("login", &[], Habit::Lasts)],
        Then::Cancelled,
        &[r#""kind":"CancelDelivered""#, r#""by":"ann""#, r#""kind":"RunCancelled""#],
    ),
    Story {
        name: "batch-submitted-twice",
        plans: &[],
        then: Then::Batch,
        run: batch::RUN,
        tells: &[
            "team=web",
            "blocked",
            r#"{"state":"passed"}"#,
            r#""name":"wiki""#,
            r#"{"state":"suspended"}"#,
        ],
    },
    Story {
        name: "project-three-features",
        plans: &[
            plan("catalogue", &[], Habit::Plain),
            plan("login", &[], Habit::FailsGate),
            plan("checkout", &["catalogue", "login"], Habit::Plain),
        ],
        then: Then::Nothing,
        run: PROJECT,
        tells: &[
            "shop/catalogue/1",
            LOGIN,
            r#""regression":[{"feature":"catalogue""#,
            "shop/checkout/1",
            r#""phase":"idle""#,
            r#""passed":3"#,
        ],
    },
    Story {
        name: "project-continued-as-new",
        plans: &[plan("catalogue", &[], Habit::Plain), plan("login", &[], Habit::Lasts)],
        then: Then::ManyMessages,
        run: PROJECT,
        tells: &[
            r#""cause":"continued_as_new""#,
            r#""name":"merge_request""#,
            r#""phase":"idle""#,
            r#""passed":2"#,
        ],
    },
];

/// The file of a story.
pub(super) fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/histories"))
        .join(name)
        .with_extension("jsonl")
}

/// Records all stories anew, in the place of what is there.
pub(super) fn record() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for story in STORIES {
        let run = id(story.run);
        let history = runtime.block_on(play(&story));
        let path = path(story.name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, history_file::write(&run, &history).unwrap()).unwrap();
    }
}

/// Lets the workflows of today live through a story.
async fn play(story: &Story) -> Vec<Event> {
    let (world, memory) = (World::new(story.plans), MemoryStore::new());
    let parts = Parts {
        store: Arc::new(memory.clone()),
        workflows: workflows(),
        handlers: world.handlers(),
        clock: Arc::new(world.clock.clone()),
        options: Options::default(),
    };
    let engine = Engine::open(parts).await.unwrap();
    if matches!(story.then, Then::Batch) {
        batch::happen(&engine).await;
    } else {
        project(story, &engine, &world, &memory).await;
    }
    engine.stop().await;
    memory.read(&id(story.run), 0).await.unwrap()
}

async fn project(story: &Story, engine: &Engine, world: &World, memory: &MemoryStore) {
    let project = ProjectRef { id: PROJECT.into(), root: "/home/ann/shop".into() };
    let input = Payload::of(&ProjectInput { project, memory: None });
    let labels = [("project".to_owned(), PROJECT.to_owned())].into();
    engine
        .start(NewRun { run: id(PROJECT), workflow: ProjectWorkflow::NAME.into(), input, labels })
        .await
        .unwrap();
    engine.signal(&id(PROJECT), signal::SYNC, sync("1")).await.unwrap();
    happen(story.then, engine, world).await;
    until(story.name, async || is_at_rest(memory).await).await;
}

async fn happen(then: Then, engine: &Engine, world: &World) {
    match then {
        Then::Nothing | Then::Batch => {}
        Then::Cancelled => {
            until("the session runs", async || is_in_session(engine).await).await;
            let request = RequestedBy { by: "ann".into(), why: "we buy it instead".into() };
            engine.deliver(&id(LOGIN), MessageBody::Cancel(request)).await.unwrap();
        }
        Then::Told => {
            let second = |kind: &EventKind| matches!(kind, EventKind::StatusPublished { value, .. } if value.preview(200).contains("\"number\":2"));
            until("the second session runs", async || holds(engine, LOGIN, second).await).await;
            let note = Payload::of(&Note("mind the brackets".into()));
            let request = RequestedBy { by: "ann".into(), why: String::new() };
            let body = MessageBody::signal_by(Note::SIGNAL, note, request);
            engine.deliver(&id(LOGIN), body).await.unwrap();
            world.let_go.send_replace(true);
        }
        Then::AnHour => {
            let limited = |kind: &EventKind| {
                matches!(kind, EventKind::ActivityFailed { retry_at: Some(_), .. })
            };
            until("the limit is reached", async || holds(engine, SESSION, limited).await).await;
            world.clock.advance(3600);
        }
        Then::ManyMessages => {
            until("the session runs", async || is_in_session(engine).await).await;
            until("the other feature has passed", async || {
                view(engine.store().as_ref()).await.passed == 1
            })
            .await;
            for sent in 0.. {
                // One by one towards the end, so that the new beginning comes while nothing waits
                // in the mailbox.
                if sent > MANY {
                    tokio::task::yield_now().await;
                }
                if engine.store().summary(&id(PROJECT)).await.unwrap().unwrap().origin > 0 {
                    break;
                }
                // The feature is not blocked: nothing comes of it.
                engine.signal(&id(PROJECT), signal::UNBLOCK, Payload::of("login")).await.unwrap();
            }
            world.let_go.send_replace(true);
        }
    }
}

async fn is_in_session(engine: &Engine) -> bool {
    let begun = |kind: &EventKind| matches!(kind, EventKind::ActivityStarted { name, .. } if name == RunSession::NAME);
    holds(engine, SESSION, begun).await
}

async fn holds(engine: &Engine, run: &str, what: impl Fn(&EventKind) -> bool) -> bool {
    engine.store().read(&id(run), 0).await.unwrap().iter().any(|event| what(&event.kind))
}

async fn view(store: &dyn RunReader) -> ProjectSummary {
    store.published(&id(PROJECT)).await.unwrap()[ProjectSummary::KEY].read().unwrap()
}

/// Whether nothing is left to do, and the project waits for a message.
async fn is_at_rest(memory: &MemoryStore) -> bool {
    let history = memory.read(&id(PROJECT), 0).await.unwrap();
    let waits = matches!(history.last().unwrap().kind, EventKind::MessageAwaited { .. });
    let is_synced = memory.published(&id(PROJECT)).await.unwrap().contains_key(ProjectSummary::KEY);
    waits && is_synced && {
        let view = view(memory).await;
        view.phase == Phase::Idle && view.synced == "1"
    }
}
