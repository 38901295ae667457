//! What happens to a project: one everlasting run owns its backlog, starts the features that can be worked on, takes their
//! outcomes in, and lets them merge one at a time.

mod admission;
mod back;
mod breaker;
mod conflicts;
mod memory;
mod publish;
mod regression;
mod repair;
mod rollback;
mod view;

use async_trait::async_trait;
use longhaul_engine::{Child, Context, ContextExt, Ending, Outcome, Payload, Received, RunId, Stop, Workflow};

use crate::backlog::FeatureId;
use crate::contracts::{Follow, FollowInput, LoadBacklog, LoadInput};
use crate::feature::{Brief, FeatureOutcome, FeatureWorkflow, Ready, Turn};

pub use back::{Forked, Unblock};
pub use breaker::SessionsPaused;
use memory::Memory;
pub use memory::{NO_CHECK, ProjectInput};
pub use rollback::{Rollback, RollbackView};
pub use view::{BacklogView, FeatureView, Phase, ProjectView};

/// The workflow `project`: one run for each project, for ever.
#[derive(Debug, Clone, Copy)]
pub struct ProjectWorkflow;

/// The signals that a project understands.
pub mod signal {
    /// Read the list and the settings again, and go on if halted. Content: an id, published as `synced` when done.
    pub const SYNC: &str = "sync";
    /// Read the list and the settings again, and stay halted if halted: nobody asked to go on. Content as of `sync`.
    pub const RELOAD: &str = "reload";
    /// Start no further feature; content: [`Request`](longhaul_engine::Request).
    pub const HALT: &str = "halt";
    /// The project is at another place from now on; content: its new root.
    pub const MOVED: &str = "moved";
    /// Settings that count instead of those of `longhaul.toml` from the next sync on; content:
    /// [`Overrides`](crate::batch::Overrides).
    pub const OVERRIDE: &str = "override";
    /// Labels that runs get from now on; content: a map, in the place of the one before.
    pub const LABEL: &str = "label";
    /// Block a feature; content: `[feature, reason]`.
    pub const BLOCK: &str = "block";
    /// Try a blocked feature again; content: its id, or [`Unblock`](super::Unblock).
    pub const UNBLOCK: &str = "unblock";
}

/// After how many commands a project goes on as new, besides one for each feature: replay stays short, and the cost of
/// carrying the memory over stays small beside what was done since.
const SEGMENT: usize = 2000;

/// What a halted project does when its list was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Stay,
}

/// Why a feature is blocked whose run a person ended.
pub const CANCELLED: &str = "its run was cancelled";

impl ProjectWorkflow {
    /// Its name in histories.
    pub const NAME: &'static str = "project";
}

#[async_trait]
impl Workflow for ProjectWorkflow {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let mut memory = Memory::from_input(input.read()?)?;
        loop {
            memory.dispatch(context).await?;
            memory.publish(context).await?;
            if context.commands() as usize > SEGMENT + memory.len() {
                return Ok(Ending::ContinueAsNew(Payload::of(&memory.into_input())));
            }
            if let Some(received) = context.receive(memory.probe_in).await? {
                memory.take(context, received).await?;
            }
        }
    }
}

impl Memory {
    /// Starts what can be started, and gives the turn to merge.
    async fn dispatch(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        self.roll_back(context).await?;
        self.admit(context).await?;
        while let Some(feature) = self.next_to_start() {
            let brief = self.brief(&feature)?;
            let run = self.begin(&feature)?;
            let input = Payload::of(&brief);
            let labels = self.labels.clone();
            context.start(Child { run, workflow: FeatureWorkflow::NAME, input, labels }).await?;
        }
        if let Some((run, turn)) = self.next_turn() {
            context.signal(run, Turn::GIVEN, &turn).await?;
        }
        if self.waits_on_next.is_some() && self.is_idle() && !self.followed {
            self.follow(context).await?;
        }
        Ok(())
    }

