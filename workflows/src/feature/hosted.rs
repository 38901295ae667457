//! Sessions: child runs, of which exactly one owns the work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longhaul_engine::{
    Child, Context, ContextExt, Filter, Outcome, Payload, Received, RunId, Stop,
};

use crate::contracts::{SealStep, SessionEnding, SessionReason, SessionReport};
use crate::session::{
    HandoffAcknowledged, HandoffDecision, HandoffPrepared, SessionStart, SessionWorkflow,
    cancel_child,
};

use super::Work;
use crate::note::Note;
use crate::resources::Resources;
use crate::settings::Driver;

/// How long a successor may take to acknowledge its package.
const ACKNOWLEDGEMENT: Duration = Duration::from_mins(10);

/// The sessions of one try.
struct Hosted<'a> {
    work: &'a mut Work,
    /// The session that owns the work.
    owner: RunId,
    /// The sessions that have not ended.
    open: BTreeSet<RunId>,
    /// The outcomes of the others. One may end while another one is waited for.
    ended: BTreeMap<RunId, Outcome>,
    /// The report of the owner, if it ended by itself.
    report: Option<SessionReport>,
}

/// The end of the sessions of one try.
pub(super) enum Hosting {
    /// The report of the last one.
    Ended(SessionReport),
    /// The feature was cancelled. The last session may have ended by itself before that was known.
    Cancelled(Option<SessionReport>),
}

/// Runs a session, and those that it hands its work to.
pub(super) async fn run(
    context: &mut dyn Context,
    work: &mut Work,
    first: RunId,
) -> Result<Hosting, Stop> {
    let open = BTreeSet::new();
    let ended = BTreeMap::new();
    let mut hosted = Hosted { work, owner: first, open, ended, report: None };
    let hosting = match hosted.run(context).await {
        Ok(report) => Hosting::Ended(report),
        Err(Stop::Cancelled) => {
            for session in hosted.open.clone() {
                hosted.end(context, &session, "its feature is cancelled").await?;
            }
            Hosting::Cancelled(hosted.report)
        }
        Err(stop) => return Err(stop),
    };
    if work.input.settings.agent.driver == Driver::Api {
        // Its sessions have reported to the project themselves.
        work.used = Resources::default();
    }
    Ok(hosting)
}

