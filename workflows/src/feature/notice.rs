//! Findings about the work, taken from the results of steps.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{
    ChecksInput, ChecksReport, Evidence, LeftOut, OutsideChange, Precheck, Problem, RunChecks,
    SessionReason, StepTree, Tampering, UnmetNeed,
};
use crate::finding::Finding;
use crate::prompt;

use super::{FeatureOutcome, Work};

/// Runs checks, and records the files restored before them.
pub(super) async fn checks(
    context: &mut dyn Context,
    work: &mut Work,
    input: ChecksInput,
) -> Result<ChecksReport, Stop> {
    let report = context.call::<RunChecks>(input).await?;
    for evidence in report.evidence.iter().filter(|evidence| !evidence.put_back.is_empty()) {
        let check = evidence.name.clone();
        let files = evidence.put_back.clone();
        work.note_finding(Finding::PutBack { check, files });
    }
    Ok(report)
}

/// Why no session can succeed on a base without any work: its set-up fails, or a check of the
/// feature cannot be run. An agent would be paid although only a person can correct it.
pub(super) async fn unready(
    context: &mut dyn Context,
    work: &mut Work,
) -> Result<Option<FeatureOutcome>, Stop> {
    let reason = match &work.feedback.problem {
        Some(problem @ Problem::CheckFailed { evidence, .. }) if evidence.is_setup => {
            Some(format!(
                "the set-up fails without any work of an agent. {} Correct and commit it",
                prompt::summary(problem)
            ))
        }
        _ => base(context, work).await?,
    };
    Ok(reason.map(|reason| work.unready(reason)))
}

/// Runs the feature's own checks before its first session. A check that passes here is no evidence
/// of the work. Returns why no session can make a check pass.
async fn base(context: &mut dyn Context, work: &mut Work) -> Result<Option<String>, Stop> {
    let own = &work.input.feature.checks;
    if own.is_empty() || work.broken.is_some() || work.reason != SessionReason::Start {
        return Ok(None);
    }
    let report = context.call::<Precheck>(work.precheck()).await?;
    let own = &work.input.feature.checks;
    let passed = report.evidence.iter().filter(|evidence| evidence.passed());
    let checks: Vec<String> = passed.map(|evidence| evidence.name.clone()).collect();
    if !checks.is_empty() {
        let all = checks.len() == own.len();
        work.note_finding(Finding::PassedOnBase { checks, all });
    }
    Ok(report.evidence.iter().find_map(impossible))
}

/// Why no session can make a check pass.
fn impossible(evidence: &Evidence) -> Option<String> {
    let need = match evidence.unmet_need.as_ref()? {
        UnmetNeed::File { path } => format!(
            "{path} does not exist, and agents may not write it, because it is protected. Write and commit it"
        ),
        UnmetNeed::Program { name } => format!(
            "there is no program `{name}` ({}). Install it, or correct the check",
            evidence.ending()
        ),
    };
    let command = evidence.command.lines().next().unwrap_or_default();
    Some(match evidence.held_out {
        Some(_) => format!("the held-out check `{}` cannot pass: {need}", evidence.name),
        None => format!("the check `{command}` cannot pass: {need}"),
    })
}

impl Work {
    pub(super) fn note_finding(&mut self, finding: Finding) {
        self.progress.findings.add(finding);
    }

    /// `session`: the session that changed them.
    pub(super) fn note_tampering(&mut self, session: Option<u32>, tampered: &[Tampering]) {
        for Tampering { file, what } in tampered.iter().cloned() {
            self.note_finding(Finding::Tampered { session, file, what });
        }
    }

    pub(super) fn note_left_out(&mut self, session: Option<u32>, files: &[LeftOut]) {
        for file in files.iter().cloned() {
            self.note_finding(Finding::LeftOut { session, file });
        }
    }

    pub(super) fn note_outside(&mut self, changes: &[OutsideChange]) {
        for change in changes.iter().cloned() {
            self.note_finding(Finding::Outside { change });
        }
    }

    pub(super) fn unready(&self, reason: String) -> FeatureOutcome {
        let (output, progress) = (String::new(), self.progress.clone());
        FeatureOutcome::Blocked { reason, over_limit: None, unready: true, output, progress }
    }

    fn precheck(&self) -> ChecksInput {
        self.checks(StepTree::Feature, &self.commit, self.input.feature.checks.clone())
    }
}
