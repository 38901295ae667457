//! A whole project that dies at every append and at every effect ends as if nothing had happened.
//!
//! Each life has a runtime of its own, which is dropped when the store dies: what was under way
//! ends where it waits, as when a process is killed. `LONGHAUL_TEST_EVERY=1` tries every place to
//! die, `=n` each n-th.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use longhaul_activities::model::Limiter;
use longhaul_activities::{checks, git, process, project as files, session};
use longhaul_engine::{
    Engine, Handlers, NewRun, Options, Parts, Payload, RunId, RunReader, StoreError, SystemClock,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::dying::{DyingStore, Side};
use longhaul_tests::history::{Histories, workflows};
use longhaul_tests::project::{Habit, Plan, Project};
use longhaul_tests::script::id;
use longhaul_tests::wait::PATIENCE;
use longhaul_tests::witness::Witness;
use longhaul_workflows::contracts::{
    LoadBacklog, Precheck, ProjectRef, RunChecks, RunSession, RunSetup,
};
use longhaul_workflows::project::{
    Phase, ProjectInput, ProjectSummary, ProjectWorkflow, SyncRequest, signal,
};
use serde_json::Value;

/// Two features at once, one after them; a gate that fails, a full context, a list that was
/// tampered with.
const PLANS: [Plan; 3] = [
    Plan { id: "parser", needs: &[], steps: 1, habit: Habit::Repairs },
    Plan { id: "table", needs: &[], steps: 2, habit: Habit::Fills },
    Plan { id: "shell", needs: &["parser"], steps: 1, habit: Habit::Tampers },
];

/// The default selection of places to die at.
const EVERY: usize = 7;
/// How many projects run at once.
const THREADS: usize = 3;

/// Where a first life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Never,
    Append(u32, Side),
    Effect(u32, Side),
}

impl fmt::Display for Death {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => write!(formatter, "not dying"),
            Self::Append(number, side) => write!(formatter, "dying {side:?} append {number}"),
            Self::Effect(number, side) => write!(formatter, "dying {side:?} effect {number}"),
        }
    }
}

/// What must be the same, wherever the first life ended.
#[derive(Debug, PartialEq)]
struct Outcome {
    content: BTreeMap<String, String>,
    list: Value,
    essence: BTreeMap<RunId, Vec<String>>,
}

/// What a life came to.
struct Life {
    died: bool,
    appends: u32,
    effects: u32,
}

/// A project, its log, and what must not have happened in any of its lives.
struct World {
    project: Project,
    memory: MemoryStore,
    wrongs: Vec<String>,
}

impl World {
    fn new() -> Result<Self> {
        let project = Project::new(&PLANS, 0.0);
        project.set_sandbox("");
        std::fs::create_dir(project.home())?;
        Ok(Self { project, memory: MemoryStore::new(), wrongs: Vec::new() })
    }

    fn handlers(&self) -> Handlers {
        let supervisor = process::Supervisor {
            program: PathBuf::from(env!("CARGO_BIN_EXE_longhaul-under-test")),
            args: vec!["supervise-process".into()],
            grace: Duration::from_secs(10),
        };
        let home = self.project.home();
        let git = git::GitHandlers::new(&home);
        let checks = checks::ChecksHandler::new(&home, supervisor.clone(), git.clone());
        git.register(Handlers::new())
            .with::<LoadBacklog>(files::ProjectReader::new(git.clone()))
            .with::<RunSetup>(checks.clone())
            .with::<RunChecks>(checks.clone())
            .with::<Precheck>(checks)
            .with::<RunSession>(session::SessionHandler::new(
                &home,
                supervisor,
                git,
                Limiter::new(&home),
            ))
    }

    /// Lives until the project has come to rest, or the store dies.
    fn live(&mut self, death: Death, sync: &str) -> Result<Life> {
        let (at_append, at_effect) = match death {
            Death::Never => (None, None),
            Death::Append(number, side) => (Some((number, side)), None),
            Death::Effect(number, side) => (None, Some((number, side))),
        };
        let store = DyingStore::new(Arc::new(self.memory.clone()), at_append);
        let witness = Witness::new(self.memory.clone(), store.clone(), at_effect);
        let handlers = witness.of(self.handlers());
        let root = self.project.root().to_string_lossy().into_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let lived = runtime.block_on(async {
            tokio::select! {
                biased;
                () = store.died() => Ok(true),
                rested = tokio::time::timeout(PATIENCE, come_to_rest(&store, handlers, root, sync)) => match rested {
                    Ok(Ok(())) => Ok(false),
                    // The caller of the dying store gets its error before this one.
                    Ok(Err(_)) if store.is_dead() => Ok(true),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(anyhow::anyhow!("it does not come to rest: {:?}", self.memory.runs("").await?)),
                },
            }
        });
        runtime.shutdown_timeout(PATIENCE);
        self.wrongs.extend(witness.wrongs());
        Ok(Life { died: lived?, appends: store.appends(), effects: witness.effects() })
    }

    /// What failed, to explain what came of it.
    fn failures(&self) -> String {
        let runtime =
            tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
        let histories = runtime.block_on(Histories::of(&self.memory));
        histories
            .map_or_else(|error| error.to_string(), |histories| histories.failures().join("\n"))
    }

