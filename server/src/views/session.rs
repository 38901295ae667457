//! Sessions of agents: their records, their conversations and their handoffs.
//!
//! A session is a run below that of its feature, whose id names it.

mod handoff;
pub mod list;
mod record;
pub mod transcript;

use longhaul_engine::{RunId, StoreError, Summary};
use longhaul_workflows::projection::{RunView, Session, SessionView};
use longhaul_workflows::settings::Driver;
use serde::{Deserialize, Serialize};

use super::{Name, View};
use crate::advice;
use crate::pruned;
use crate::request::RequestError;
use crate::run_kind::RunKind;

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
pub(super) struct FoundSession {
    pub(super) run: RunId,
    pub(super) summary: Summary,
    pub(super) view: SessionView,
}

impl View<'_> {
    /// Resolves the name of a session: its id or a unique part of it, or a feature or its run,
    /// which mean the last session.
    pub(super) async fn session(&self, name: &Name) -> Result<FoundSession, RequestError> {
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
        let summary = self.existing(&run).await?;
        if let Some(at) = summary.pruned_at() {
            return Err(RequestError::refused(pruned::refusal(&run, at)));
        }
        match RunKind::of(&summary) {
            RunKind::Session => Ok(self.session_of(run, summary).await?),
            RunKind::Feature => self.of_feature(run, number).await,
            kind => Err(RequestError::refused(format!(
                "run {run} is a {kind}, and no session: {} lists its sessions",
                advice::command(["session", "list", run.as_str()])
            ))),
        }
    }

    async fn session_of(&self, run: RunId, summary: Summary) -> Result<FoundSession, StoreError> {
        let view = SessionView::of(&self.store.read(&run, 0).await?);
        Ok(FoundSession { run, summary, view })
    }

    /// The view of a run of a feature, with the attempts of its agents.
    pub(super) async fn feature_view(&self, run: &RunId) -> Result<RunView, StoreError> {
        let mut view = RunView::of(&self.store.read(run, 0).await?);
        for session in &mut view.sessions {
            let run = session.run().filter(|_| session.driver != Driver::Api);
            let Some(run) = run else { continue };
            if self.store.summary(&run).await?.is_some() {
                self.store.read(&run, 0).await?.iter().for_each(|event| session.apply(event));
            }
        }
        for log in view.sessions.iter_mut().filter_map(|session| session.log.as_mut()) {
            *log = self.output_file(log).unwrap_or_default();
        }
        for log in view.checks.iter_mut().map(|check| &mut check.evidence.log) {
            *log = self.output_file(log).unwrap_or_default();
        }
        Ok(view)
    }

    /// A session of a feature run: the one with this number, else the last one.
    async fn of_feature(
        &self,
        run: RunId,
        number: Option<u32>,
    ) -> Result<FoundSession, RequestError> {
        let view = RunView::of(&self.store.read(&run, 0).await?);
        let is_meant = |session: &&Session| number.is_none_or(|number| session.number == number);
        let session = view.sessions.iter().rev().find(is_meant).and_then(Session::run);
        let Some(session) = session else {
            return Err(RequestError::refused(match number {
                Some(number) => format!("run {run} has no session {number}"),
                None => format!("run {run} has had no session yet"),
            }));
        };
        let summary = self.existing(&session).await?;
        Ok(self.session_of(session, summary).await?)
    }

    pub(super) async fn existing(&self, run: &RunId) -> Result<Summary, StoreError> {
        self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))
    }
}
