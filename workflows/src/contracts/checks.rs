//! Checks that Longhaul runs itself, and the evidence that they leave.

use std::time::Duration;

use longhaul_engine::{Delays, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, FeatureId};
use crate::settings::Confinement;

use super::ProjectRef;

activity! {
    /// Runs the project's set-up script in a work tree: a new one, or that of a merged result, whose dependencies may be others
    /// than before. A script that fails is a report, not a failure of the activity.
    RunSetup = "run_setup": SetupInput => SetupReport, long()
}

/// Input of [`RunSetup`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetupInput {
    /// The project.
    pub project: ProjectRef,
    /// The feature.
    pub feature: FeatureId,
    /// The work tree.
    pub worktree: String,
    /// The commit that it is brought to first; `None`: it is where it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The script, relative to the work tree; a script that is not there is skipped.
    pub script: String,
    /// How long it may take.
    pub timeout_seconds: u64,
    /// Names of variables that it is given besides the usual ones.
    pub pass_env: Vec<String>,
    /// What it may reach.
    #[serde(default, skip_serializing_if = "Confinement::is_default")]
    pub confinement: Confinement,
}

/// Output of [`RunSetup`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetupReport {
    /// What happened; `None`: there is no such script.
    pub evidence: Option<Evidence>,
}

impl SetupReport {
    /// The script, if it failed.
    pub fn failed(&self) -> Option<&Evidence> {
        self.evidence.as_ref().filter(|evidence| !evidence.passed())
    }
}

activity! {
    /// Runs checks one after the other, in a tree that no agent has touched and that is brought to `commit` and set up first
    /// (ignored files stay, for build caches). Stops at the first that fails. Checks that fail are a report, not a failure of
    /// the activity.
    RunChecks = "run_checks": ChecksInput => ChecksReport, long()
}

/// Input of [`RunChecks`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChecksInput {
    /// The project.
    pub project: ProjectRef,
    /// The feature that they are run for.
    pub feature: FeatureId,
    /// The work tree of the feature, whose gates run in a tree beside it, or that of a merged
    /// result.
    pub worktree: String,
    /// The commit that is checked.
    pub commit: String,
    /// The checks.
    pub checks: Vec<Check>,
    /// Globs of files that are put back as the commit has them before each check, relative to the
    /// root.
    pub protected: Vec<String>,
    /// Names of variables that they are given besides the usual ones.
    pub pass_env: Vec<String>,
    /// What they may reach.
    #[serde(default, skip_serializing_if = "Confinement::is_default")]
    pub confinement: Confinement,
}

activity! {
    /// Runs the checks of a feature on the commit that its work begins on: one that passes there is no evidence of the work. All
    /// are run, each for a short time only.
    CheckBase = "check_base": ChecksInput => ChecksReport, long()
}

/// Output of [`RunChecks`] and [`CheckBase`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChecksReport {
    /// Of each check that was run, in order; the last is the failed one, if one failed.
    pub evidence: Vec<Evidence>,
}

/// What a check that ran leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The check.
    pub name: String,
    /// The command that was run.
    pub command: String,
    /// The commit that it was run on.
    pub commit: String,
    /// Its exit code; `None` if a signal or a time limit ended it.
    pub exit_code: Option<i32>,
    /// What ended it, if it was not an exit: `timed out after 600 s`, `killed by signal 9`.
    pub ended_by: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// blake3 of its whole output, in hex.
    pub output_digest: String,
    /// The end of its output, at most 8 KiB.
    pub output_tail: String,
    /// The file that holds the whole output.
    pub log: String,
    /// Of a held-out check, what was held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Protected files that differed from the commit just before the check, and were put back;
    /// relative to the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
}

/// What was held out from agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOut {
    /// blake3 of the paths and contents of its files, in hex.
    pub digest: String,
    /// What an agent is told when the check fails.
    pub message: Option<String>,
}

impl Evidence {
    /// Whether the check passed.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }

    /// How it ended, for people: `exit code 1`.
    pub fn ending(&self) -> String {
        match (&self.ended_by, self.exit_code) {
            (Some(reason), _) => reason.clone(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "no exit code".into(),
        }
    }
}

impl ChecksReport {
    /// The check that failed, if one did.
    pub fn failed(&self) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| !evidence.passed())
    }
}

/// The checks have time limits of their own; the activity's is only the last resort.
fn long() -> Policy {
    Policy {
        start_to_close: Duration::from_hours(24),
        retry: Delays::List(vec![Duration::from_secs(1), Duration::from_secs(5)]),
        pool: Some("checks".into()),
        ..Policy::idempotent()
    }
}