    /// Checks what holds wherever it died, and gives what must be the same.
    fn outcome(&self) -> Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let histories = runtime.block_on(Histories::of(&self.memory))?;
        histories.check()?;
        let marks = self.project.marks();
        let counts = histories.counts(&marks);
        ensure!(
            counts.repeated == 0,
            "sessions were begun again after they were recorded: {marks:?}"
        );
        ensure!(self.wrongs.is_empty(), "{:?}", self.wrongs);
        let mut landed = self.project.landed("main");
        landed.sort_unstable();
        ensure!(landed == ["parser", "shell", "table"], "landed: {landed:?}");
        let (content, list) = (self.project.content("main"), self.project.list("main"));
        let unclean = self.project.git(&["status", "--porcelain"]);
        ensure!(unclean.is_empty(), "the checkout is left unclean: {unclean}");
        Ok(Outcome { content, list, essence: histories.essence() })
    }
}

/// Starts an engine and has the project run, as `longhaul run` does, until nothing is left to do.
async fn come_to_rest(
    store: &DyingStore,
    handlers: Handlers,
    root: String,
    sync: &str,
) -> Result<()> {
    let parts = Parts {
        store: Arc::new(store.clone()),
        workflows: workflows(),
        handlers,
        clock: Arc::new(SystemClock),
        options: Options {
            pools: vec![("agents".into(), 4), ("checks".into(), 2)],
            ..Options::default()
        },
    };
    let engine = Engine::open(parts).await?;
    let mut changes = engine.changes();
    let project = ProjectRef { id: "p".into(), root };
    let input = Payload::of(&ProjectInput { project, memory: None });
    let workflow = ProjectWorkflow::NAME.into();
    engine.start(NewRun { run: id("p"), workflow, input, labels: BTreeMap::new() }).await?;
    engine.signal(&id("p"), signal::SYNC, Payload::of(&SyncRequest::of_all(sync))).await?;
    while !is_at_rest(store, sync).await? {
        let stuck = engine.stuck();
        ensure!(stuck.is_empty(), "stuck: {stuck:?}");
        // What is missed is seen in the log.
        let _ = changes.recv().await;
    }
    engine.stop().await;
    Ok(())
}

async fn is_at_rest(store: &DyingStore, sync: &str) -> Result<bool, StoreError> {
    let published = store.published(&id("p")).await?;
    let view =
        published.get(ProjectSummary::KEY).and_then(|view| view.read::<ProjectSummary>().ok());
    Ok(view.is_some_and(|view| view.phase == Phase::Idle && view.synced == sync))
}

/// A project that dies once on its way, and what a second life makes of it.
fn die_once(death: Death) -> Result<(Life, Outcome)> {
    let mut world = World::new()?;
    let first = world.live(death, "1").context("the first life")?;
    if first.died {
        let second = world.live(Death::Never, "2").context("the second life");
        ensure!(!second.with_context(|| world.failures())?.died, "the second life is not to die");
    }
    let outcome = world.outcome().with_context(|| world.failures())?;
    Ok((first, outcome))
}

fn differences(expected: &Outcome, found: &Outcome) -> Result<()> {
    ensure!(
        expected.content == found.content,
        "files: {:#?} instead of {:#?}",
        found.content,
        expected.content
    );
    ensure!(expected.list == found.list, "list: {:#} instead of {:#}", found.list, expected.list);
    for (run, history) in &expected.essence {
        let (expected, other) = (timeless(history), found.essence.get(run).map(|it| timeless(it)));
        ensure!(
            other.as_ref() == Some(&expected),
            "history of {run}: {other:#?} instead of {expected:#?}"
        );
    }
    if expected.essence.len() != found.essence.len() {
        bail!("runs: {:?} instead of {:?}", found.essence.keys(), expected.essence.keys());
    }
    Ok(())
}

/// A history without what depends on which feature lands first: a merged result is set up only if
/// another one has landed since.
fn timeless(history: &[String]) -> Vec<&str> {
    let merged = history.iter().position(|event| event.contains("merge_candidate"));
    let is_setup = |at: usize| merged.is_some_and(|merged| at == merged + 1);
    let events = history.iter().enumerate();
    let kept = events.filter(|(at, event)| !(is_setup(*at) && event.contains("run_setup")));
    kept.map(|(_, event)| event.as_str()).collect()
}

fn every() -> usize {
    std::env::var("LONGHAUL_TEST_EVERY")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(EVERY)
        .max(1)
}

#[test]
fn dying_at_every_append_and_every_effect_changes_nothing() {
    let begun = std::time::Instant::now();
    let (life, expected) = die_once(Death::Never).expect("an undisturbed life is a good one");
    let both = [Side::Before, Side::After];
    let appends =
        (1..=life.appends).flat_map(|number| both.map(|side| Death::Append(number, side)));
    let effects =
        (1..=life.effects).flat_map(|number| both.map(|side| Death::Effect(number, side)));
    let deaths: Vec<Death> = appends.step_by(every()).chain(effects.step_by(every())).collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(death) = deaths.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let compared =
                        die_once(*death).and_then(|(_, found)| differences(&expected, &found));
                    if let Err(error) = compared {
                        failures
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(format!("{death}: {error:#}"));
                    }
                }
            });
        }
    });
    println!(
        "died at {} of {} places ({} appends and {} effects, before and after each) in {:.0?}",
        deaths.len(),
        2 * (life.appends + life.effects),
        life.appends,
        life.effects,
        begun.elapsed()
    );
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        failures.is_empty(),
        "{} deaths leave a trace:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
