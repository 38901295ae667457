//! Why a run does not go on, or what it came to.

use longhaul_engine::{EventKind, RunId, Status, StoreError, Summary};
use longhaul_workflows::backlog::FeatureId;
use longhaul_workflows::batch::BatchWorkflow;
use longhaul_workflows::feature::{FeatureProgress, FeatureWorkflow};
use longhaul_workflows::project::{FeatureView, ProjectView, ProjectWorkflow};

use super::super::facts::{Facts, NAME_OF_SESSION, Waits};
use super::super::lane::Lane;
use super::super::list::RunLine;
use super::super::words::clock;
use super::super::{View, published};
use super::outcome::over;
use super::{Kind, Reason, WhyDocument};
use crate::findings;
use crate::pending::{Pause, Pending};

/// The steps in which a feature waits for its turn.
const WAITING_FOR_TURN: [&str; 2] = ["waiting to merge", "waiting to check the target"];

impl View<'_> {
    pub(crate) async fn why_run(&self, run: &RunId) -> Result<WhyDocument, StoreError> {
        let summary = self.store.summary(run).await?.ok_or_else(|| StoreError::UnknownRun(run.clone()))?;
        let line = self.line(run.clone(), summary.clone()).await?;
        let reasons = self.reasons(&line, &summary).await?;
        Ok(WhyDocument {
            about: run.to_string(),
            project: line.project,
            feature: line.feature,
            run: Some(run.clone()),
            state: line.status,
            reasons,
        })
    }

    async fn reasons(&self, line: &RunLine, summary: &Summary) -> Result<Vec<Reason>, StoreError> {
        let run = &line.run;
        let events = self.store.read(run, summary.origin).await?;
        let facts = Facts::of(&events);
        let findings = findings::of_run(self.store, run, facts.output.as_ref()).await?;
        if summary.status.is_terminal() {
            let mut reasons = over(line, &summary.status, &facts);
            reasons.extend(Reason::noticed(&findings));
            return Ok(reasons);
        }
        let mut reasons = Vec::new();
        if let Some(stop) = self.stuck.get(run) {
            let reason = Reason::of(Kind::Stuck, format!("It cannot go on in the process that runs it: {stop}"));
            reasons.push(reason.with_remedy("`longhaul history` shows what was recorded"));
        }
        let pending = Pending::of(self.store, run).await?;
        reasons.extend(self.orders(run, &summary.status, &pending));
        if let (Status::Parked(effect), None) = (&summary.status, &pending.settled) {
            let settle = format!("`longhaul reconcile {run} --landed` or `--not-landed` says what became of it");
            let text = format!("The run is parked: {effect}.");
            reasons.push(Reason::of(Kind::Parked, text).with_remedy(settle));
        }
        let is_held =
            reasons.iter().any(|reason| reason.kind != Kind::Paused || matches!(summary.status, Status::Paused(_)));
        if line.workflow == ProjectWorkflow::NAME {
            let waits_for_machine = matches!(summary.status, Status::Waiting { machine: Some(_), .. });
            reasons.extend(facts.waits.as_ref().filter(|_| waits_for_machine).map(Reason::waits));
            reasons.extend(self.project_reasons(run).await?);
        } else if line.workflow == BatchWorkflow::NAME {
            reasons.extend(self.batch_reasons(run).await?);
        } else if !is_held {
            reasons.push(self.doing(line, &facts).await?);
        }
        reasons.extend(facts.failed_check().map(Reason::gate));
        reasons.extend(Reason::noticed(&findings));
        let is_told =
            |reason: &Reason| matches!(reason.kind, Kind::Done | Kind::Blocked | Kind::Halted | Kind::NotRunning);
        if !self.is_running && !reasons.iter().any(is_told) {
            reasons.push(Reason::not_running());
        }
        Ok(reasons)
    }

    /// Who has paused it, and what it was told and has not taken yet.
    fn orders(&self, run: &RunId, status: &Status, pending: &Pending) -> Vec<Reason> {
        let paused = match (&pending.pause, status) {
            (Some(Pause::Asked(request)), _) => Some(("It stops before its next step:", request)),
            (None, Status::Paused(request)) => Some(("It was", request)),
            _ => None,
        };
        let mut reasons: Vec<Reason> =
            paused.into_iter().map(|(what, request)| Reason::paused(what, run.as_str(), request)).collect();
        let kind = match (&pending.end, &pending.settled) {
            (Some(_), _) => Kind::Cancelled,
            (None, Some(_)) => Kind::Parked,
            (None, None) => Kind::Approval,
        };
        if pending.decides()
            && let (Some(words), Some((_, request))) = (pending.words(self.is_running), pending.weightiest())
        {
            reasons.push(Reason::of(kind, format!("It {words}.")).asked_by(&request));
        }
        reasons
    }

    /// What it does, or waits for.
    async fn doing(&self, line: &RunLine, facts: &Facts) -> Result<Reason, StoreError> {
        if let Some(reason) = self.held_by_project(line).await? {
            return Ok(reason);
        }
        let is_feature = line.workflow == FeatureWorkflow::NAME;
        let step = facts.step.as_deref().unwrap_or_default();
        match &facts.waits {
            Some(Waits::Message { .. }) if is_feature && WAITING_FOR_TURN.contains(&step) => self.turn(line).await,
            Some(Waits::Message { .. }) if is_feature && step == FeatureProgress::AWAITS_APPROVAL => {
                let text = "Its checks passed; a person has to agree before it is merged.".to_owned();
                let remedy = format!("`longhaul approve {0}` or `longhaul deny {0} --why …`", line.run);
                Ok(Reason::of(Kind::Approval, text).with_remedy(remedy))
            }
            Some(Waits::Call { since, .. }) if !step.is_empty() => {
                Ok(self.working(&format!("{step}, since {}", clock(*since))))
            }
            Some(Waits::Call { name, since, .. }) => {
                Ok(self.working(&format!("{}, since {}", name.replace('_', " "), clock(*since))))
            }
            Some(waits) => Ok(Reason::waits(waits)),
            None if is_feature && step.starts_with("session") && self.is_running => self.pool().await,
            None if step.is_empty() => Ok(self.working("what its history shows last")),
            None => Ok(self.working(step)),
        }
    }

    /// Why its project has no session for it, or does not let it merge.
    async fn held_by_project(&self, line: &RunLine) -> Result<Option<Reason>, StoreError> {
        let (Some(project), Some(feature)) = (&line.project, &line.feature) else { return Ok(None) };
        let (Ok(project), Ok(feature)) = (RunId::new(project.clone()), FeatureId::new(feature)) else {
            return Ok(None);
        };
        let values = self.store.published(&project).await?;
        let Some(view) = published::<FeatureView>(&values, &FeatureView::key(&feature)) else { return Ok(None) };
        let is_current = view.run.as_ref() == Some(&line.run);
        let Some(waits) = view.waits.filter(|_| is_current) else { return Ok(None) };
        let paused = published::<ProjectView>(&values, ProjectView::KEY).and_then(|view| view.paused);
        let paused = paused.filter(|paused| waits.contains(&paused.reason));
        let held = || Reason::of(Kind::Session, format!("It {}.", waits.trim_end_matches('.')));
        Ok(Some(paused.as_ref().map_or_else(held, Reason::outage)))
    }

    /// It does something, if a process runs it.
    fn working(&self, what: &str) -> Reason {
        if self.is_running {
            return Reason::of(Kind::Working, format!("It is working: {what}."));
        }
        Reason { text: format!("No process runs it now; it was at: {what}."), ..Reason::not_running() }
    }

    /// Who merges, while this one waits to.
    async fn turn(&self, line: &RunLine) -> Result<Reason, StoreError> {
        let lane = match line.project.as_ref().and_then(|project| RunId::new(project.clone()).ok()) {
            Some(project) => self.lane(&project).await?,
            None => Lane::default(),
        };
        let before: Vec<String> =
            lane.waiting.iter().take_while(|id| Some(*id) != line.feature.as_ref()).cloned().collect();
        let holder = match &lane.holders[..] {
            holders if holders.iter().any(|holder| Some(holder) == line.feature.as_ref()) => {
                "it has just been given".to_owned()
            }
            [] => "nobody has it".to_owned(),
            [holder] => format!("{holder} has it"),
            holders => format!("{} have it", holders.join(", ")),
        };
        let queue = if before.is_empty() { String::new() } else { format!("; before it: {}", before.join(", ")) };
        let reason = Reason::of(Kind::Turn, format!("It waits for its turn to merge: {holder}{queue}."));
        Ok(reason.with_features(lane.holders.into_iter().chain(before).collect()))
    }

    /// A session that has not begun waits for a place among the agents: those that have one.
    async fn pool(&self) -> Result<Reason, StoreError> {
        let mut at_work = Vec::new();
        for (run, summary) in self.store.runs("").await? {
            if summary.workflow != FeatureWorkflow::NAME || summary.status != Status::Running {
                continue;
            }
            let events = self.store.read(&run, summary.origin).await?;
            let last = events.iter().rev().find(|event| event.kind.command().is_some()).map(|event| &event.kind);
            if matches!(last, Some(EventKind::ActivityStarted { name, .. }) if name == NAME_OF_SESSION) {
                at_work.push(run.to_string());
            }
        }
        let text = format!("It waits for a free place among the agents: {} at work.", at_work.len());
        let reason = Reason::of(Kind::Pool, text).with_features(at_work);
        Ok(reason.with_remedy("`longhaul run --max-agents` says how many there are"))
    }
}
