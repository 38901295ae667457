//! A world without a disk, a git or an agent: features behave as planned, and every answer follows
//! from the question.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use longhaul_engine::{Activity, Attempt, Clock, Failure, Handler, Handlers};
use longhaul_tests::clock::HeldClock;
use longhaul_workflows::backlog::{Check, Feature, FeatureId};
use longhaul_workflows::contracts::{
    CheckOutTip, ChecksInput, ChecksReport, CloseInput, CloseWorktree, Evidence, Land, LandInput,
    Landed, LoadBacklog, LoadInput, LoadedBacklog, MergeCandidate, MergeInput, Merged, OpenInput,
    OpenWorktree, Precheck, RefreshConflict, RefreshInput, RefreshWorktree, Refreshed, RunChecks,
    RunSession, RunSetup, Seal, SealInput, SealStep, Sealed, SessionEnding, SessionInput,
    SessionReport, SetupInput, SetupReport, Tampering, TipInput, TipTree, Worktree,
};
use longhaul_workflows::prompt;
use longhaul_workflows::settings::{AgentSettings, Limits, ProjectSettings, Settings};
use tokio::sync::watch;

/// How the work on a feature goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    /// It is done after one session.
    Plain,
    /// The gates fail after the first session.
    FailsGate,
    /// The first session fills its context.
    Fills,
    /// The first session marks its feature as passing instead of building it.
    Tampers,
    /// The work of the first session does not merge.
    Conflicts,
    /// The work of the first session needs something that is not there where it is merged.
    NeedsMore,
    /// The first session dies, and the gates fail ever after.
    NeverPasses,
    /// The agent's provider has had enough for an hour.
    Limited,
    /// The agent fails without a change until it is let go.
    Down,
    /// The agent cannot be started until it is let go.
    Missing,
    /// The session goes on until it is let go or cancelled.
    Lasts,
    /// The gates fail until the third session; the second goes on until it is let go.
    Persuaded,
}

/// A feature and how the work on it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) id: &'static str,
    pub(super) needs: &'static [&'static str],
    pub(super) habit: Habit,
}

/// Clones are the same world.
#[derive(Clone)]
pub(super) struct World {
    plans: &'static [Plan],
    /// `[project] parallel`.
    pub(super) parallel: u32,
    pub(super) clock: HeldClock,
    /// The commit that the target branch stands on.
    tip: Arc<Mutex<String>>,
    pub(super) let_go: watch::Sender<bool>,
    /// How many first sessions of an agent that is down have begun.
    begun: watch::Sender<usize>,
    /// The commits of branches, and the tips that are in them.
    branches: Arc<Mutex<BTreeMap<FeatureId, (String, String)>>>,
}

/// A handler that answers in no time, but for the seconds that it lets pass.
struct Answers<F>(World, i64, F);

#[async_trait]
impl<A: Activity, F> Handler<A> for Answers<F>
where
    F: Fn(&World, &A::Input) -> A::Output + Send + Sync + 'static,
    A::Input: 'static,
    A::Output: 'static,
{
    async fn perform(&self, input: A::Input, _attempt: &Attempt) -> Result<A::Output, Failure> {
        self.0.clock.advance(self.1);
        Ok((self.2)(&self.0, &input))
    }
}