    async fn take(&mut self, context: &mut dyn Context, received: Received) -> Result<(), Stop> {
        if self.take_admission(context, &received).await? {
            return Ok(());
        }
        match received {
            Received::ChildEnded { run, outcome } => self.take_outcome(&run, outcome),
            Received::Signal { name, payload, .. } => match name.as_str() {
                signal::SYNC => self.sync(context, payload.read()?, Then::GoOn).await,
                signal::RELOAD => self.sync(context, payload.read()?, Then::Stay).await,
                signal::HALT => {
                    self.halt(payload.read()?);
                    Ok(())
                }
                signal::MOVED => {
                    self.project.root = payload.read()?;
                    Ok(())
                }
                signal::OVERRIDE => {
                    self.overrides = payload.read()?;
                    Ok(())
                }
                signal::LABEL => {
                    self.labels = payload.read()?;
                    Ok(())
                }
                signal::BLOCK => {
                    let (feature, reason): (FeatureId, String) = payload.read()?;
                    self.block(&feature, reason);
                    Ok(())
                }
                signal::UNBLOCK => {
                    self.unblock(payload.read::<Unblock>()?.feature());
                    Ok(())
                }
                Forked::SIGNAL => {
                    self.take_fork(&payload.read()?);
                    Ok(())
                }
                Rollback::SIGNAL => {
                    self.take_rollback(payload.read()?);
                    Ok(())
                }
                Ready::SIGNAL => {
                    self.queue(payload.read()?);
                    Ok(())
                }
                Turn::GIVEN_BACK => {
                    self.give_back(&payload.read()?);
                    Ok(())
                }
                _ => Ok(()),
            },
        }
    }

    /// Reads the list and the settings as they are now. What is wrong with them is published; the old ones stay.
    async fn sync(&mut self, context: &mut dyn Context, id: String, then: Then) -> Result<(), Stop> {
        let input = LoadInput { project: self.project.clone() };
        let loaded = match context.call::<LoadBacklog>(input).await {
            Ok(loaded) => self.take_backlog(loaded),
            Err(Stop::Failed(failure)) => Err(failure.message),
            Err(stop) => return Err(stop),
        };
        self.problem = loaded.err();
        if then == Then::GoOn {
            self.halted = None;
            self.admissions.hurry();
        }
        self.followed = false;
        self.synced = id;
        if self.problem.is_none() {
            self.publish_backlog(context).await?;
        }
        if self.waits_on_next.is_some() {
            self.follow(context).await?;
        }
        Ok(())
    }

    /// Moves work that waits on `longhaul/next` to the target branch, if the user's checkout lets it now.
    async fn follow(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        let input = FollowInput {
            project: self.project.clone(),
            target: self.target.clone(),
            list_file: self.list_file.clone(),
        };
        self.followed = true;
        match context.call::<Follow>(input).await {
            Ok(landed) => self.waits_on_next = landed.waits_on_next,
            Err(Stop::Failed(failure)) => self.waits_on_next = Some(failure.message),
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    fn brief(&self, feature: &FeatureId) -> Result<Brief, Stop> {
        let unknown = || longhaul_engine::Failure::terminal(format!("feature {feature} is not in the backlog"));
        Ok(Brief {
            project: self.project.clone(),
            target: self.target.clone(),
            feature: self.backlog.feature(feature).ok_or_else(unknown)?.clone(),
            settings: self.settings.clone(),
            list_file: self.list_file.clone(),
            claimed: self.is_claimed(feature),
            judged: self.records.get(feature).is_some_and(|record| record.judged),
        })
    }

    fn take_outcome(&mut self, run: &RunId, outcome: Outcome) -> Result<(), Stop> {
        let Some(feature) = self.feature_of(run) else {
            return Ok(());
        };
        self.leave_lane(&feature);
        match outcome {
            Outcome::Completed(output) => match output.read::<FeatureOutcome>()? {
                FeatureOutcome::Passed { commit, waits_on_next, progress, files } => {
                    self.waits_on_next = waits_on_next;
                    self.pass(&feature, commit, files, progress.sessions);
                }
                FeatureOutcome::Blocked { reason, progress } => {
                    self.note_sessions(&feature, progress.sessions);
                    self.record(&feature).judged |= progress.failed_gates + progress.conflicts > 0;
                    self.block(&feature, reason);
                }
            },
            Outcome::Failed(failure) => self.block(&feature, failure.message),
            Outcome::Cancelled if self.was_halted(&feature) => self.put_back(&feature),
            Outcome::Cancelled => self.block(&feature, CANCELLED.into()),
        }
        self.end_admission(&feature);
        Ok(())
    }
}
