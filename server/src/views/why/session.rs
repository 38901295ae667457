//! The cause of a session's wait, also as the reason of its feature.

use longhaul_engine::{Activity, RunId, Status, StoreError};
use longhaul_workflows::contracts::{CallModel, RunSession};
use longhaul_workflows::narrative::clock;
use longhaul_workflows::projection::{CurrentWait, RunView, SessionView};
use longhaul_workflows::settings::Driver;

use super::super::View;
use super::super::list::RunLine;
use super::{Kind, Reason};
use crate::advice;
use crate::head;
use crate::questions::{self, Question};
use crate::run_kind::RunKind;

impl View<'_> {
    /// The reason of a session run, or of a feature run whose session is one; `None` for others.
    pub(super) async fn of_session(
        &self,
        run: &RunId,
        line: &RunLine,
        view: &RunView,
    ) -> Result<Option<Reason>, StoreError> {
        let is_feature = line.workflow == RunKind::Feature;
        if !is_feature && line.workflow != RunKind::Session {
            return Ok(None);
        }
        if let Some(question) = questions::open_questions(self.store, run).await?.first() {
            return Ok(Some(Reason::question(question)));
        }
        let own = match view.session() {
            _ if !is_feature => Some(run.clone()),
            Some(session) if session.ended_at.is_none() => session.run(),
            _ => None,
        };
        if let Some(reason) =
            self.owner.queued.get(own.as_ref().unwrap_or(run)).and_then(|pool| Reason::queued(pool))
        {
            return Ok(Some(reason));
        }
        let Some(own) = own else { return Ok(None) };
        let Some(summary) = self.store.summary(&own).await? else { return Ok(None) };
        if is_feature && let Some(reason) = Reason::held(&own, &summary.status) {
            return Ok(Some(reason));
        }
        let session = RunView::of(&self.store.read(&own, summary.origin).await?);
        let step = match questions::progress(self.store, &own).await?.map(|progress| progress.step)
        {
            Some(step) if !step.is_empty() => format!(", {step}"),
            _ => String::new(),
        };
        let step = format!("{}{step}", view.progress.step().unwrap_or_default());
        Ok(match &session.waits {
            Some(waits @ (CurrentWait::Retry { .. } | CurrentWait::Timer { .. })) => {
                Some(Reason::waits(waits))
            }
            Some(CurrentWait::Call { name, since }) if name == RunSession::NAME => {
                let what = if step.is_empty() { "its agent" } else { &step };
                Some(Self::working(
                    self.owner.runs(run),
                    &format!("{what}, since {}", clock(*since)),
                ))
            }
            None if self.waits_for_place(&own).await? => Some(self.pool(line).await?),
            _ if is_feature => Some(Self::working(self.owner.runs(run), &step)),
            _ => None,
        })
    }

    /// Whether a session waits for a place in the pool of agents.
    async fn waits_for_place(&self, session: &RunId) -> Result<bool, StoreError> {
        if !self.owner.runs(session) {
            return Ok(false);
        }
        let view = SessionView::of(&self.store.read(session, 0).await?);
        Ok(view.driver() != Driver::Api && !view.has_begun())
    }

    async fn pool(&self, line: &RunLine) -> Result<Reason, StoreError> {
        let mut at_work = Vec::new();
        for (run, summary) in self.store.runs("").await? {
            if RunKind::of(&summary) != RunKind::Session || summary.status != Status::Running {
                continue;
            }
            let view = RunView::of(&self.store.read(&run, summary.origin).await?);
            if let Some(CurrentWait::Call { name, .. }) = view.waits
                && name == RunSession::NAME
            {
                at_work.push(run.to_string());
            }
        }
        let project = line.header.project.clone().and_then(|project| RunId::new(project).ok());
        let root = match project {
            Some(project) => head::known_root(self.store, &project).await?,
            None => None,
        };
        let root = root.unwrap_or_default();
        let text =
            format!("It waits for a free place among the agents: {} at work.", at_work.len());
        let more = (at_work.len() + 1).to_string();
        let reason = Reason::of(Kind::Pool, text).with_features(at_work);
        let words = ["run", root.as_str(), "--max-agents", more.as_str()];
        Ok(reason.with_remedy(format!("{} lets more work at once", advice::command(words))))
    }
}

impl Reason {
    /// The reason of a feature whose session is parked or paused.
    fn held(session: &RunId, status: &Status) -> Option<Reason> {
        match status {
            Status::Parked(effect) => Some(Reason::parked(session, effect)),
            Status::Paused(request) => Some(Reason::paused("Its session was", session, request)),
            _ => None,
        }
    }

    /// A model call that waits until the provider has answered others.
    fn queued(pool: &str) -> Option<Self> {
        let provider = pool.strip_prefix(&CallModel::pool(""))?;
        let text =
            format!("It waits for its turn: providers.toml limits the requests to {provider}.");
        let remedy = format!("raise `concurrent` of `{provider}` there, then `longhaul run`");
        Some(Self::of(Kind::Pool, text).with_remedy(remedy))
    }

    /// A question of a session to a person.
    fn question(question: &Question) -> Self {
        let text = format!("Its agent asks: {}", question.text.trim());
        Self::of(Kind::Question, text).with_remedy(format!("{} answers it", question.remedy()))
    }
}
