//! A world without a disk, a git or an agent, in which a commit is the set of words that its files
//! hold. A check is `has WORD`, `true` or `false`; a session adds the words that its feature asks
//! for. Every activity can be held.

mod sessions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use longhaul_engine::{
    Activity, Attempt, Engine, Failure, Handler, Handlers, MessageBody, NewRun, Options, Payload,
    RequestedBy, RunId, RunReader,
};
use longhaul_storage::MemoryStore;
use longhaul_tests::clock::HeldClock;
use longhaul_tests::history::{Histories, workflows};
use longhaul_tests::script::{engine_with, id, sync, until};
use longhaul_workflows::backlog::{Check, Feature, FeatureId, FeatureStatus};
use longhaul_workflows::contracts::{
    CheckOutTip, ChecksInput, ChecksReport, CloseInput, CloseWorktree, Evidence, Follow,
    FollowInput, Land, LandInput, Landed, LoadBacklog, LoadInput, LoadedBacklog, MergeCandidate,
    MergeInput, Merged, OpenInput, OpenWorktree, Precheck, ProjectRef, RefreshInput,
    RefreshWorktree, Refreshed, RunChecks, RunSetup, Seal, SealInput, Sealed, SessionInput,
    SetupInput, SetupReport, StepTree, TipInput, TipTree, Worktree,
};
use longhaul_workflows::project::{
    FeatureView, ProjectInput, ProjectSummary, ProjectWorkflow, signal,
};
use longhaul_workflows::settings::{AgentSettings, Limits, Settings};
use tokio::sync::watch;

pub(super) const PROJECT: &str = "p";

/// What is there.
#[derive(Default)]
pub(super) struct State {
    pub(super) list: Vec<Feature>,
    pub(super) gates: Vec<Check>,
    pub(super) baseline: Vec<Check>,
    pub(super) parallel: u32,
    /// What reading the list fails with, the next one first.
    pub(super) unreadable: VecDeque<Failure>,
    /// The words of each commit.
    commits: BTreeMap<String, BTreeSet<String>>,
    pub(super) target: String,
    /// The commits of the features' branches.
    pub(super) branches: BTreeMap<String, String>,
    /// The commit in each integration work tree.
    trees: BTreeMap<u32, String>,
    /// The runs of the sessions that were begun, and of those that go on.
    pub(super) sessions: Vec<String>,
    at_work: BTreeMap<String, String>,
    /// The features that landed.
    pub(super) landed: Vec<String>,
    /// Features that change `shared.txt`, and how often the work on each does not merge.
    pub(super) shared: BTreeMap<String, u32>,
    /// What must not happen.
    pub(super) wrongs: Vec<String>,
    /// What does the work; by default a program.
    pub(super) agent: AgentSettings,
    /// The tokens in the window after each answer of the model; after the last one it finishes.
    pub(super) fill: VecDeque<u64>,
    /// The texts that the model received, besides prompts.
    pub(super) heard: Vec<String>,
}

impl State {
    fn commit(&mut self, words: BTreeSet<String>) -> String {
        let name = format!("c{}", self.commits.len());
        self.commits.insert(name.clone(), words);
        name
    }

    pub(super) fn words(&self, commit: &str) -> BTreeSet<String> {
        self.commits.get(commit).cloned().unwrap_or_default()
    }

    /// Whether the list has another version of a feature.
    fn is_edited(&self, id: &FeatureId, known: &str) -> bool {
        let listed = self.list.iter().find(|feature| feature.id == *id);
        listed.is_some_and(|feature| feature.version(&self.gates, &self.baseline) != known)
    }

    /// The files that the work on a feature changes.
    fn files(&self, feature: &str) -> Vec<String> {
        let shared = self.shared.contains_key(feature).then(|| "shared.txt".to_owned());
        std::iter::once(format!("{feature}.txt")).chain(shared).collect()
    }

