//! The state of the work on a feature: the inputs of all steps, and the handling of their results.

use chrono::{DateTime, SecondsFormat, Utc};
use longhaul_engine::{Failure, RunId, Stop};

use crate::backlog::{Check, FeatureId};
use crate::contracts::{
    ChecksInput, Evidence, Feedback, LandInput, MergeInput, Problem, ProjectRef, RefreshInput,
    Refreshed, SealInput, SealStep, Sealed, SessionEnding, SessionInput, SessionReason,
    SessionReport, SetupInput, StepTree, TargetConflict, Worktree,
};
use crate::prompt;
use crate::resources::Resources;
use crate::settings::AgentSettings;

use super::block::{Attempts, BlockReason, FeatureBlock};
use super::outcome::Landing;
use super::{
    BrokenBase, FeatureInput, FeatureOutcome, FeatureProgress, MergeLease, RegressionCheck,
    SessionRequest,
};

/// The work on a feature.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) input: FeatureInput,
    pub(super) progress: FeatureProgress,
    /// The failures before people granted another chance.
    pub(super) forgiven: FeatureProgress,
    pub(super) reason: SessionReason,
    pub(super) feedback: Feedback,
    /// The head commit of the branch.
    pub(super) commit: String,
    /// The last tip that was merged in or conflicted.
    pub(super) tip: Option<String>,
    /// The files changed by the work.
    pub(super) files: Vec<String>,
    /// The last session failed without a change: the agent may be at fault, not the work.
    pub(super) is_fruitless: bool,
    /// The failed baseline, until a session has worked on it.
    pub(super) broken: Option<BrokenBase>,
    /// This feature repairs the baseline of the project.
    pub(super) repairs: bool,
    /// Work of this run is on the target, but its gates failed there.
    pub(super) redo: bool,
    /// The checks of the list when a gate failed.
    failed_checks: Vec<Check>,
    /// The commit after the last session.
    last_commit: String,
    /// The sessions in a row that left it as it was.
    pub(super) unchanged: u32,
    /// The run of the granted session, until it begins.
    pub(super) granted: Option<RunId>,
    /// The resources that this session may use.
    pub(super) available: Resources,
    /// The resources that the sessions of this grant have used.
    pub(super) used: Resources,
}

impl Work {
    /// The run of its project.
    pub(super) fn project_run(&self) -> Result<RunId, Stop> {
        RunId::new(self.input.project.id.clone())
            .map_err(|error| Stop::Failed(Failure::terminal(error.to_string())))
    }

    /// The state before the first step.
    pub(super) fn new(input: FeatureInput) -> Self {
        let progress = FeatureProgress { before: input.used, ..FeatureProgress::default() };
        Self {
            input,
            progress,
            forgiven: FeatureProgress::default(),
            reason: SessionReason::Start,
            feedback: Feedback::default(),
            commit: String::new(),
            tip: None,
            files: Vec::new(),
            is_fruitless: false,
            broken: None,
            repairs: false,
            redo: false,
            failed_checks: Vec::new(),
            last_commit: String::new(),
            unchanged: 0,
            granted: None,
            available: Resources::default(),
            used: Resources::default(),
        }
    }

    pub(super) fn id(&self) -> FeatureId {
        self.input.feature.id.clone()
    }

    pub(super) fn project(&self) -> ProjectRef {
        self.input.project.clone()
    }

    pub(super) fn target(&self) -> String {
        self.input.target.clone()
    }

    /// The gates of the project, then the feature's own checks; for a repair of the baseline, the
    /// baseline too.
    fn own_checks(&self) -> Vec<Check> {
        let settings = &self.input.settings;
        let baseline: &[Check] = if self.repairs { &settings.baseline } else { &[] };
        settings.gates.iter().chain(&self.input.feature.checks).chain(baseline).cloned().collect()
    }

    pub(super) fn checks(&self, tree: StepTree, commit: &str, checks: Vec<Check>) -> ChecksInput {
        ChecksInput {
            project: self.project(),
            feature: self.id(),
            tree,
            commit: commit.into(),
            checks,
            is_baseline: false,
            repeat: self.input.settings.merge.repeat_gates,
            same_as: None,
            protected: self.input.settings.protected(),
            pass_env: self.input.settings.project.pass_env.clone(),
            confinement: self.input.settings.gate_confinement(),
        }
    }

