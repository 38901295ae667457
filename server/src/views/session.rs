//! Sessions of agents: their records, their conversations and their handoffs.
//!
//! A session of the built-in agent is a run of its own, whose id names it. The session of another
//! agent is an activity of the run of its feature; its id is that of the run with its number.

mod handoff;
pub mod list;
mod record;
pub mod transcript;

use longhaul_engine::{RunId, StoreError, Summary};
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::projection::{RunView, Session, SessionView};
use longhaul_workflows::session::SessionWorkflow;
use serde::{Deserialize, Serialize};

use super::{Name, View};
use crate::pruned;
use crate::request::RequestError;

pub use handoff::HandoffDocument;
pub use list::{SessionLine, SessionsDocument};
pub use record::SessionDocument;
pub use transcript::TranscriptDocument;

/// The record of a session: by its id, or the last one of a feature.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowSession(pub Name);

/// The handoff package that a session has written, or received.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowHandoff(pub Name);

/// A session in the log.
pub(super) enum Found {
    /// A run of its own.
    Run(Box<Hosted>),
    /// An activity of the run of its feature.
    Activity(Box<Called>),
}

/// A session that is a run.
pub(super) struct Hosted {
    pub(super) run: RunId,
    pub(super) summary: Summary,
    pub(super) view: SessionView,
}

/// A session that is an activity.
pub(super) struct Called {
    pub(super) run: RunId,
    pub(super) summary: Summary,
    pub(super) view: RunView,
    pub(super) session: Session,
}

impl View<'_> {
    /// Resolves the name of a session: its id or a unique part of it, or a feature or its run,
    /// which mean the last session.
    pub(super) async fn session(&self, name: &Name) -> Result<Found, RequestError> {
        let (run, number) = match self.run_of(name).await {
            Ok(run) => (run, None),
            Err(error) => {
                let numbered = name.text.trim_end_matches('/').rsplit_once('/');
                let Some((run, Ok(number))) = numbered.map(|(run, n)| (run, n.parse())) else {
                    return Err(error);
                };
                let of_run = Name { text: run.to_owned(), ..name.clone() };
                let run = self.run_of(&of_run).await.map_err(|_| error)?;
                (run, Some(number))
            }
        };
        let summary = self.known(&run).await?;
        if let Some(at) = pruned::at(&summary) {
            return Err(RequestError::refused(pruned::refusal(&run, &at)));
        }
        match summary.workflow.as_str() {
            SessionWorkflow::NAME => Ok(self.hosted(run, summary).await?),
            FeatureWorkflow::NAME => self.of_feature(run, summary, number).await,
            workflow => Err(RequestError::refused(format!(
                "run {run} is a {workflow}, and no session: `longhaul session list {run}` lists its sessions"
            ))),
        }
    }

    async fn hosted(&self, run: RunId, summary: Summary) -> Result<Found, StoreError> {
        let view = SessionView::of(&self.store.read(&run, 0).await?);
        Ok(Found::Run(Box::new(Hosted { run, summary, view })))
    }

    /// A session of a feature run: the one with this number, else the last one.
    async fn of_feature(
        &self,
        run: RunId,
        summary: Summary,
        number: Option<u32>,
    ) -> Result<Found, RequestError> {
        let view = RunView::of(&self.store.read(&run, 0).await?);
        let is_meant = |session: &&Session| number.is_none_or(|number| session.number == number);
        let session = view.sessions.iter().rev().find(is_meant).cloned();
        let Some(session) = session else {
            return Err(RequestError::refused(match number {
                Some(number) => format!("run {run} has no session {number}"),
                None => format!("run {run} has had no session yet"),
            }));
        };
        if let Some(run) = own_run(&session)
            && let Some(summary) = self.store.summary(&run).await?
        {
            return Ok(self.hosted(run, summary).await?);
        }
        Ok(Found::Activity(Box::new(Called { run, summary, view, session })))
    }

    pub(super) async fn known(&self, run: &RunId) -> Result<Summary, StoreError> {
        self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))
    }
}

/// The run of a session, if it has one of its own.
pub(super) fn own_run(session: &Session) -> Option<RunId> {
    session.own_run().and_then(|run| RunId::new(run).ok())
}

/// The id of a session of a feature run.
pub(super) fn id(run: &RunId, session: &Session) -> String {
    own_run(session).map_or_else(|| format!("{run}/{}", session.number), |own| own.to_string())
}