    /// Adds the words that the gates of a session ask for.
    fn work_on(&mut self, session: &SessionInput) {
        let feature = session.feature.id.to_string();
        let head = self.branches.get(&feature).cloned().unwrap_or_default();
        let mut words = self.words(&head);
        let gates = session.gates.iter();
        words.extend(gates.filter_map(|check| check.run.strip_prefix("has ").map(str::to_owned)));
        let commit = self.commit(words);
        self.branches.insert(feature, commit);
    }

    /// A person takes a word from the target.
    pub(super) fn take_from_target(&mut self, word: &str) {
        let mut words = self.words(&self.target);
        assert!(words.remove(word), "the target has {word}");
        self.target = self.commit(words);
    }

    /// A branch of a feature on which words are that the target does not have.
    pub(super) fn branch(&mut self, feature: &str, words: &[&str]) {
        let mut all = self.words(&self.target);
        all.extend(words.iter().map(ToString::to_string));
        let commit = self.commit(all);
        self.branches.insert(feature.into(), commit);
    }
}

/// Clones are the same world.
#[derive(Clone)]
pub(super) struct World {
    state: Arc<Mutex<State>>,
    /// What is held, as `activity feature`; those with `!` do not end when they are cancelled.
    held: Arc<watch::Sender<BTreeSet<String>>>,
    /// What has begun, as `activity feature`.
    begun: Arc<Mutex<Vec<String>>>,
    pub(super) clock: HeldClock,
    pub(super) memory: MemoryStore,
}

/// A handler that may be held.
struct Does<A, N, F>(World, N, F, PhantomData<fn() -> A>);

#[async_trait]
impl<A: Activity, N, F> Handler<A> for Does<A, N, F>
where
    N: Fn(&A::Input) -> String + Send + Sync + 'static,
    F: Fn(&mut State, &A::Input, &RunId) -> Result<A::Output, Failure> + Send + Sync + 'static,
    A::Input: 'static,
    A::Output: 'static,
{
    async fn perform(&self, input: A::Input, attempt: &Attempt) -> Result<A::Output, Failure> {
        self.0.wait(A::NAME, &(self.1)(&input), attempt).await?;
        (self.2)(&mut self.0.state(), &input, &attempt.run)
    }
}