    pub(super) fn setup(&self) -> SetupInput {
        self.setup_in(StepTree::Feature, None)
    }

    /// The set-up of the merged result: its dependencies may differ from those installed.
    pub(super) fn merged_setup(&self, tree: StepTree, commit: &str) -> SetupInput {
        self.setup_in(tree, Some(commit.to_owned()))
    }

    fn setup_in(&self, tree: StepTree, commit: Option<String>) -> SetupInput {
        let settings = &self.input.settings.project;
        SetupInput {
            project: self.project(),
            feature: self.id(),
            tree,
            commit,
            script: settings.setup.clone(),
            timeout_seconds: settings.setup_timeout.0,
            pass_env: settings.pass_env.clone(),
            confinement: self.input.settings.gate_confinement(),
        }
    }

    /// The baseline shows whether the machine still works, so it always runs.
    pub(super) fn baseline(&self, commit: &str) -> ChecksInput {
        let checks = self.input.settings.baseline.clone();
        let checks = self.checks(StepTree::Feature, commit, checks);
        ChecksInput { is_baseline: true, repeat: true, ..checks }
    }

    pub(super) fn gates(&self, commit: &str) -> ChecksInput {
        self.checks(StepTree::Feature, commit, self.own_checks())
    }

    /// The gates of a claim, which run on the target: a target with a failing baseline is not done.
    /// They always run, because the claim is in doubt. Those of other features run where work of
    /// theirs lands with it.
    pub(super) fn gates_of_claim(&self, commit: &str, lease: &MergeLease) -> ChecksInput {
        let tree = StepTree::Integration(lease.tree);
        ChecksInput { repeat: true, ..self.merged_gates(tree, commit, &lease.regression) }
    }

    /// The gates on the merged result: the feature's own, the baseline, and those of finished
    /// features that the merge could break.
    pub(super) fn merged_gates(
        &self,
        tree: StepTree,
        commit: &str,
        regression: &[RegressionCheck],
    ) -> ChecksInput {
        let mut checks = self.own_checks();
        add(&mut checks, &self.input.settings.baseline);
        let regression: Vec<Check> = regression.iter().map(RegressionCheck::named).collect();
        add(&mut checks, &regression);
        self.checks(tree, commit, checks)
    }

    pub(super) fn session(&self) -> SessionInput {
        let mut feature = self.input.feature.clone();
        feature.checks = feature.checks.into_iter().map(Check::for_agents).collect();
        SessionInput {
            project: self.project(),
            target: self.target(),
            feature,
            number: self.progress.sessions,
            reason: self.reason,
            gates: self.own_checks().into_iter().map(Check::for_agents).collect(),
            feedback: self.feedback.clone(),
            agent: self.input.settings.agent.clone(),
            available: Some(self.available),
            held_out: self.input.settings.project.hidden_checks.clone(),
            redo: self.redo,
        }
    }

    pub(super) fn seal(&self, session: &SessionReport) -> SealInput {
        let ending = session.ending.text().to_owned();
        self.seal_as(SealStep::Ended { session: self.progress.sessions, ending })
    }

    /// The input that seals a step.
    pub(super) fn seal_as(&self, step: SealStep) -> SealInput {
        SealInput {
            project: self.project(),
            target: self.target(),
            feature: self.id(),
            protected: self.input.settings.protected(),
            list_file: self.input.list_file.clone(),
            step,
        }
    }

    pub(super) fn merge(&self, commit: &str, at: DateTime<Utc>, lease: &MergeLease) -> MergeInput {
        let feature = &self.input.feature;
        MergeInput {
            project: self.project(),
            target: self.target(),
            feature: self.id(),
            commit: commit.into(),
            style: self.input.settings.merge.style,
            protected: self.input.settings.protected(),
            list_file: self.input.list_file.clone(),
            subject: feature.name.clone(),
            body: feature.description.clone(),
            at: at.to_rfc3339_opts(SecondsFormat::Secs, true),
            tree: lease.tree,
            mark: lease.mark.clone(),
        }
    }

