//! The steps of a run of a feature: what is told when one is completed.

use longhaul_engine::{Activity, Event, Payload};
use longhaul_workflows::contracts::{
    ChecksInput, ChecksReport, CloseWorktree, Land, LandInput, Landed, MergeCandidate, MergeInput, Merged,
    OpenWorktree, RunChecks, RunSession, RunSetup, Seal, Sealed, SessionEnding, SessionInput, SessionReport,
    SetupInput, SetupReport, Worktree,
};

use super::happening::Kind;
use super::run::{Candidate, FeatureRun, Tested};
use super::session::{Checkpoint, SessionStatus, Step};
use super::text::{iso, precise};
use super::words;

impl FeatureRun {
    /// Takes the result of an activity in.
    pub(super) fn complete(&mut self, event: &Event, name: &str, input: &Payload, output: &Payload) {
        let known = match name {
            OpenWorktree::NAME => self.read(event, output).map(|worktree| self.take_worktree(event, &worktree)),
            RunSetup::NAME => self.both(event, input, output, Self::take_setup),
            RunChecks::NAME => self.both(event, input, output, Self::take_checks),
            RunSession::NAME => self.both(event, input, output, Self::take_session),
            Seal::NAME => self.read(event, output).map(|sealed| self.take_checkpoint(event, &sealed)),
            MergeCandidate::NAME => self.both(event, input, output, Self::take_merge),
            Land::NAME => self.both(event, input, output, Self::take_landing),
            CloseWorktree::NAME => {
                self.tell(event, Kind::WorktreeClosed, "The work tree is removed.".to_owned());
                self.with_step("clean-up");
                return;
            }
            _ => return,
        };
        if known.is_none() && name == RunSession::NAME {
            self.lose_report(event);
        }
    }

    /// Reads input and output of an activity and hands them on.
    fn both<I, O>(
        &mut self,
        event: &Event,
        input: &Payload,
        output: &Payload,
        take: fn(&mut Self, &Event, &I, &O),
    ) -> Option<()>
    where
        I: serde::de::DeserializeOwned,
        O: serde::de::DeserializeOwned,
    {
        let (input, output) = (self.read(event, input)?, self.read(event, output)?);
        take(self, event, &input, &output);
        Some(())
    }

    fn take_worktree(&mut self, event: &Event, worktree: &Worktree) {
        let kept = worktree
            .rescued
            .as_ref()
            .map_or_else(String::new, |kept| format!(" Uncommitted work found in it is kept under {kept}."));
        let text = format!("The work tree is {}, on the branch {}.{kept}", worktree.path, worktree.branch);
        self.tell(event, Kind::WorktreeOpened, text);
        self.with_commit(&worktree.head);
        self.with_step("work tree");
    }

    fn take_setup(&mut self, event: &Event, input: &SetupInput, report: &SetupReport) {
        let merged = input.commit.is_some();
        self.expects_baseline = !merged;
        let Some(evidence) = &report.evidence else { return };
        if !evidence.passed() {
            self.tell(event, Kind::SetupFailed, words::failed_check(evidence, merged));
        } else if merged {
            self.tell(event, Kind::SetupPassed, format!("`{}` ran on the merged result.", evidence.command));
        } else {
            self.tell(event, Kind::SetupPassed, format!("`{}` ran.", evidence.command));
            self.with_step("set-up");
        }
    }

    fn take_checks(&mut self, event: &Event, input: &ChecksInput, report: &ChecksReport) {
        if std::mem::take(&mut self.expects_baseline) {
            return self.take_baseline(event, report);
        }
        let merged = self.candidate.as_ref().is_some_and(|candidate| candidate.commit == input.commit);
        self.tested = Some(Tested { at: event.at, text: iso(event.at) });
        if let Some(failed) = report.failed() {
            self.tell(event, Kind::GatesFailed, words::failed_check(failed, merged));
        } else {
            self.tell(event, Kind::GatesPassed, words::passed_checks(report, merged));
            self.pass(if merged { Step::MergedGates } else { Step::Gates });
        }
        self.with_commit(&input.commit);
    }

    fn take_baseline(&mut self, event: &Event, report: &ChecksReport) {
        if let Some(failed) = report.failed() {
            self.tell(event, Kind::BaselineFailed, words::failed_check(failed, false));
        } else if !report.evidence.is_empty() {
            self.tell(event, Kind::BaselinePassed, words::passed_checks(report, false));
            self.with_step("baseline check");
        }
    }

    fn take_session(&mut self, event: &Event, input: &SessionInput, report: &SessionReport) {
        let kind = match report.ending {
            SessionEnding::ClaimsDone | SessionEnding::Landed { .. } => Kind::SessionEnded,
            SessionEnding::ContextFull => Kind::Handoff,
            SessionEnding::Failed { .. } | SessionEnding::NotStarted { .. } => Kind::SessionFailed,
        };
        let failed = kind == Kind::SessionFailed;
        if let Some(session) = self.sessions.last_mut() {
            session.status = if failed { SessionStatus::Error } else { SessionStatus::Completed };
            session.take_notes(&report.notes);
        }
        self.tell(event, kind, words::session_ended(report));
        if !failed {
            self.pass(Step::Session);
            self.with_step(&format!("session {}", input.number));
        }
    }

    /// A session that a person said has happened: what it came to, nobody wrote down.
    fn lose_report(&mut self, event: &Event) {
        if let Some(session) = self.sessions.last_mut() {
            session.status = SessionStatus::Interrupted;
        }
        self.tell(event, Kind::SessionFailed, "It left no report.".to_owned());
    }

    fn take_checkpoint(&mut self, event: &Event, sealed: &Sealed) {
        self.candidate = None;
        self.tell(event, Kind::Checkpoint, words::checkpoint(sealed));
        self.with_commit(&sealed.commit);
        self.pass(Step::Checkpoint);
        if let Some(session) = self.sessions.last_mut() {
            session.take_notes(&sealed.notes);
            session.checkpoints.push(Checkpoint {
                id: format!("{}-c{}", session.id, event.position),
                created_at: precise(event.at),
                step: format!("session {}", session.number),
                trigger: "auto",
                commit: sealed.commit.clone(),
                position: event.position,
            });
        }
        if !sealed.tampered.is_empty() {
            self.tell(event, Kind::Tampering, words::tampering(sealed));
        }
    }

    fn take_merge(&mut self, event: &Event, input: &MergeInput, merged: &Merged) {
        match merged {
            Merged::Candidate { commit, tip, .. } => {
                let (is_old, at) = (commit == tip, input.at.clone());
                self.candidate = Some(Candidate { commit: commit.clone(), at, is_old });
                self.tell(event, Kind::Merged, format!("The work merges with {tip}."));
                self.with_commit(commit);
                self.pass(Step::Merge);
            }
            Merged::Conflict { tip, files, output } => {
                self.tell(event, Kind::MergeConflict, words::conflict(tip, files, output));
                self.with_commit(&input.commit);
            }
        }
    }

    fn take_landing(&mut self, event: &Event, input: &LandInput, landed: &Landed) {
        self.tell(event, Kind::Landed, words::landed(landed));
        self.with_commit(&input.commit);
        self.pass(Step::Landing);
        // The commit has a time of the test in its feature list. The list of the user must not differ from it.
        let Some(candidate) = self.candidate.take().filter(|candidate| candidate.commit == input.commit) else {
            return;
        };
        let tested = Tested { at: event.at, text: candidate.at };
        if !candidate.is_old {
            self.landed = Some(tested.clone());
        }
        self.tested = Some(tested);
    }
}