impl Hosted<'_> {
    async fn run(&mut self, context: &mut dyn Context) -> Result<SessionReport, Stop> {
        self.start(context, None).await?;
        loop {
            if let Some(outcome) = self.ended.remove(&self.owner) {
                // Those that it took over from are shut down; their tokens count, too.
                for session in self.open.clone() {
                    self.wait_for(context, &session).await?;
                }
                return report(outcome);
            }
            match self.receive(context, None).await? {
                Some(Received::Signal { name, payload, from: Some(from) })
                    if name == HandoffPrepared::SIGNAL && from == self.owner =>
                {
                    self.hand_over(context, payload.read()?).await?;
                }
                Some(received) => self.pass_on(context, received).await?,
                None => {}
            }
        }
    }

    /// Cancels a session and waits for its end.
    async fn end(
        &mut self,
        context: &mut dyn Context,
        session: &RunId,
        why: &str,
    ) -> Result<(), Stop> {
        cancel_child(context, session, why).await?;
        self.wait_for(context, session).await
    }

    async fn wait_for(&mut self, context: &mut dyn Context, session: &RunId) -> Result<(), Stop> {
        while self.open.contains(session) {
            if let Some(received) = self.receive(context, None).await? {
                self.work.apply_message_now(context, received).await?;
            }
        }
        Ok(())
    }

    async fn receive(
        &mut self,
        context: &mut dyn Context,
        timeout: Option<Duration>,
    ) -> Result<Option<Received>, Stop> {
        // Only the built-in agent reads notes while it works. For others they stay in the mailbox.
        let takes_notes = self.work.input.settings.agent.driver == Driver::Api;
        let filter = if takes_notes { Filter::Any } else { Filter::Children };
        let received = context.receive(&filter, timeout).await?;
        if let Some(Received::ChildEnded { run, outcome }) = &received
            && self.open.remove(run)
        {
            self.ended.insert(run.clone(), outcome.clone());
            if let Outcome::Completed(report) = outcome {
                let report: SessionReport = report.read()?;
                self.work.spend(&report);
                self.report = (*run == self.owner).then_some(report);
            }
        }
        Ok(received)
    }

    async fn start(
        &mut self,
        context: &mut dyn Context,
        prepared: Option<HandoffPrepared>,
    ) -> Result<(), Stop> {
        let available = match &prepared {
            Some(prepared) => prepared.left,
            None => self.work.available,
        };
        let start = SessionStart {
            id: self.owner.clone(),
            session: self.work.session(),
            seal: self.work.seal_as(SealStep::default()),
            handoff: prepared.map(|prepared| prepared.package),
            task: None,
            available,
        };
        let run = start.id.clone();
        self.open.insert(run.clone());
        let input = Payload::of(&start);
        let workflow = SessionWorkflow::NAME;
        context.start(Child { run, workflow, input, labels: [].into() }).await
    }

    /// Gives the work to a successor, once that has acknowledged the package. If it does not, the
    /// predecessor keeps the work.
    async fn hand_over(
        &mut self,
        context: &mut dyn Context,
        prepared: HandoffPrepared,
    ) -> Result<(), Stop> {
        self.work.note_commit(&prepared.package.commit);
        if self.work.is_stalled() {
            // Its end is that of the try: a limit of the feature is reached.
            return decide(context, &self.owner, HandoffDecision::Shutdown).await;
        }
        let digest = prepared.package.digest();
        let successor = prepared.package.new_session_id.clone();
        let predecessor = std::mem::replace(&mut self.owner, successor);
        self.work.progress.handoffs += 1;
        self.work.reason = SessionReason::Continue;
        self.work.begin_session(context).await?;
        self.start(context, Some(prepared)).await?;
        let mut meanwhile = Vec::new();
        if self.is_acknowledged(context, &digest, &mut meanwhile).await? {
            decide(context, &self.owner, HandoffDecision::Own).await?;
            decide(context, &predecessor, HandoffDecision::Shutdown).await?;
        } else {
            let failed = std::mem::replace(&mut self.owner, predecessor);
            self.end(context, &failed, "it did not take over the work").await?;
            decide(context, &self.owner, HandoffDecision::Own).await?;
        }
        for received in meanwhile {
            self.pass_on(context, received).await?;
        }
        Ok(())
    }

    /// Waits for the acknowledgement of a successor. Other messages are for the session that then
    /// owns the work.
    async fn is_acknowledged(
        &mut self,
        context: &mut dyn Context,
        digest: &str,
        meanwhile: &mut Vec<Received>,
    ) -> Result<bool, Stop> {
        loop {
            match self.receive(context, Some(ACKNOWLEDGEMENT)).await? {
                None => return Ok(false),
                Some(Received::ChildEnded { run, .. }) if run == self.owner => return Ok(false),
                Some(Received::Signal { name, payload, from: Some(from) })
                    if name == HandoffAcknowledged::SIGNAL && from == self.owner =>
                {
                    return Ok(payload.read::<HandoffAcknowledged>()?.digest == digest);
                }
                Some(received) => meanwhile.push(received),
            }
        }
    }

    /// Passes notes of people on to the session.
    async fn pass_on(&mut self, context: &mut dyn Context, received: Received) -> Result<(), Stop> {
        if let Received::Signal { name, payload, .. } = &received
            && name == Note::SIGNAL
        {
            context.send(self.owner.clone(), Note::SIGNAL, payload.clone()).await?;
        }
        self.work.apply_message_now(context, received).await
    }
}

async fn decide(
    context: &mut dyn Context,
    session: &RunId,
    decision: HandoffDecision,
) -> Result<(), Stop> {
    context.signal(session.clone(), HandoffDecision::SIGNAL, &decision).await
}

fn report(outcome: Outcome) -> Result<SessionReport, Stop> {
    match outcome {
        Outcome::Completed(report) => Ok(report.read()?),
        Outcome::Failed(failure) => Err(Stop::Failed(failure)),
        Outcome::Cancelled => {
            let reason = "its run was cancelled".to_owned();
            let ending = SessionEnding::Failed { reason, lacks_command: false };
            Ok(SessionReport::without_agent(ending))
        }
    }
}