    pub(super) fn land(&self, tip: &str, candidate: &str, version: Option<String>) -> LandInput {
        LandInput {
            project: self.project(),
            target: self.target(),
            tip: tip.into(),
            commit: candidate.into(),
            list_file: self.input.list_file.clone(),
            feature: self.id(),
            version,
        }
    }

    pub(super) fn refresh(&self) -> RefreshInput {
        RefreshInput {
            project: self.project(),
            target: self.target(),
            feature: self.id(),
            list_file: self.input.list_file.clone(),
            version: self.version(),
        }
    }

    /// The request to the project for a session.
    pub(super) fn request(&self) -> SessionRequest {
        let mut files = self.files.clone();
        let mut resolves = false;
        match &self.feedback.problem {
            Some(Problem::Conflict { files: conflicts, .. }) => {
                files.extend(conflicts.iter().filter(|file| !self.files.contains(file)).cloned());
                resolves = true;
            }
            Some(Problem::CheckFailed { merged_with: Some(_), .. }) => resolves = true,
            _ => {}
        }
        SessionRequest {
            number: self.progress.sessions + self.progress.unused_sessions + 1,
            reason: self.reason,
            agent: self.input.settings.agent.identity(),
            files,
            resolves,
            broken: self.broken.clone(),
            left: self.left(),
        }
    }

    pub(super) fn take_worktree(&mut self, worktree: &Worktree) {
        self.last_commit.clone_from(&worktree.head);
        self.commit.clone_from(&worktree.head);
        self.feedback.rescued.extend(worktree.rescued.clone());
    }

    /// A broken baseline is repaired before other work.
    pub(super) fn take_baseline(&mut self, failed: Option<&Evidence>) {
        self.broken = failed.map(|failed| BrokenBase {
            commit: self.tip.clone().unwrap_or_else(|| self.commit.clone()),
            check: failed.subject(),
            ending: failed.ending(),
        });
        if let Some(failed) = failed {
            self.reason = SessionReason::Repair;
            self.feedback.problem = Some(Problem::CheckFailed {
                evidence: Box::new(failed.clone()),
                merged_with: None,
            });
        } else if self.reason == SessionReason::Repair {
            self.reason = SessionReason::Start;
            self.feedback.problem = None;
        }
    }

    /// Applies a merge of the target; returns whether the branch moved.
    pub(super) fn take_refreshed(&mut self, refreshed: Refreshed) -> bool {
        let Refreshed { commit, tip, files, conflict, .. } = refreshed;
        let has_moved = commit != self.commit;
        self.commit = commit;
        self.files = files;
        self.tip = Some(tip.clone());
        self.feedback.behind = None;
        match (conflict, &mut self.feedback.problem) {
            (Some(conflict), Some(Problem::Conflict { .. })) => {
                let files = conflict.files;
                let output = conflict.output;
                self.feedback.problem = Some(Problem::Conflict { tip, files, output });
            }
            (Some(conflict), _) => {
                self.feedback.behind = Some(TargetConflict { tip, files: conflict.files });
            }
            (None, Some(Problem::CheckFailed { merged_with, .. })) => *merged_with = None,
            (None, _) => {}
        }
        has_moved
    }

    /// Applies a granted session. Failed sessions explained by an outage of the agent do not count.
    pub(super) fn take_permit(
        &mut self,
        session: RunId,
        forgiven: u32,
        agent: Option<Box<AgentSettings>>,
        available: Resources,
    ) {
        self.granted = Some(session);
        self.available = available;
        self.used = Resources::default();
        self.progress.outage_sessions += forgiven;
        self.progress.failed_sessions = self.progress.failed_sessions.saturating_sub(forgiven);
        self.forgiven.failed_sessions =
            self.forgiven.failed_sessions.min(self.progress.failed_sessions);
        if self.reason == SessionReason::Start {
            self.feedback.problem = None;
        }
        if let Some(agent) = agent {
            self.input.settings.agent = *agent;
        }
    }

    /// Counts a session whose agent could not be started. The branch is unchanged.
    pub(super) fn take_no_session(&mut self, session: &SessionReport) {
        self.progress.failed_sessions += 1;
        self.is_fruitless = true;
        if let (SessionEnding::NotStarted { reason }, None) =
            (&session.ending, &self.feedback.problem)
        {
            let reason = reason.clone();
            let output_tail = String::new();
            self.feedback.problem = Some(Problem::SessionFailed { reason, output_tail });
        }
    }

