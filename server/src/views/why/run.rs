//! Why a run makes no progress, or its outcome.

use longhaul_engine::{RunId, Status, StoreError, Summary};
use longhaul_workflows::backlog::{FeatureId, FeatureStatus};
use longhaul_workflows::feature::{FeatureOutcome, Stage};
use longhaul_workflows::narrative::{clock, short};
use longhaul_workflows::project::{ProjectSummary, WaitReason};
use longhaul_workflows::projection::{CurrentWait, ProjectState, ProjectView, RunView, State};

use super::super::View;
use super::super::list::RunLine;
use super::{Kind, Reason, WhyDocument, batch, project};
use crate::advice;
use crate::head::{self, RunHead};
use crate::run_kind::RunKind;
use crate::status;

impl View<'_> {
    pub(crate) async fn why_run(&self, run: &RunId) -> Result<WhyDocument, StoreError> {
        let head = RunHead::of(self.store, run)
            .await?
            .ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let line = self.line(run.clone(), head.summary.clone()).await?;
        let view = RunView::of(&self.store.read(run, head.summary.origin).await?);
        let mut reasons = if head.summary.status.is_terminal() {
            let again = self.again(run, &line, &head.summary).await?;
            outcome_reasons(run, again, &line, &head.summary.status, &view)
        } else {
            self.reasons(run, &line, &head, &view).await?
        };
        reasons.extend(Reason::noticed(&head.findings(&view.progress.findings)));
        if self.needs_process(run, &line, &head, &reasons) {
            let project = line.header.project.clone().and_then(|id| RunId::new(id).ok());
            let root = match project {
                Some(project) => head::known_root(self.store, &project).await?,
                None => None,
            };
            reasons.push(Reason::not_running(&root.unwrap_or_default()));
        }
        Ok(WhyDocument { about: run.to_string(), header: line.header, reasons })
    }

    /// Whether an open run continues as soon as a process runs it.
    fn needs_process(
        &self,
        run: &RunId,
        line: &RunLine,
        head: &RunHead,
        reasons: &[Reason],
    ) -> bool {
        if self.owner.runs(run) || head.summary.status.is_terminal() || head.is_held_by_pause() {
            return false;
        }
        let has = |kinds: &[Kind]| reasons.iter().any(|reason| kinds.contains(&reason.kind));
        if line.workflow == RunKind::Project {
            // The state says whether there is work that needs no person.
            return line.header.status == State::Waiting && !has(&[Kind::Halted]);
        }
        let is_pending = !line.pending.is_empty();
        !has(&[Kind::Done, Kind::Blocked, Kind::Halted, Kind::NotRunning])
            && (is_pending
                || !has(&[Kind::Paused, Kind::Parked, Kind::Approval, Kind::Question, Kind::Stuck]))
    }

    /// The remedy for a closed run.
    async fn again(
        &self,
        run: &RunId,
        line: &RunLine,
        summary: &Summary,
    ) -> Result<Option<String>, StoreError> {
        if line.workflow == RunKind::Batch {
            return Ok(batch::continues_batch(&summary.labels));
        }
        if let Some(next) = &line.superseded_by {
            return Ok(Some(format!("{} says what came of the next run", advice::on("why", next))));
        }
        let project = line.header.project.clone().and_then(|id| RunId::new(id).ok());
        let Some(project) = project else { return Ok(None) };
        let view = self.project_view(&project).await?;
        let root = view.summary.as_ref().map(|summary| summary.root.as_str()).unwrap_or_default();
        let again = || format!("{} continues it", advice::run(root));
        let Some(feature) = line.header.feature.clone().and_then(|id| FeatureId::new(id).ok())
        else {
            return Ok(Some(again()));
        };
        Ok(match view.feature(&feature).map(|known| known.status) {
            Some(FeatureStatus::Completed) => None,
            Some(FeatureStatus::Blocked | FeatureStatus::InProgress)
                if summary.pruned.is_some() =>
            {
                Some(format!(
                    "{} tries it again",
                    advice::feature("unblock", feature.as_str(), root)
                ))
            }
            Some(FeatureStatus::Blocked | FeatureStatus::InProgress) => Some(format!(
                "{} tries it again; {} lists the steps from which `fork` can continue",
                advice::on("resume", run),
                advice::on("checkpoints", run),
            )),
            _ => Some(again()),
        })
    }

    async fn reasons(
        &self,
        run: &RunId,
        line: &RunLine,
        head: &RunHead,
        view: &RunView,
    ) -> Result<Vec<Reason>, StoreError> {
        let mut reasons = Vec::new();
        if let Some(stop) = self.owner.stuck.get(run) {
            let reason = Reason::of(
                Kind::Stuck,
                format!("It cannot go on in the process that runs it: {stop}"),
            );
            let history = advice::on("history", run);
            reasons.push(reason.with_remedy(format!("{history} shows the recorded events")));
        }
        match &head.summary.status {
            Status::Paused(request) => {
                reasons.push(Reason::paused("It was", run, request));
            }
            Status::Parked(effect) => {
                reasons.push(Reason::parked(run, effect));
            }
            _ => {}
        }
        let is_held = !reasons.is_empty() || head.is_answered();
        reasons.extend(line.pending.iter().map(Reason::pending));
        match line.workflow {
            RunKind::Project => {
                let waits_for_machine =
                    matches!(head.summary.status, Status::Waiting { machine: Some(_), .. });
                reasons
                    .extend(view.waits.as_ref().filter(|_| waits_for_machine).map(Reason::waits));
                let document = status::brief(self.store, run, &self.owner).await?;
                let of_features = document.features.iter().flat_map(|line| &line.pending);
                reasons.extend(of_features.map(Reason::pending));
                let view = self.project_view(run).await?;
                reasons.extend(project::obstacles_now(&view, run, head));
                if document.stopped_by.is_none() || document.status == ProjectState::Paused {
                    reasons.extend(project::progress(&document, run));
                }
                reasons.extend(Reason::noticed(&view.findings));
            }
            RunKind::Batch => reasons.extend(self.batch_reasons(run).await?),
            _ if !is_held => reasons.push(self.doing(run, line, view).await?),
            _ => {}
        }
        reasons.extend(view.failed_check().map(|check| Reason::gate(check, run)));
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
        if let Some(reason) = held_by_project(run, &project, line) {
            return Ok(reason);
        }
        if let Some(reason) = self.of_session(run, line, view).await? {
            return Ok(reason);
        }
        let step = view.progress.step();
        let stage = view.progress.stage.as_ref();
        match &view.waits {
            Some(CurrentWait::Message { .. }) if stage.is_some_and(Stage::waits_for_turn) => {
                Ok(turn(line, project.summary.as_ref()))
            }
            Some(CurrentWait::Message { .. }) if stage == Some(&Stage::Approval) => {
                let text =
                    "Its checks passed; a person has to agree before it is merged.".to_owned();
                Ok(Reason::of(Kind::Approval, text).with_remedy(advice::approve_or_deny(run)))
            }
            Some(CurrentWait::Call { name, since }) => {
                let what = step.unwrap_or_else(|| name.replace('_', " "));
                Ok(Self::working(self.owner.runs(run), &format!("{what}, since {}", clock(*since))))
            }
            Some(waits) => Ok(Reason::waits(waits)),
            None => Ok(Self::working(
                self.owner.runs(run),
                step.as_deref().unwrap_or("the last step in its history"),
            )),
        }
    }

    /// In progress, if a process runs it.
    pub(super) fn working(is_run: bool, what: &str) -> Reason {
        if is_run {
            return Reason::of(Kind::Working, format!("It is working: {what}."));
        }
        Reason::of(Kind::Working, format!("It was at: {what}."))
    }
}

