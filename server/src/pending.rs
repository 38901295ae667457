//! What a run was told and has not taken yet: on a log at rest, what happens first when it is run again.

use longhaul_engine::{MessageBody, RequestedBy, RunId, RunReader, StoreError};
use longhaul_workflows::feature::Approval;

/// The words that wait for a run; of those that undo each other the last.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Whether there is anything that a waiting run takes, for its workflow too.
    pub is_something: bool,
    /// To pause or to go on.
    pub pause: Option<Pause>,
    /// To end, and how.
    pub end: Option<(End, RequestedBy)>,
    /// That it may be merged, or not.
    pub answer: Option<Approval>,
    /// Whether the effect happened of which nobody could tell.
    pub settled: Option<(bool, RequestedBy)>,
}

/// Whether a run is to pause.
#[derive(Debug)]
pub(crate) enum Pause {
    Asked(RequestedBy),
    Lifted,
}

/// How a run is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Cancelled,
    Terminated,
}

impl Pending {
    pub(crate) async fn of(store: &dyn RunReader, run: &RunId) -> Result<Self, StoreError> {
        let mut pending = Self::default();
        for message in store.mailbox(run).await? {
            // Only an effect of which nobody can tell takes that up.
            pending.is_something |= !matches!(message.body, MessageBody::Reconcile { .. });
            pending.hear(message.body);
        }
        Ok(pending)
    }

    fn hear(&mut self, body: MessageBody) {
        match body {
            MessageBody::Signal { name, payload, .. } if name == Approval::SIGNAL => self.answer = payload.read().ok(),
            MessageBody::Terminate(request) => self.end = Some((End::Terminated, request)),
            MessageBody::Pause(request) => self.pause = Some(Pause::Asked(request)),
            MessageBody::Resume(_) => self.pause = Some(Pause::Lifted),
            MessageBody::Reconcile { landed, request, .. } => self.settled = Some((landed, request)),
            // Ended at once is more than asked to end.
            MessageBody::Cancel(request) if self.end.is_none() => self.end = Some((End::Cancelled, request)),
            _ => {}
        }
    }

    /// Who paused a run that stands so.
    pub(crate) fn paused(&self, now: Option<RequestedBy>) -> Option<RequestedBy> {
        match &self.pause {
            Some(Pause::Asked(request)) => Some(request.clone()),
            Some(Pause::Lifted) => None,
            None => now,
        }
    }

    /// Whether it says what becomes of the run, pauses aside.
    pub(crate) fn decides(&self) -> bool {
        self.end.is_some() || self.answer.is_some() || self.settled.is_some()
    }

    /// The weightiest of it: what becomes of the run, and who asked for that.
    pub(crate) fn weightiest(&self) -> Option<(&'static str, RequestedBy)> {
        Some(match (&self.end, &self.settled, &self.answer, &self.pause) {
            (Some((End::Terminated, request)), ..) => ("terminated", request.clone()),
            (Some((End::Cancelled, request)), ..) => ("cancelled", request.clone()),
            (_, Some((true, request)), ..) => ("settled as landed", request.clone()),
            (_, Some((false, request)), ..) => ("settled as not landed", request.clone()),
            (.., Some(said), _) => {
                let request = RequestedBy { by: said.by.clone(), why: said.why.clone() };
                (if said.approved { "merged" } else { "sent back to its agent" }, request)
            }
            (.., Some(Pause::Asked(request))) => ("paused", request.clone()),
            _ => return None,
        })
    }

    /// The same as a sentence without its subject.
    pub(crate) fn words(&self, is_running: bool) -> Option<String> {
        let (what, request) = self.weightiest()?;
        let when = if is_running { "" } else { " when it is run again" };
        let by = if request.by.is_empty() { "somebody" } else { &request.by };
        let why = if request.why.is_empty() { String::new() } else { format!(": {}", request.why) };
        Some(format!("will be {what}{when}, asked by {by}{why}"))
    }
}
