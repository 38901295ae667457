//! The project workflow: one everlasting run owns the backlog, starts workable features, receives
//! their outcomes, and lets them merge one at a time.

mod admission;
mod admission_state;
mod back;
mod breaker;
mod conflicts;
mod ledger;
mod list;
mod marks;
mod order;
mod publish;
mod published;
mod queue;
mod record;
mod recover;
mod regression;
mod repair;
mod rollback;
mod runs;
mod state;
mod sync;
mod view;
mod wait_reason;
mod waiting;

use async_trait::async_trait;
use longhaul_engine::{
    Child, Context, ContextExt, Ending, Filter, Payload, Received, RunId, Stop, Workflow,
};

use crate::backlog::FeatureId;
use crate::feature::{
    Edited, FeatureInput, FeatureWorkflow, MergeLease, MergeRequest, PassRefuted,
};

pub use crate::finding::Skipped;
pub use back::Forked;
pub use breaker::SessionsPaused;
pub use list::changes_the_work;
use order::{AfterSync, Order};
pub use order::{BlockRequest, HeldRuns, SyncRequest};
pub use published::ProjectView;
use record::PendingSend;
pub use recover::FeatureRuns;
use state::ProjectRun;
pub use state::{NO_CHECK, ProjectInput};
pub use view::{BacklogView, FeatureView, Phase, ProjectSummary, Rollback, RollbackView};
pub use wait_reason::WaitReason;

/// The workflow `project`: one everlasting run for each project.
#[derive(Debug, Clone, Copy)]
pub struct ProjectWorkflow;

/// The signals of a project.
pub mod signal {
    /// Read the list and the settings again, and resume if halted. Content: an id, published as
    /// `synced` when done; or [`SyncRequest`](super::SyncRequest).
    pub const SYNC: &str = "sync";
    /// Read the list and the settings again, and stay halted if halted, because no person asked to
    /// resume. Content as of `sync`.
    pub const RELOAD: &str = "reload";
    /// Start no further feature; content: [`Request`](longhaul_engine::RequestedBy).
    pub const HALT: &str = "halt";
    /// The project has moved; content: its new root.
    pub const MOVED: &str = "moved";
    /// Settings that override `longhaul.toml` from the next sync on; content:
    /// [`Overrides`](crate::batch::Overrides).
    pub const OVERRIDE: &str = "override";
    /// Labels of runs from now on; content: a map, replacing the previous one.
    pub const LABEL: &str = "label";
    /// Block a feature; content: `[feature, reason]`.
    pub const BLOCK: &str = "block";
    /// Retry a blocked feature; content: its id.
    pub const UNBLOCK: &str = "unblock";
    /// The last session of a feature called its work done, but the run of the feature was
    /// terminated before it received that; content: the id of the feature. It comes before
    /// `unblock`.
    pub const CALLED_DONE: &str = "called_done";
    /// Feature runs are held: paused, parked, stuck. Content: [`HeldRuns`](super::Held), all of
    /// them. Only the merge order depends on it.
    pub const HELD: &str = "held";
}

/// The number of commands after which a project continues as new, plus one for each feature: replay
/// stays short, and the cost of copying the state stays small beside the work.
const SEGMENT: usize = 2000;

impl ProjectWorkflow {
    /// Its name in histories.
    pub const NAME: &'static str = "project";
}

#[async_trait]
impl Workflow for ProjectWorkflow {
    async fn run(&self, context: &mut dyn Context, input: Payload) -> Result<Ending, Stop> {
        let mut run = ProjectRun::from_input(input.read()?)?;
        loop {
            run.dispatch(context).await?;
            run.publish(context).await?;
            if context.commands() as usize > SEGMENT + run.len() {
                return Ok(Ending::ContinueAsNew(Payload::of(&run.into_input())));
            }
            match context.receive(&Filter::any(), run.wake_in()).await? {
                Some(received) => run.take(context, received).await?,
                None => run.sync_again(context).await?,
            }
        }
    }
}

impl ProjectRun {
    /// Sends pending messages, starts features, and grants the merge lease.
    async fn dispatch(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        for outgoing in std::mem::take(&mut self.outbox) {
            match outgoing {
                PendingSend::Cancel(run, request) => context.cancel(run, request).await?,
                PendingSend::Edited(run, edited) => {
                    context.signal(run, Edited::SIGNAL, &edited).await?;
                }
            }
        }
        self.roll_back(context).await?;
        self.admit(context).await?;
        self.start_next(context).await?;
        while let Some((run, lease)) = self.next_lease() {
            context.signal(run, MergeLease::GRANTED, &lease).await?;
        }
        if self.may_follow() && self.is_idle() && !self.followed {
            self.follow(context).await?;
            self.start_next(context).await?;
        }
        Ok(())
    }