/// Why its project has no session for it.
fn held_by_project(run: &RunId, project: &ProjectView, line: &RunLine) -> Option<Reason> {
    let id = line.header.project.clone().and_then(|id| RunId::new(id).ok())?;
    let feature = project.features.values().find(|feature| feature.run.as_ref() == Some(run))?;
    let waits = feature.waits.as_ref()?;
    let paused = project.summary.as_ref().and_then(|summary| summary.paused.as_ref());
    let paused = paused.filter(
        |paused| matches!(waits, WaitReason::Agent { failure } if *failure == paused.reason),
    );
    let held = || {
        let waits = waits.to_string();
        Reason::of(Kind::Session, format!("It {}.", waits.trim_end_matches('.')))
    };
    Some(paused.map_or_else(held, |paused| Reason::outage(paused, &id)))
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
fn outcome_reasons(
    run: &RunId,
    again: Option<String>,
    line: &RunLine,
    status: &Status,
    view: &RunView,
) -> Vec<Reason> {
    match (status, &view.outcome) {
        (Status::Failed(message), _) => {
            let reason = Reason::of(Kind::Failed, format!("It failed: {message}"));
            vec![Reason { remedy: again, ..reason }]
        }
        (Status::Cancelled, _) => vec![Reason { remedy: again, ..Reason::ended(view.ended_by()) }],
        (_, Some(FeatureOutcome::Passed { commit, waits_on_next, .. })) => {
            let done = Reason::of(
                Kind::Done,
                format!("It is done: its gates passed on {}.", short(commit)),
            );
            let waits =
                |reason| Reason::of(Kind::Checkout, format!("It waits on longhaul/next: {reason}"));
            std::iter::once(done).chain(waits_on_next.as_ref().map(waits)).collect()
        }
        (_, Some(FeatureOutcome::Blocked { block, .. })) => {
            let reason = super::reason::sentence(&block.to_string());
            let blocked = Reason::of(Kind::Blocked, format!("It was given up: {reason}"));
            let blocked = Reason { remedy: again, ..blocked }.with_output(block.output());
            std::iter::once(blocked)
                .chain(view.failed_check().map(|check| Reason::gate(check, run)))
                .collect()
        }
        _ if line.header.status == State::Failed => {
            let message = line.reason.as_deref().unwrap_or("no reason is recorded");
            let reason = Reason::of(Kind::Failed, format!("It failed: {message}"));
            vec![Reason { remedy: again, ..reason }]
        }
        _ => vec![Reason::of(Kind::Done, "It is done.")],
    }
}