#[async_trait]
impl Handler<RunSession> for World {
    async fn perform(
        &self,
        input: SessionInput,
        attempt: &Attempt,
    ) -> Result<SessionReport, Failure> {
        let habit = self.habit(&input.feature.id);
        self.meet(&input).await;
        if let Some(ending) = self.outage(habit) {
            return Ok(report(&input, ending, ""));
        }
        self.clock.advance(600);
        if habit == Habit::Limited && attempt.number == 1 {
            let until = self.clock.now() + chrono::Duration::hours(1);
            return Err(Failure::rate_limited(until, "the provider's limit is reached"));
        }
        if habit == Habit::Lasts || (habit == Habit::Persuaded && input.number == 2) {
            let mut let_go = self.let_go.subscribe();
            tokio::select! {
                biased;
                () = attempt.cancelled() => return Err(Failure::cancelled()),
                _ = let_go.wait_for(|gone| *gone) => {}
            }
        }
        let (ending, notes) = match (habit, input.number) {
            (Habit::Fills, 1) => {
                (SessionEnding::ContextFull, "The parser is done; the printer is not.")
            }
            (Habit::NeverPasses, 1) => {
                (SessionEnding::Failed { reason: "exit code 1".into(), lacks_command: false }, "")
            }
            _ => (SessionEnding::ClaimsDone, ""),
        };
        Ok(report(&input, ending, notes))
    }
}

fn report(input: &SessionInput, ending: SessionEnding, notes: &str) -> SessionReport {
    SessionReport {
        sandbox: String::new(),
        tampered: Vec::new(),
        outside: Vec::new(),
        agent: None,
        ending,
        notes: notes.into(),
        unread_notes: None,
        duration_ms: 600_000,
        output_digest: hash(&prompt::session(input), 64),
        output_tail: format!("session {} of {}\n", input.number, input.feature.id),
        log: format!("/home/ann/.longhaul/logs/{}-{}.log", input.feature.id, input.number),
    }
}

impl World {
    pub(super) fn new(plans: &'static [Plan]) -> Self {
        let tip = Arc::new(Mutex::new(hash("main", 40)));
        Self {
            plans,
            parallel: ProjectSettings::default().parallel,
            clock: HeldClock::default(),
            tip,
            let_go: watch::Sender::new(false),
            begun: watch::Sender::new(0),
            branches: Arc::default(),
        }
    }

    /// Handlers for all that workflows ask.
    pub(super) fn handlers(&self) -> Handlers {
        Handlers::new()
            .with::<LoadBacklog>(self.answers(0, Self::load))
            .with::<OpenWorktree>(self.answers(1, Self::open))
            .with::<RefreshWorktree>(self.answers(1, Self::refresh))
            .with::<RunSetup>(self.answers(20, Self::set_up))
            .with::<RunChecks>(self.answers(30, Self::check))
            .with::<Precheck>(self.answers(5, |_: &Self, input: &ChecksInput| precheck(input)))
            .with::<RunSession>(self.clone())
            .with::<Seal>(self.answers(1, Self::seal))
            .with::<CheckOutTip>(self.answers(1, Self::check_out_tip))
            .with::<MergeCandidate>(self.answers(1, Self::merge))
            .with::<Land>(self.answers(1, Self::land))
            .with::<CloseWorktree>(self.answers(1, |_: &Self, _: &CloseInput| ()))
    }

    fn answers<F>(&self, seconds: i64, answer: F) -> Answers<F> {
        Answers(self.clone(), seconds, answer)
    }

    fn habit(&self, feature: &FeatureId) -> Habit {
        let plan = self.plans.iter().find(|plan| plan.id == feature.as_str());
        plan.expect("only planned features are worked on").habit
    }

    /// The first sessions of an agent that is down end when all of them have begun: no set-up lets
    /// time pass after them.
    async fn meet(&self, input: &SessionInput) {
        let is_down = |plan: &&Plan| plan.habit == Habit::Down;
        if self.habit(&input.feature.id) == Habit::Down && input.number == 1 {
            let mut begun = self.begun.subscribe();
            self.begun.send_modify(|begun| *begun += 1);
            let all = self.plans.iter().filter(is_down).count();
            let _ = begun.wait_for(|begun| *begun >= all).await;
        }
    }

    /// How a session ends while the agent is out of order.
    fn outage(&self, habit: Habit) -> Option<SessionEnding> {
        let is_over = *self.let_go.borrow();
        match habit {
            Habit::Down if !is_over => {
                Some(SessionEnding::Failed { reason: "exit code 1".into(), lacks_command: false })
            }
            Habit::Missing if !is_over => {
                Some(SessionEnding::NotStarted { reason: "`agent` is not there.".into() })
            }
            _ => None,
        }
    }