    /// Counts the turns, tokens, cost and time of a session, and notes the findings of its own
    /// checkpoints.
    pub(super) fn spend(&mut self, session: &SessionReport) {
        self.progress.tampered += u32::from(!session.tampered.is_empty());
        self.note_tampering(Some(self.progress.sessions), &session.tampered);
        self.note_outside(&session.outside);
        if let Some(facts) = &session.agent {
            self.progress.turns += facts.turns.unwrap_or_default();
            self.progress.usage += facts.usage;
            if let Some(cost) = facts.cost_micros {
                *self.progress.cost_micros.get_or_insert_default() += cost;
            }
        }
        let used = session.used();
        self.progress.session_ms += used.time_ms;
        self.used += used;
    }

    /// The resources that further sessions may use, by the limits of the feature.
    fn left(&self) -> Resources {
        self.input.settings.limits.resources().minus(self.progress.used())
    }

    /// Takes over work of an earlier run.
    pub(super) fn take_found(&mut self, sealed: &Sealed) {
        self.note_tampering(None, &sealed.tampered);
        self.note_left_out(None, &sealed.left_out);
        self.note_outside(&sealed.outside);
        self.files.clone_from(&sealed.files);
        self.commit.clone_from(&sealed.commit);
    }

    pub(super) fn take_session(&mut self, session: &SessionReport, sealed: &Sealed) {
        self.files.clone_from(&sealed.files);
        self.commit.clone_from(&sealed.commit);
        self.broken = None;
        self.progress.tampered += u32::from(!sealed.tampered.is_empty());
        self.note_tampering(Some(self.progress.sessions), &sealed.tampered);
        self.note_left_out(Some(self.progress.sessions), &sealed.left_out);
        self.note_outside(&sealed.outside);
        let unread = [&session.unread_notes, &sealed.unread_notes].into_iter().flatten();
        let unread = unread.map(|reason| prompt::unread_notes(reason));
        let notes = [session.notes.trim(), sealed.notes.trim()].map(str::to_owned);
        let notes: Vec<_> =
            notes.into_iter().chain(unread).filter(|notes| !notes.is_empty()).collect();
        // Notes of people hold until the feature is done; the rest is about the last session only.
        let guidance = std::mem::take(&mut self.feedback.guidance);
        self.feedback = Feedback {
            notes: notes.join("\n"),
            tampered: sealed.tampered.clone(),
            left_out: sealed.left_out.clone(),
            rescued: sealed.rescued.iter().cloned().collect(),
            guidance,
            ..Feedback::default()
        };
        if matches!(session.ending, SessionEnding::ClaimsDone | SessionEnding::ContextFull) {
            self.note_commit(&sealed.commit);
        }
        match &session.ending {
            SessionEnding::ClaimsDone | SessionEnding::Landed { .. } => {}
            SessionEnding::ContextFull => self.reason = SessionReason::Continue,
            SessionEnding::Failed { reason, .. } | SessionEnding::NotStarted { reason } => {
                self.progress.failed_sessions += 1;
                self.reason = SessionReason::Retry;
                let reason = reason.clone();
                let output_tail = session.output_tail.clone();
                self.feedback.problem = Some(Problem::SessionFailed { reason, output_tail });
            }
        }
    }

    /// Counts sessions in a row that left the commit as it was.
    pub(super) fn note_commit(&mut self, commit: &str) {
        self.unchanged = if self.last_commit == commit { self.unchanged + 1 } else { 0 };
        commit.clone_into(&mut self.last_commit);
    }

    /// Whether the last sessions changed nothing: another one would not either.
    pub(super) fn is_stalled(&self) -> bool {
        self.unchanged >= self.input.settings.limits.unchanged_sessions
    }

    pub(super) fn count_failed_gate(&mut self, failed: &Evidence, tip: Option<&str>) {
        self.progress.failed_gates += 1;
        self.record_failed_gate(failed, tip);
    }

