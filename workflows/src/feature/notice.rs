//! Findings about the work, taken from the results of steps.

use longhaul_engine::{Context, ContextExt, Stop};

use crate::contracts::{
    ChecksInput, ChecksReport, LeftOut, OutsideChange, Precheck, Problem, RunChecks, SessionReason,
    StepTree, Tampering,
};
use crate::finding::Finding;

use super::Work;
use super::block::BlockReason;

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
) -> Result<Option<BlockReason>, Stop> {
    match &work.feedback.problem {
        Some(Problem::CheckFailed { evidence, .. }) if evidence.is_setup => {
            Ok(Some(BlockReason::Setup))
        }
        _ => base(context, work).await,
    }
}

/// Runs the feature's own checks before its first session. A check that passes here is no evidence
/// of the work. Returns why no session can make a check pass.
async fn base(context: &mut dyn Context, work: &mut Work) -> Result<Option<BlockReason>, Stop> {
    let own = &work.input.feature.checks;
    let is_first = work.reason == SessionReason::Start || work.input.claimed;
    if own.is_empty() || work.broken.is_some() || !is_first {
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
    let impossible = report.evidence.into_iter().find(|evidence| evidence.unmet_need.is_some());
    Ok(impossible.map(|evidence| BlockReason::Check { evidence: Box::new(evidence) }))
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

    fn precheck(&self) -> ChecksInput {
        self.checks(StepTree::Feature, &self.commit, self.input.feature.checks.clone())
    }
}