    fn tip(&self) -> String {
        self.tip.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn load(&self, _: &LoadInput) -> LoadedBacklog {
        let feature = |plan: &Plan| Feature {
            description: format!("Build the {} of the shop.", plan.id),
            depends_on: plan.needs.iter().map(|id| FeatureId::new(*id).unwrap()).collect(),
            checks: vec![check("accepts", &format!("sh acceptance/{}.sh", plan.id))],
            ..Feature::new(FeatureId::new(plan.id).unwrap(), format!("The {}", plan.id))
        };
        let settings = Settings {
            agent: AgentSettings {
                command: vec!["agent".into(), "--print".into()],
                ..AgentSettings::default()
            },
            gates: vec![check("lint", "make lint")],
            baseline: vec![check("builds", "make")],
            project: ProjectSettings { parallel: self.parallel, ..ProjectSettings::default() },
            limits: Limits { failed_gates: 2, ..Limits::default() },
            ..Settings::default()
        };
        LoadedBacklog {
            features: self.plans.iter().map(feature).collect(),
            settings,
            target: "main".into(),
            list_file: "feature_list.json".into(),
            notes: Vec::new(),
            lost: Vec::new(),
            tip: None,
        }
    }

    fn open(&self, input: &OpenInput) -> Worktree {
        Worktree {
            branch: format!("longhaul/{}", input.feature),
            head: self.tip(),
            rescued: None,
            has_work: false,
            landed: None,
        }
    }

    /// The target has what it had, but for what landed: a merge with that is one more commit.
    fn refresh(&self, input: &RefreshInput) -> Refreshed {
        let tip = self.tip();
        let mut branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        let head =
            branches.entry(input.feature.clone()).or_insert_with(|| (tip.clone(), tip.clone()));
        if head.1 != tip {
            *head = (hash(&format!("{} {tip}", head.0), 40), tip.clone());
        }
        let conflict = (self.habit(&input.feature) == Habit::Conflicts).then(|| {
            let files = vec![format!("src/{}.rs", input.feature)];
            RefreshConflict {
                output: format!("CONFLICT (content): Merge conflict in {}\n", files[0]),
                files,
            }
        });
        Refreshed {
            is_edited: false,
            commit: head.0.clone(),
            tip,
            files: vec![format!("src/{}.rs", input.feature)],
            conflict,
        }
    }

    fn set_up(&self, input: &SetupInput) -> SetupReport {
        let commit = input.commit.clone().unwrap_or_else(|| self.tip());
        let failure = self
            .needs_more(&input.feature, &commit)
            .then_some("the printer's driver is not there\n");
        SetupReport { evidence: Some(evidence(&check("setup", &input.script), &commit, failure)) }
    }

    /// Whether it is what the first session comes to when it is merged, which wants more than is
    /// there.
    fn needs_more(&self, id: &FeatureId, commit: &str) -> bool {
        self.habit(id) == Habit::NeedsMore && commit == merged(&self.tip(), &sealed_by(id, 1))
    }

    fn check(&self, input: &ChecksInput) -> ChecksReport {
        let (id, commit) = (&input.feature, &input.commit);
        let fails = match self.habit(id) {
            Habit::FailsGate | Habit::Tampers => *commit == sealed_by(id, 1),
            Habit::NeverPasses => *commit != self.tip(),
            Habit::Persuaded => [1, 2].map(|session| sealed_by(id, session)).contains(commit),
            _ => self.needs_more(id, commit),
        };
        let mut report = ChecksReport { evidence: Vec::new() };
        for check in &input.checks {
            let failed = fails && check.name == "accepts";
            report.evidence.push(evidence(
                check,
                commit,
                failed.then_some("expected 3, found 2\n"),
            ));
            if failed {
                break;
            }
        }
        report
    }

    fn seal(&self, input: &SealInput) -> Sealed {
        let is_fruitless = self.habit(&input.feature) == Habit::Down
            && input.step.to_string().contains("exit code");
        let commit = if is_fruitless { self.tip() } else { hash(&input.subject(), 40) };
        let tip = self.tip();
        let mut branches = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        branches
            .entry(input.feature.clone())
            .or_insert_with(|| (String::new(), tip))
            .0
            .clone_from(&commit);
        drop(branches);
        let tampered = matches!(input.step, SealStep::Ended { session: 1, .. })
            && self.habit(&input.feature) == Habit::Tampers;
        let what = format!("feature \"{}\": passes was set to true", input.feature);
        let tampering = Tampering { file: input.list_file.clone(), what };
        Sealed {
            left_out: Vec::new(),
            commit,
            files: vec![format!("src/{}.rs", input.feature)],
            tampered: if tampered { vec![tampering] } else { Vec::new() },
            rescued: tampered.then(|| {
                format!("refs/longhaul/rescue/{}/{}/1/7.0", input.project.id, input.feature)
            }),
            notes: String::new(),
            unread_notes: None,
            outside: Vec::new(),
        }
    }

    fn check_out_tip(&self, _input: &TipInput) -> TipTree {
        TipTree { commit: self.tip() }
    }

    fn merge(&self, input: &MergeInput) -> Merged {
        let (tip, files) = (self.tip(), vec![format!("src/{}.rs", input.feature)]);
        if self.habit(&input.feature) == Habit::Conflicts
            && input.commit == sealed_by(&input.feature, 1)
        {
            let output = format!("CONFLICT (content): Merge conflict in {}\n", files[0]);
            return Merged::Conflict { tip, files, output };
        }
        let commit = merged(&tip, &input.commit);
        Merged::Candidate {
            commit,
            tip,
            files,
            same_as_work: false,
            put_back: Vec::new(),
            outside: Vec::new(),
        }
    }

    fn land(&self, input: &LandInput) -> Landed {
        self.tip.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&input.commit);
        Landed::at(input.commit.clone(), None)
    }
}