    /// Whether the checks were edited since a gate failed.
    pub(super) fn has_edited_checks(&self) -> bool {
        let is_failed = matches!(self.feedback.problem, Some(Problem::CheckFailed { .. }));
        is_failed
            && self.reason == SessionReason::GatesFailed
            && self.failed_checks != self.own_checks()
    }

    /// Records a failed gate without a session in between. A broken baseline may be the cause, and
    /// is repaired first.
    pub(super) fn record_uncounted_failure(&mut self, failed: &Evidence) {
        if self.broken.is_none() {
            self.record_failed_gate(failed, None);
        }
    }

    /// Records a failed gate for the next session; it counts towards no limit.
    pub(super) fn record_failed_gate(&mut self, failed: &Evidence, tip: Option<&str>) {
        self.failed_checks = self.own_checks();
        self.reason = SessionReason::GatesFailed;
        let merged_with = tip.map(str::to_owned);
        self.feedback.problem =
            Some(Problem::CheckFailed { evidence: Box::new(failed.clone()), merged_with });
    }

    pub(super) fn take_conflict(&mut self, tip: &str, files: &[String], output: &str) {
        self.progress.conflicts += 1;
        self.reason = SessionReason::Conflict;
        self.feedback.problem = Some(Problem::Conflict {
            tip: tip.into(),
            files: files.to_vec(),
            output: output.into(),
        });
    }

    /// The reason for no further session, if a limit is reached.
    pub(super) fn exhausted(&self) -> Option<BlockReason> {
        let limits = &self.input.settings.limits;
        if let Some(resource) = self.left().lacks() {
            return Some(BlockReason::Limit { resource, limits: limits.resources() });
        }
        if self.is_stalled() {
            return Some(BlockReason::Stalled { sessions: self.unchanged });
        }
        let progress = &self.progress;
        let forgiven = &self.forgiven;
        let failed_gates = progress.failed_gates - forgiven.failed_gates;
        let conflicts = progress.conflicts - forgiven.conflicts;
        let failed_sessions = progress.failed_sessions.saturating_sub(forgiven.failed_sessions);
        let counts = [
            (Attempts::FailedGates, failed_gates, limits.failed_gates),
            (Attempts::Conflicts, conflicts, limits.conflicts),
            (Attempts::FailedSessions, failed_sessions, limits.failed_sessions),
            (Attempts::Sessions, self.counted_sessions(), limits.sessions),
        ];
        let (of, count, _) = counts.into_iter().find(|(_, count, limit)| count >= limit)?;
        Some(BlockReason::Attempts { of, count })
    }

    /// Whether no session has changed a file so far.
    pub(super) fn has_changed_nothing(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn has_used_its_sessions(&self) -> bool {
        self.counted_sessions() >= self.input.settings.limits.sessions
    }

    /// Sessions that count towards the limit.
    fn counted_sessions(&self) -> u32 {
        let uncounted = self.progress.outage_sessions + self.progress.handoffs;
        self.progress.sessions.saturating_sub(uncounted)
    }

    /// Gives up.
    pub(super) fn blocked(&self, reason: BlockReason) -> FeatureOutcome {
        let problem = self.feedback.problem.clone();
        let block = FeatureBlock { reason, problem };
        FeatureOutcome::Blocked { block, progress: self.progress.clone() }
    }

    pub(super) fn passed(&self, landing: Landing) -> FeatureOutcome {
        self.passed_by(landing, false)
    }

    pub(super) fn passed_as_claimed(&self, landing: Landing) -> FeatureOutcome {
        self.passed_by(landing, true)
    }

    fn passed_by(&self, landing: Landing, claim: bool) -> FeatureOutcome {
        let Landing { commit, waits_on_next } = landing;
        // Only those of the list, not a baseline that was repaired in between.
        let checks =
            self.input.settings.gates.iter().chain(&self.input.feature.checks).cloned().collect();
        let progress = self.progress.clone();
        let files = self.files.clone();
        FeatureOutcome::Passed { commit, waits_on_next, progress, files, checks, claim }
    }
}

/// Adds checks whose commands are new.
fn add(checks: &mut Vec<Check>, more: &[Check]) {
    for check in more {
        if checks.iter().all(|known| known.run != check.run) {
            checks.push(check.clone());
        }
    }
}
