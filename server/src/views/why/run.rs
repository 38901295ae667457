//! Why a run makes no progress, or its outcome.

use longhaul_engine::{Activity, EventKind, RunId, Status, StoreError};
use longhaul_workflows::batch::BatchWorkflow;
use longhaul_workflows::contracts::RunSession;
use longhaul_workflows::feature::{FeatureOutcome, FeatureProgress, FeatureWorkflow};
use longhaul_workflows::narrative::{clock, short};
use longhaul_workflows::project::{ProjectSummary, ProjectWorkflow};
use longhaul_workflows::projection::{ProjectView, RunView, State, Waits};

use super::super::View;
use super::super::list::RunLine;
use super::{Kind, Reason, WhyDocument, project};
use crate::head::RunHead;

impl View<'_> {
    pub(crate) async fn why_run(&self, run: &RunId) -> Result<WhyDocument, StoreError> {
        let head = RunHead::of(self.store, run)
            .await?
            .ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let line = self.line(run.clone(), head.summary.clone()).await?;
        let view = RunView::of(&self.store.read(run, head.summary.origin).await?);
        let mut reasons = if head.summary.status.is_terminal() {
            outcome_reasons(&line, &head.summary.status, &view)
        } else {
            self.reasons(run, &line, &head, &view).await?
        };
        reasons.extend(Reason::noticed(&head.findings(&view.progress.findings)));
        let is_told = |reason: &Reason| {
            matches!(reason.kind, Kind::Done | Kind::Blocked | Kind::Halted | Kind::NotRunning)
        };
        if !self.is_running && line.ended_at.is_none() && !reasons.iter().any(is_told) {
            reasons.push(Reason::not_running());
        }
        Ok(WhyDocument { about: run.to_string(), header: line.header, reasons })
    }

    async fn reasons(
        &self,
        run: &RunId,
        line: &RunLine,
        head: &RunHead,
        view: &RunView,
    ) -> Result<Vec<Reason>, StoreError> {
        let mut reasons = Vec::new();
        if let Some(stop) = self.stuck.get(run) {
            let reason = Reason::of(
                Kind::Stuck,
                format!("It cannot go on in the process that runs it: {stop}"),
            );
            reasons.push(reason.with_remedy("`longhaul history` shows the recorded events"));
        }
        match &head.summary.status {
            Status::Paused(request) => {
                reasons.push(Reason::paused("It was", run.as_str(), request));
            }
            Status::Parked(effect) => {
                let settle = format!(
                    "`longhaul reconcile {run} --landed` or `--not-landed` says what became of it"
                );
                let text = format!("The run is parked: {effect}.");
                reasons.push(Reason::of(Kind::Parked, text).with_remedy(settle));
            }
            _ => {}
        }
        let is_held = !reasons.is_empty();
        reasons.extend(line.pending.iter().map(Reason::pending));
        match line.workflow.as_str() {
            ProjectWorkflow::NAME => {
                let waits_for_machine =
                    matches!(head.summary.status, Status::Waiting { machine: Some(_), .. });
                reasons
                    .extend(view.waits.as_ref().filter(|_| waits_for_machine).map(Reason::waits));
                reasons.extend(project::reasons(&self.project_view(run).await?));
            }
            BatchWorkflow::NAME => reasons.extend(self.batch_reasons(run).await?),
            _ if !is_held => reasons.push(self.doing(run, line, view).await?),
            _ => {}
        }
        reasons.extend(view.failed_check().map(Reason::gate));
        Ok(reasons)
    }

    pub(super) async fn project_view(&self, project: &RunId) -> Result<ProjectView, StoreError> {
        Ok(ProjectView::of(&self.store.published(project).await?))
    }

    /// Its current activity or wait.
    async fn doing(
        &self,
        run: &RunId,
        line: &RunLine,
        view: &RunView,
    ) -> Result<Reason, StoreError> {
        let project = match line.header.project.clone().and_then(|project| RunId::new(project).ok())
        {
            Some(project) => self.project_view(&project).await?,
            None => ProjectView::default(),
        };
        if let Some(reason) = held_by_project(run, &project) {
            return Ok(reason);
        }
        if let Some(reason) = self.of_session(run, line, view).await? {
            return Ok(reason);
        }
        let is_feature = line.workflow == FeatureWorkflow::NAME;
        let step = view.progress.step.as_str();
        match &view.waits {
            Some(Waits::Message { .. })
                if is_feature && FeatureProgress::WAITS_FOR_TURN.contains(&step) =>
            {
                Ok(turn(line, project.summary.as_ref()))
            }
            Some(Waits::Message { .. })
                if is_feature && step == FeatureProgress::AWAITS_APPROVAL =>
            {
                let text =
                    "Its checks passed; a person has to agree before it is merged.".to_owned();
                let remedy = format!("`longhaul approve {run}` or `longhaul deny {run} --why …`");
                Ok(Reason::of(Kind::Approval, text).with_remedy(remedy))
            }
            Some(Waits::Call { name, since }) => {
                let what = if step.is_empty() { name.replace('_', " ") } else { step.to_owned() };
                Ok(self.working(&format!("{what}, since {}", clock(*since))))
            }
            Some(waits) => Ok(Reason::waits(waits)),
            None if is_feature && step.starts_with("session") && self.is_running => {
                self.pool().await
            }
            None if step.is_empty() => Ok(self.working("the last step in its history")),
            None => Ok(self.working(step)),
        }
    }

    /// In progress, if a process runs it.
    pub(super) fn working(&self, what: &str) -> Reason {
        if self.is_running {
            return Reason::of(Kind::Working, format!("It is working: {what}."));
        }
        Reason {
            text: format!("No process runs it now; it was at: {what}."),
            ..Reason::not_running()
        }
    }

    /// A session that waits for a place in the pool of agents.
    async fn pool(&self) -> Result<Reason, StoreError> {
        let mut at_work = Vec::new();
        for (run, summary) in self.store.runs("").await? {
            if summary.workflow != FeatureWorkflow::NAME || summary.status != Status::Running {
                continue;
            }
            let events = self.store.read(&run, summary.origin).await?;
            let last = events
                .iter()
                .rev()
                .find(|event| event.kind.command().is_some())
                .map(|event| &event.kind);
            if matches!(last, Some(EventKind::ActivityStarted { name, .. }) if name == RunSession::NAME)
            {
                at_work.push(run.to_string());
            }
        }
        let text =
            format!("It waits for a free place among the agents: {} at work.", at_work.len());
        let reason = Reason::of(Kind::Pool, text).with_features(at_work);
        Ok(reason.with_remedy("`longhaul run --max-agents` says how many there are"))
    }
}