impl World {
    /// A project with these features that has not begun.
    pub(super) fn new(list: Vec<Feature>) -> Self {
        let mut state = State { list, parallel: 4, ..State::default() };
        state.target = state.commit(BTreeSet::new());
        Self {
            state: Arc::new(Mutex::new(state)),
            held: Arc::new(watch::Sender::default()),
            begun: Arc::default(),
            clock: HeldClock::default(),
            memory: MemoryStore::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an engine on the log.
    pub(super) async fn engine(&self) -> Engine {
        let options = Options { resident_waiting: 100, ..Options::default() };
        engine_with(self.memory.clone(), workflows(), self.handlers(), self.clock.clone(), options)
            .await
    }

    /// Opens an engine and has the project run.
    pub(super) async fn begin(&self) -> Engine {
        let engine = self.engine().await;
        let project = ProjectRef { id: PROJECT.into(), root: "/p".into() };
        let input = Payload::of(&ProjectInput { project, memory: None });
        let workflow = ProjectWorkflow::NAME.into();
        engine
            .start(NewRun { run: id(PROJECT), workflow, input, labels: BTreeMap::new() })
            .await
            .unwrap();
        self.tell(&engine, signal::SYNC, sync("first")).await;
        engine
    }

    pub(super) async fn tell(&self, engine: &Engine, name: &str, payload: Payload) {
        engine.signal(&id(PROJECT), name, payload).await.unwrap();
    }

    /// Puts another list in the place of the one that is there, and has it read.
    pub(super) async fn edit(&self, engine: &Engine, list: Vec<Feature>) {
        self.state().list = list;
        self.tell(engine, signal::RELOAD, Payload::of(&"edit")).await;
    }

    /// Puts other gates in the place of those that are there, and has them read.
    pub(super) async fn edit_gates(&self, engine: &Engine, gates: Vec<Check>) {
        self.state().gates = gates;
        self.tell(engine, signal::RELOAD, Payload::of(&"edit")).await;
    }

    pub(super) async fn pause(&self, engine: &Engine, run: &str, is_held: bool) {
        let request = RequestedBy { by: "ann".into(), why: String::new() };
        let order =
            if is_held { MessageBody::Pause(request) } else { MessageBody::Resume(request) };
        engine.deliver(&id(run), order).await.unwrap();
    }

    /// Holds an activity of a feature; with `!` also after the request to end.
    pub(super) fn hold(&self, what: &str) {
        self.held
            .send_modify(|held| assert!(held.insert(what.to_owned()), "{what} is not held yet"));
    }

    pub(super) fn let_go(&self, what: &str) {
        self.held.send_modify(|held| assert!(held.remove(what), "{what} is held"));
    }

    /// Waits until an activity of a feature has begun so many times.
    pub(super) async fn until_begun(&self, what: &str, times: usize) {
        until(what, async || self.count(what) >= times).await;
    }

    /// How many times an activity of a feature has begun.
    pub(super) fn count(&self, what: &str) -> usize {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.iter().filter(|begun| *begun == what).count()
    }

    async fn wait(&self, activity: &str, feature: &str, attempt: &Attempt) -> Result<(), Failure> {
        let what = format!("{activity} {feature}");
        let stubborn = format!("{what}!");
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(what.clone());
        let mut held = self.held.subscribe();
        let is_free = tokio::select! {
            biased;
            _ = held.wait_for(|held| !held.contains(&what) && !held.contains(&stubborn)) => true,
            () = attempt.cancelled() => false,
        };
        if is_free {
            return Ok(());
        }
        let _ = held.wait_for(|held| !held.contains(&stubborn)).await;
        Err(Failure::cancelled())
    }

    pub(super) async fn view(&self, feature: &str) -> Option<FeatureView> {
        let published = self.memory.published(&id(PROJECT)).await.unwrap();
        published.get(&FeatureView::key(&FeatureId::new(feature).unwrap()))?.read().ok()
    }

    pub(super) async fn project(&self) -> ProjectSummary {
        let published = self.memory.published(&id(PROJECT)).await.unwrap();
        published
            .get(ProjectSummary::KEY)
            .map(|view| view.read().unwrap())
            .expect("the project has begun")
    }

    pub(super) async fn until_passes(&self, feature: &str) {
        until(&format!("{feature} passes"), async || {
            self.view(feature).await.is_some_and(|view| view.passes)
        })
        .await;
    }

    pub(super) async fn until_status(&self, feature: &str, status: FeatureStatus) {
        let what = format!("{feature} is {status:?}");
        until(&what, async || self.view(feature).await.is_some_and(|view| view.status == status))
            .await;
    }

    /// Stops the engine, and checks what holds at the end of every story.
    pub(super) async fn end(&self, engine: &Engine) {
        let stuck = engine.stuck();
        engine.stop().await;
        assert!(stuck.is_empty(), "{stuck:?}");
        Histories::of(&self.memory).await.unwrap().check().unwrap();
        let state = self.state();
        assert!(state.wrongs.is_empty(), "{:?}", state.wrongs);
    }

    /// The words of the target.
    pub(super) fn target(&self) -> Vec<String> {
        let state = self.state();
        state.words(&state.target).into_iter().collect()
    }

    fn does<A, N, F>(&self, feature: N, act: F) -> Does<A, N, F>
    where
        A: Activity,
        N: Fn(&A::Input) -> String,
        F: Fn(&mut State, &A::Input, &RunId) -> Result<A::Output, Failure>,
    {
        Does(self.clone(), feature, act, PhantomData)
    }

    pub(super) fn handlers(&self) -> Handlers {
        self.sessions()
            .with::<LoadBacklog>(self.does::<LoadBacklog, _, _>(
                |_: &LoadInput| String::new(),
                |state, _, _| load(state),
            ))
            .with::<OpenWorktree>(self.does::<OpenWorktree, _, _>(
                |input: &OpenInput| input.feature.to_string(),
                |state, input, _| Ok(open(state, input)),
            ))
            .with::<RefreshWorktree>(self.does::<RefreshWorktree, _, _>(
                |input: &RefreshInput| input.feature.to_string(),
                |state, input, _| {
                    let (feature, tip) = (input.feature.to_string(), state.target.clone());
                    let mut commit =
                        state.branches.get(&feature).cloned().unwrap_or_else(|| tip.clone());
                    let words = &state.words(&commit) | &state.words(&tip);
                    if words != state.words(&commit) {
                        commit = state.commit(words);
                        state.branches.insert(feature.clone(), commit.clone());
                    }
                    Ok(Refreshed {
                        commit,
                        tip,
                        files: state.files(&feature),
                        conflict: None,
                        is_edited: state.is_edited(&input.feature, &input.version),
                    })
                },
            ))
            .with::<RunSetup>(self.does::<RunSetup, _, _>(
                |input: &SetupInput| input.feature.to_string(),
                |state, input, _| Ok(set_up(state, input)),
            ))
            .with::<RunChecks>(self.does::<RunChecks, _, _>(checked, check))
            .with::<Precheck>(self.does::<Precheck, _, _>(checked, check))
            .with::<Seal>(self.does::<Seal, _, _>(
                |input: &SealInput| input.feature.to_string(),
                |state, input, _| {
                    let commit =
                        state.branches.get(input.feature.as_str()).cloned().unwrap_or_default();
                    let is_new = !state.words(&commit).is_subset(&state.words(&state.target));
                    let files =
                        if is_new { state.files(input.feature.as_str()) } else { Vec::new() };
                    let (tampered, notes, outside) = (Vec::new(), String::new(), Vec::new());
                    Ok(Sealed {
                        left_out: Vec::new(),
                        commit,
                        files,
                        tampered,
                        rescued: None,
                        notes,
                        unread_notes: None,
                        outside,
                    })
                },
            ))
            .with::<CheckOutTip>(self.does::<CheckOutTip, _, _>(
                |_: &TipInput| String::new(),
                |state, input, _| {
                    state.trees.insert(input.tree, state.target.clone());
                    Ok(TipTree { commit: state.target.clone() })
                },
            ))
            .with::<MergeCandidate>(self.does::<MergeCandidate, _, _>(
                |input: &MergeInput| input.feature.to_string(),
                |state, input, _| {
                    if let Some(left) =
                        state.shared.get_mut(input.feature.as_str()).filter(|left| **left > 0)
                    {
                        *left -= 1;
                        let (tip, files) = (state.target.clone(), vec!["shared.txt".into()]);
                        return Ok(Merged::Conflict { tip, files, output: String::new() });
                    }
                    let mut words = state.words(&state.target);
                    words.extend(state.words(&input.commit));
                    let commit = state.commit(words);
                    state.trees.insert(input.tree, commit.clone());
                    Ok(candidate(commit, state.target.clone()))
                },
            ))
            .with::<Land>(self.does::<Land, _, _>(|_: &LandInput| String::new(), land))
            .with::<Follow>(self.does::<Follow, _, _>(
                |_: &FollowInput| String::new(),
                |state, _, _| {
                    let target_commit = state.target.clone();
                    Ok(Landed::at(target_commit, None))
                },
            ))
            .with::<CloseWorktree>(self.does::<CloseWorktree, _, _>(
                |input: &CloseInput| input.feature.to_string(),
                |state, input, _| {
                    state.branches.remove(input.feature.as_str());
                    Ok(())
                },
            ))
    }
}

fn set_up(state: &mut State, input: &SetupInput) -> SetupReport {
    if let (StepTree::Integration(tree), Some(commit)) = (input.tree, &input.commit) {
        state.trees.insert(tree, commit.clone());
    }
    SetupReport { evidence: None }
}

fn open(state: &mut State, input: &OpenInput) -> Worktree {
    let target = state.target.clone();
    let head = state.branches.entry(input.feature.to_string()).or_insert(target).clone();
    let has_work = !state.words(&head).is_subset(&state.words(&state.target));
    Worktree { branch: String::new(), head, rescued: None, has_work, landed: None }
}

/// A check of a merged result is called `feature merged`.
fn checked(input: &ChecksInput) -> String {
    let merged = if input.tree == StepTree::Feature { "" } else { " merged" };
    format!("{}{merged}", input.feature)
}

fn load(state: &mut State) -> Result<LoadedBacklog, Failure> {
    if let Some(failure) = state.unreadable.pop_front() {
        return Err(failure);
    }
    let mut settings = Settings {
        gates: state.gates.clone(),
        baseline: state.baseline.clone(),
        limits: Limits { failed_gates: 2, ..Limits::default() },
        ..Settings::default()
    };
    settings.project.parallel = state.parallel;
    settings.agent = state.agent.clone();
    let (target, list_file) = ("main".into(), "feature_list.json".into());
    Ok(LoadedBacklog {
        features: state.list.clone(),
        settings,
        target,
        list_file,
        notes: Vec::new(),
        lost: Vec::new(),
        tip: None,
    })
}

#[expect(clippy::unnecessary_wraps, reason = "the handlers of this world may fail")]
fn check(state: &mut State, input: &ChecksInput, run: &RunId) -> Result<ChecksReport, Failure> {
    if let StepTree::Integration(tree) = input.tree
        && state.trees.get(&tree) != Some(&input.commit)
    {
        state
            .wrongs
            .push(format!("{run} checks {} in tree {tree}, which another run uses", input.commit));
    }
    let words = state.words(&input.commit);
    let passes = |check: &Check| match check.run.split_once(' ') {
        Some(("has", word)) => words.contains(word),
        _ => check.run == "true",
    };
    let mut report = ChecksReport { evidence: Vec::new() };
    for check in &input.checks {
        let passed = passes(check);
        report.evidence.push(Evidence {
            reused: false,
            held_out: None,
            put_back: Vec::new(),
            is_setup: false,
            unmet_need: None,
            name: check.name.clone(),
            command: check.run.clone(),
            commit: input.commit.clone(),
            exit_code: Some(i32::from(!passed)),
            ended_by: None,
            duration_ms: 1,
            output_digest: String::new(),
            output_tail: String::new(),
            log: String::new(),
        });
        if !passed {
            break;
        }
    }
    Ok(report)
}

fn land(state: &mut State, input: &LandInput, run: &RunId) -> Result<Landed, Failure> {
    if state.target != input.tip {
        return Err(
            Failure::terminal(format!("the tip is {}", state.target)).with_code(Land::STALE)
        );
    }
    if input.version.as_ref().is_some_and(|known| state.is_edited(&input.feature, known)) {
        return Err(Failure::terminal("edited").with_code(Land::EDITED));
    }
    if input.commit != input.tip {
        state.landed.push(run.to_string());
    }
    state.target.clone_from(&input.commit);
    Ok(Landed::at(input.commit.clone(), None))
}

/// A feature with one check.
pub(super) fn feature(id: &str, check: &str) -> Feature {
    let check = Check { name: "accepts".into(), run: check.into(), ..Check::default() };
    Feature {
        checks: vec![check],
        ..Feature::new(FeatureId::new(id).unwrap(), format!("The {id}"))
    }
}

/// A feature that the list says is done.
pub(super) fn claimed(id: &str, check: &str) -> Feature {
    Feature { passes: true, status: FeatureStatus::Completed, ..feature(id, check) }
}

fn candidate(commit: String, tip: String) -> Merged {
    let (files, put_back, outside) = Default::default();
    Merged::Candidate { commit, tip, files, same_as_work: false, put_back, outside }
}