/// Nothing passes before it is worked on.
fn precheck(input: &ChecksInput) -> ChecksReport {
    let failed = |check| evidence(check, &input.commit, Some("not there\n"));
    ChecksReport { evidence: input.checks.iter().map(failed).collect() }
}

fn merged(tip: &str, commit: &str) -> String {
    hash(&format!("{tip} {commit}"), 40)
}

/// The commit that holds the work of a session which says that it is done.
fn sealed_by(feature: &FeatureId, session: u32) -> String {
    hash(&format!("{feature}: session {session}, done"), 40)
}

fn check(name: &str, run: &str) -> Check {
    Check { name: name.into(), run: run.into(), ..Check::default() }
}

fn evidence(check: &Check, commit: &str, failure: Option<&str>) -> Evidence {
    let output = failure.unwrap_or("ok\n");
    Evidence {
        reused: false,
        held_out: None,
        put_back: Vec::new(),
        is_setup: false,
        unmet_need: None,
        name: check.name.clone(),
        command: check.run.clone(),
        commit: commit.into(),
        exit_code: Some(i32::from(failure.is_some())),
        ended_by: None,
        duration_ms: 1200,
        output_digest: hash(output, 64),
        output_tail: output.into(),
        log: format!("/home/ann/.longhaul/logs/{}-{}.log", check.name, &commit[..8]),
    }
}

/// Something that looks like a hash, and is the same for the same text.
fn hash(text: &str, digits: usize) -> String {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut step = |byte: u8| {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        state >> 32
    };
    text.bytes().map(&mut step).for_each(drop);
    (0..digits).map(|_| char::from_digit((step(0xff) & 15) as u32, 16).unwrap()).collect()
}