/// Why its project has no session for it.
fn held_by_project(run: &RunId, project: &ProjectView) -> Option<Reason> {
    let feature = project.features.values().find(|feature| feature.run.as_ref() == Some(run))?;
    let waits = feature.waits.as_ref()?;
    let paused = project.summary.as_ref().and_then(|summary| summary.paused.as_ref());
    let paused = paused.filter(|paused| waits.contains(&paused.reason));
    let held = || Reason::of(Kind::Session, format!("It {}.", waits.trim_end_matches('.')));
    Some(paused.map_or_else(held, Reason::outage))
}

/// The holder of the merge lease and the queue before this feature.
fn turn(line: &RunLine, project: Option<&ProjectSummary>) -> Reason {
    let names = |features: &[longhaul_workflows::backlog::FeatureId]| -> Vec<String> {
        features.iter().map(ToString::to_string).collect()
    };
    let feature = line.header.feature.as_ref();
    let merging = project.map(|project| names(&project.merging)).unwrap_or_default();
    let queue = project.map(|project| names(&project.merge_queue)).unwrap_or_default();
    let before: Vec<String> = queue.into_iter().take_while(|id| Some(id) != feature).collect();
    let holder = match &merging[..] {
        merging if merging.iter().any(|holder| Some(holder) == feature) => {
            "it has just been given".to_owned()
        }
        [] => "no feature merges".to_owned(),
        [holder] => format!("{holder} merges"),
        holders => format!("{} merge", holders.join(", ")),
    };
    let queue = if before.is_empty() {
        String::new()
    } else {
        format!("; before it: {}", before.join(", "))
    };
    let reason =
        Reason::of(Kind::Turn, format!("It waits for its turn to merge: {holder}{queue}."));
    reason.with_features(merging.into_iter().chain(before).collect())
}

/// The outcome of a closed run.
fn outcome_reasons(line: &RunLine, status: &Status, view: &RunView) -> Vec<Reason> {
    match (status, &view.outcome) {
        (Status::Failed(message), _) => {
            vec![Reason::of(Kind::Failed, format!("It failed: {message}"))]
        }
        (Status::Cancelled, _) => vec![ended(line, view)],
        (_, Some(FeatureOutcome::Passed { commit, waits_on_next, .. })) => {
            let done = Reason::of(
                Kind::Done,
                format!("It is done: its gates passed on {}.", short(commit)),
            );
            let waits =
                |reason| Reason::of(Kind::Checkout, format!("It waits on longhaul/next: {reason}"));
            std::iter::once(done).chain(waits_on_next.as_ref().map(waits)).collect()
        }
        (_, Some(FeatureOutcome::Blocked { reason, output, .. })) => {
            let again = line.header.feature.as_ref().map(|id| {
                format!(
                    "`longhaul feature unblock {id}` tries it again; `longhaul fork {id} --from STEP --note TEXT` goes on \
                     with a note to its agent (`longhaul checkpoints {id}` lists the steps)"
                )
            });
            let text = format!("It was given up: {}", super::reason::sentence(reason));
            let blocked =
                Reason { remedy: again, ..Reason::of(Kind::Blocked, text) }.with_output(output);
            std::iter::once(blocked).chain(view.failed_check().map(Reason::gate)).collect()
        }
        _ => vec![Reason::of(Kind::Done, "It is done.")],
    }
}

fn ended(line: &RunLine, view: &RunView) -> Reason {
    let reason = Reason::ended(view.ended_by());
    match (line.header.status, &line.header.run) {
        _ if line.workflow == ProjectWorkflow::NAME => {
            reason.with_remedy("`longhaul run` continues it")
        }
        (State::Cancelled, Some(run)) if line.header.feature.is_some() => {
            reason.with_remedy(format!(
                "`longhaul resume {run}` tries it again, `longhaul restart {run}` from nothing"
            ))
        }
        _ => reason,
    }
}