    /// Starts the features that may begin.
    async fn start_next(&mut self, context: &mut dyn Context) -> Result<(), Stop> {
        while let Some(feature) = self.next_to_start() {
            let brief = self.brief(&feature)?;
            let run = self.begin(&feature)?;
            let input = Payload::of(&brief);
            let labels = self.labels.clone();
            context.start(Child { run, workflow: FeatureWorkflow::NAME, input, labels }).await?;
        }
        Ok(())
    }

    async fn take(&mut self, context: &mut dyn Context, received: Received) -> Result<(), Stop> {
        if self.take_use(&received) || self.take_admission(context, &received).await? {
            return Ok(());
        }
        match received {
            Received::ChildEnded { run, outcome } => self.take_outcome(&run, outcome),
            Received::Signal { name, payload, from: Some(run) } => match self.feature_of(&run) {
                Some(feature) if name == Edited::REQUEST => {
                    self.read_list(context).await?;
                    self.answer_edit(&feature);
                }
                _ => self.take_from_run(run, name, &payload),
            },
            Received::Signal { name, payload, from: None } => match Order::read(&name, &payload) {
                Some(Ok(order)) => return self.follow_order(context, order).await,
                Some(Err(error)) => self.skip(name, None, format!("it cannot be read: {error}")),
                None => self.skip(name, None, "a project takes no signal of this name".into()),
            },
        }
        Ok(())
    }

    /// Messages count only from the current run of a feature.
    fn take_from_run(&mut self, run: RunId, name: String, payload: &Payload) {
        let Some(feature) = self.feature_of(&run) else {
            return self.skip(
                name,
                Some(run),
                "the run does not work on a feature of this project now".into(),
            );
        };
        match name.as_str() {
            MergeRequest::SIGNAL => match payload.read::<MergeRequest>() {
                Ok(_) if self.is_ending(&feature) => {}
                Ok(ready) => {
                    self.admission.conflicts.learn(&feature, &ready.files);
                    self.queue.add(MergeRequest { feature, ..ready });
                }
                Err(error) => self.skip(name, Some(run), format!("it cannot be read: {error}")),
            },
            MergeLease::RELEASED => self.queue.release(&feature),
            PassRefuted::SIGNAL => match payload.read() {
                Ok(refuted) => self.take_refuted(refuted),
                Err(error) => self.skip(name, Some(run), format!("it cannot be read: {error}")),
            },
            _ => self.skip(name, Some(run), "a run cannot send it to a project".into()),
        }
    }

    /// An ignored signal is published, and changes nothing.
    fn skip(&mut self, signal: String, from: Option<RunId>, reason: String) {
        self.skipped = Some(Skipped { signal, from, reason });
    }

    async fn follow_order(&mut self, context: &mut dyn Context, order: Order) -> Result<(), Stop> {
        match order {
            Order::Sync(sync) => {
                self.only = sync.only;
                return self.sync(context, sync.id, AfterSync::GoOn).await;
            }
            Order::Reload(id) => return self.sync(context, id, AfterSync::Stay).await,
            Order::Halt(request) => self.halt(request),
            Order::Moved(root) => self.project.root = root,
            Order::Override(overrides) => self.overrides = *overrides,
            Order::Label(labels) => self.labels = labels,
            Order::Block(BlockRequest { feature, reason }) => {
                self.block_on_request(&feature, reason);
            }
            Order::Unblock(feature) => self.unblock(&feature),
            Order::CalledDone(feature) => self.note_called_done(&feature),
            Order::Fork(forked) => self.take_fork(&forked),
            Order::Rollback(rollback) => self.take_rollback(rollback),
            Order::Held(held) => {
                context.set(HeldRuns::KEY, &held).await?;
                self.held = held.runs;
            }
        }
        Ok(())
    }

    fn brief(&self, feature: &FeatureId) -> Result<FeatureInput, Stop> {
        let unknown = || {
            longhaul_engine::Failure::terminal(format!("feature {feature} is not in the backlog"))
        };
        Ok(FeatureInput {
            project: self.project.clone(),
            target: self.target.clone(),
            feature: self.backlog.feature(feature).ok_or_else(unknown)?.clone(),
            settings: self.settings.clone(),
            list_file: self.list_file.clone(),
            claimed: self.is_claimed(feature),
            anew: self.replaces_earlier(feature),
            called_done: self.records.get(feature).is_some_and(|record| record.called_done),
            may_have_landed: self.records.get(feature).is_some_and(|known| known.may_have_landed),
            used: self.records.get(feature).map(|record| record.used).unwrap_or_default(),
        })
    }
}
