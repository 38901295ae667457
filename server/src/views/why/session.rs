//! What a session of the built-in agent waits for, also as the reason of its feature.

use longhaul_engine::{RunId, StoreError};
use longhaul_workflows::contracts::CallModel;
use longhaul_workflows::feature::FeatureWorkflow;
use longhaul_workflows::projection::{RunView, SessionState, Waits};
use longhaul_workflows::session::SessionWorkflow;

use super::super::View;
use super::super::list::RunLine;
use super::{Kind, Reason};
use crate::questions::{self, Question};

impl View<'_> {
    /// The reason of a session run, or of a feature run whose session is one; `None` for others.
    pub(super) async fn of_session(
        &self,
        run: &RunId,
        line: &RunLine,
        view: &RunView,
    ) -> Result<Option<Reason>, StoreError> {
        let is_feature = line.workflow == FeatureWorkflow::NAME;
        if !is_feature && line.workflow != SessionWorkflow::NAME {
            return Ok(None);
        }
        if let Some(question) = questions::open_questions(self.store, run).await?.first() {
            return Ok(Some(Reason::question(question)));
        }
        let session = view.session().filter(|session| session.state == SessionState::Working);
        let own = session.and_then(super::super::session::own_run).filter(|_| is_feature);
        if let Some(reason) =
            self.queued.get(own.as_ref().unwrap_or(run)).and_then(|pool| Reason::queued(pool))
        {
            return Ok(Some(reason));
        }
        let Some(own) = own else { return Ok(None) };
        let Some(summary) = self.store.summary(&own).await? else { return Ok(None) };
        let session = RunView::of(&self.store.read(&own, summary.origin).await?);
        if let Some(waits @ (Waits::Retry { .. } | Waits::Timer { .. })) = &session.waits {
            return Ok(Some(Reason::waits(waits)));
        }
        let step = questions::progress(self.store, &own).await?.map(|progress| progress.step);
        let step = step.filter(|step| !step.is_empty());
        let what = step.map_or_else(String::new, |step| format!(", {step}"));
        Ok(Some(self.working(&format!("{}{what}", view.progress.step))))
    }
}

impl Reason {
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
