//! An agent that is out of order, under a clock that the test moves.

use std::sync::Arc;

use longhaul_engine::{
    Activity, Clock, Engine, EventKind, MessageBody, NewRun, Options, Parts, Payload, RequestedBy,
    RunReader, Status, verify,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::history::workflows;
use longhaul_tests::script::{id, sync, until};
use longhaul_workflows::contracts::{ProjectRef, RunSession};
use longhaul_workflows::feature::FeatureOutcome;
use longhaul_workflows::project::{
    FeatureView, HeldRuns, Phase, ProjectInput, ProjectSummary, ProjectWorkflow, SessionsPaused,
    WaitReason, signal,
};

use super::world::{Habit, Plan, World};

const PROJECT: &str = "shop";

const fn plan(id: &'static str, habit: Habit) -> Plan {
    Plan { id, needs: &[], habit }
}

const DOWN: [Plan; 3] =
    [plan("basket", Habit::Down), plan("login", Habit::Down), plan("search", Habit::Down)];

/// A project, its log and its engine.
struct Shop {
    world: World,
    memory: MemoryStore,
    engine: Engine,
}

impl Shop {
    async fn open(plans: &'static [Plan]) -> Self {
        Self::open_in(World::new(plans)).await
    }

    async fn open_in(world: World) -> Self {
        let memory = MemoryStore::new();
        let engine = engine(&world, &memory).await;
        let project = ProjectRef { id: PROJECT.into(), root: "/home/ann/shop".into() };
        let input = Payload::of(&ProjectInput { project, memory: None });
        let new = NewRun {
            run: id(PROJECT),
            workflow: ProjectWorkflow::NAME.into(),
            input,
            labels: [].into(),
        };
        engine.start(new).await.unwrap();
        engine.signal(&id(PROJECT), signal::SYNC, sync("1")).await.unwrap();
        Self { world, memory, engine }
    }

    /// Ends the process that runs it, and begins another.
    async fn reopen(&mut self) {
        self.engine.stop().await;
        self.engine = engine(&self.world, &self.memory).await;
    }

    async fn view(&self) -> Option<ProjectSummary> {
        let published = self.memory.published(&id(PROJECT)).await.unwrap();
        published.get(ProjectSummary::KEY).map(|view| view.read().unwrap())
    }

    async fn paused(&self) -> Option<SessionsPaused> {
        self.view().await?.paused
    }

    /// Waits until sessions are paused for so many seconds, after so many sessions. What ended
    /// since took a few of them.
    async fn waits(&self, seconds: i64, sessions: usize) -> SessionsPaused {
        let is_due = |paused: &SessionsPaused| {
            let left =
                paused.until.map_or(0, |until| (until - self.world.clock.now()).num_seconds());
            (seconds - 15..=seconds).contains(&left)
        };
        until(&format!("sessions are paused for {seconds} s"), async || {
            self.paused().await.as_ref().is_some_and(is_due) && self.is_waiting().await
        })
        .await;
        assert_eq!(self.sessions("").await, sessions, "sessions so far");
        self.paused().await.unwrap()
    }

    /// Lets the time of the next probe come, and no more.
    async fn let_probe(&self) {
        let until =
            self.paused().await.and_then(|paused| paused.until).expect("sessions are paused");
        let left = (until - self.world.clock.now()).num_milliseconds();
        self.world.clock.advance((left.max(0) + 999) / 1000);
    }

    /// Waits until all features that are down wait for their agent; the sessions that it took.
    async fn all_wait(&self, features: usize) -> usize {
        until("all features wait", async || {
            let published = self.memory.published(&id(PROJECT)).await.unwrap();
            let views = published.iter().filter(|(key, _)| key.starts_with(FeatureView::PREFIX));
            let waits = |view: FeatureView| matches!(view.waits, Some(WaitReason::Agent { .. }));
            views.filter(|(_, view)| waits(view.read().unwrap())).count() == features
        })
        .await;
        self.sessions("").await
    }

    async fn is_waiting(&self) -> bool {
        matches!(
            self.memory.summary(&id(PROJECT)).await.unwrap().unwrap().status,
            Status::Waiting { until: Some(_), .. }
        )
    }

    async fn histories(&self, run: &str) -> Vec<EventKind> {
        let mut kinds = Vec::new();
        for (run, _) in self.memory.runs(&format!("{PROJECT}/{run}")).await.unwrap() {
            kinds.extend(
                self.memory.read(&run, 0).await.unwrap().into_iter().map(|event| event.kind),
            );
        }
        kinds
    }

    /// Sessions of the runs whose ids begin so.
    async fn sessions(&self, run: &str) -> usize {
        let is_session = |kind: &&EventKind| matches!(kind, EventKind::ActivityCompleted { name, .. } if name == RunSession::NAME);
        self.histories(run).await.iter().filter(is_session).count()
    }

    async fn is_idle(&self) -> bool {
        self.view().await.is_some_and(|view| view.phase == Phase::Idle)
    }

    /// All features pass, no failed session counted, and every decision is the same again.
    async fn passes(&self, features: usize) {
        until("the project is done", async || self.is_idle().await).await;
        let outcomes = self.histories("").await;
        let outcomes = outcomes.iter().filter_map(|kind| match kind {
            // Sessions are over, too.
            EventKind::RunCompleted { output } => output.read::<FeatureOutcome>().ok(),
            _ => None,
        });
        let passed = outcomes.filter(|outcome| match outcome {
            FeatureOutcome::Passed { progress, .. } => progress.failed_sessions == 0,
            FeatureOutcome::Blocked { .. } => false,
        });
        assert_eq!(passed.count(), features);
        for (run, _) in self.memory.runs(PROJECT).await.unwrap() {
            let events = self.memory.read(&run, 0).await.unwrap();
            assert_eq!(verify(&workflows(), &run, &events).unwrap(), None, "{run}");
        }
    }
}

async fn engine(world: &World, memory: &MemoryStore) -> Engine {
    let parts = Parts {
        store: Arc::new(memory.clone()),
        workflows: workflows(),
        handlers: world.handlers(),
        clock: Arc::new(world.clock.clone()),
        options: Options::default(),
    };
    Engine::open(parts).await.unwrap()
}

#[tokio::test]
async fn an_outage_costs_a_session_for_each_probe_and_no_feature() {
    let mut shop = Shop::open(&DOWN).await;
    let mut sessions = shop.all_wait(3).await;
    // Each had one, and may have been granted another before three had failed.
    assert!((3..=5).contains(&sessions), "{sessions}");
    let paused = shop.waits(30, sessions).await;
    assert!(
        paused.reason.contains("sessions of `agent --print` failed in a row"),
        "{}",
        paused.reason
    );
    for next in [60, 120, 240, 480, 900, 900] {
        shop.let_probe().await;
        sessions += 1;
        shop.waits(next, sessions).await;
    }
    shop.reopen().await;
    shop.waits(900, sessions).await;
    shop.world.let_go.send_replace(true);
    shop.let_probe().await;
    shop.passes(3).await;
    assert_eq!(shop.sessions("").await, sessions + 3);
    shop.engine.stop().await;
}

#[tokio::test]
async fn the_only_feature_of_a_project_is_not_blamed_for_an_outage() {
    let shop = Shop::open(&DOWN[..1]).await;
    shop.waits(30, 3).await;
    shop.let_probe().await;
    shop.waits(60, 4).await;
    shop.world.let_go.send_replace(true);
    shop.let_probe().await;
    shop.passes(1).await;
    shop.engine.stop().await;
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_pauses_at_once() {
    static MISSING: [Plan; 1] = [plan("login", Habit::Missing)];
    let shop = Shop::open(&MISSING).await;
    let paused = shop.waits(30, 1).await;
    assert!(paused.reason.contains("cannot be started: `agent` is not there"), "{}", paused.reason);
    shop.world.let_go.send_replace(true);
    // A person who wants to go on does not wait for the time.
    shop.engine.signal(&id(PROJECT), signal::SYNC, sync("2")).await.unwrap();
    shop.passes(1).await;
    shop.engine.stop().await;
}

#[tokio::test]
async fn a_feature_that_fails_while_others_get_through_is_blocked() {
    static PLANS: [Plan; 2] = [plan("basket", Habit::NeverPasses), plan("login", Habit::Plain)];
    let shop = Shop::open(&PLANS).await;
    until("the project is done", async || shop.is_idle().await).await;
    let view = shop.view().await.unwrap();
    assert_eq!((view.passed, view.blocked), (1, 1));
    shop.engine.stop().await;
}

#[tokio::test]
async fn a_feature_that_fails_alone_does_not_stop_the_others() {
    static PLANS: [Plan; 3] =
        [plan("basket", Habit::Down), plan("login", Habit::Plain), plan("search", Habit::Plain)];
    let mut world = World::new(&PLANS);
    world.parallel = 1;
    let shop = Shop::open_in(world).await;
    until("the project is done", async || {
        if shop.paused().await.is_some_and(|paused| paused.until.is_some()) {
            shop.let_probe().await;
        }
        shop.is_idle().await
    })
    .await;
    let view = shop.view().await.unwrap();
    assert_eq!((view.passed, view.blocked), (2, 1));
    // Three, one after the outage, and a probe if no other feature is ready yet.
    let sessions = shop.sessions("basket").await;
    assert!((4..=5).contains(&sessions), "{sessions}");
    shop.engine.stop().await;
}

#[tokio::test]
async fn a_feature_that_is_paused_when_it_is_to_probe_leaves_that_to_another() {
    let shop = Shop::open(&DOWN[..2]).await;
    let sessions = shop.all_wait(2).await;
    let deliver = async |run: &str, body| {
        shop.engine.deliver(&id(run), body).await.unwrap();
    };
    let held = async |runs: &[&str]| {
        let runs = runs.iter().map(|run| id(run)).collect();
        shop.engine
            .signal(&id(PROJECT), signal::HELD, Payload::of(&HeldRuns { runs }))
            .await
            .unwrap();
    };
    let both = ["shop/basket/1", "shop/login/1"];
    for run in both {
        deliver(run, MessageBody::Pause(RequestedBy::default())).await;
    }
    shop.let_probe().await;
    let probes = async || {
        shop.paused().await.filter(|paused| paused.until.is_none()).map(|paused| paused.reason)
    };
    until("one is to probe", async || probes().await.is_some()).await;
    let other = if probes().await.unwrap().contains("basket") { both[1] } else { both[0] };
    assert_eq!(shop.sessions("").await, sessions, "it is paused");
    deliver(other, MessageBody::Resume(RequestedBy::default())).await;
    held(&both.into_iter().filter(|run| *run != other).collect::<Vec<_>>()).await;
    until("the other one probes", async || shop.sessions("").await == sessions + 1).await;
    shop.engine.stop().await;
}

#[tokio::test]
async fn a_paused_feature_does_not_probe() {
    let shop = Shop::open(&DOWN[..2]).await;
    let mut sessions = shop.all_wait(2).await;
    let of_basket = shop.sessions("basket").await;
    let runs = HeldRuns { runs: [id("shop/basket/1")].into() };
    shop.engine
        .deliver(&id("shop/basket/1"), MessageBody::Pause(RequestedBy::default()))
        .await
        .unwrap();
    shop.engine.signal(&id(PROJECT), signal::HELD, Payload::of(&runs)).await.unwrap();
    // The feature that waits longer would be the first to probe, so the second probe is the paused one's at
    // the latest.
    for next in [60, 120] {
        shop.let_probe().await;
        sessions += 1;
        shop.waits(next, sessions).await;
    }
    assert_eq!(shop.sessions("basket").await, of_basket);
    shop.engine.stop().await;
}

#[tokio::test]
async fn what_waits_in_an_outage_can_be_paused_resumed_and_cancelled() {
    let shop = Shop::open(&DOWN).await;
    let sessions = shop.all_wait(3).await;
    shop.waits(30, sessions).await;
    let request = || RequestedBy { by: "ann".into(), why: "lunch".into() };
    let is = async |run: &str, wanted: fn(&Status) -> bool| {
        wanted(&shop.memory.summary(&id(run)).await.unwrap().unwrap().status)
    };
    shop.engine.deliver(&id(PROJECT), MessageBody::Pause(request())).await.unwrap();
    until("the project is paused", async || {
        is(PROJECT, |status| matches!(status, Status::Paused(_))).await
    })
    .await;
    shop.world.clock.advance(60);
    shop.engine.deliver(&id("shop/basket/1"), MessageBody::Cancel(request())).await.unwrap();
    until("the feature is over", async || is("shop/basket/1", Status::is_terminal).await).await;
    assert_eq!(shop.sessions("").await, sessions, "nothing begins while the project is paused");
    shop.engine.deliver(&id(PROJECT), MessageBody::Resume(request())).await.unwrap();
    shop.waits(60, sessions + 1).await;
    let terminate = MessageBody::Terminate(request());
    shop.engine.deliver(&id("shop/login/1"), terminate).await.unwrap();
    until("the feature is over", async || is("shop/login/1", Status::is_terminal).await).await;
    shop.world.let_go.send_replace(true);
    shop.let_probe().await;
    until("the project is done", async || shop.is_idle().await).await;
    let view = shop.view().await.unwrap();
    assert_eq!((view.passed, view.blocked), (1, 2));
    shop.engine.stop().await;
}
