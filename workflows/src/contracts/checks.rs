//! Checks that Longhaul runs itself, and their evidence.

use std::time::Duration;

use longhaul_engine::{Delays, Policy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, FeatureId};
use crate::settings::Confinement;

use super::{ProjectRef, StepTree};

activity! {
    /// Runs the project's set-up script in a new work tree, or in that of a merged result, which
    /// may have other dependencies. A failing script is a report, not a failure of the activity.
    RunSetup = "run_setup": SetupInput => SetupReport, |input| ranked(input.commit.is_some())
}

/// Input of [`RunSetup`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SetupInput {
    /// The project.
    pub project: ProjectRef,
    /// The feature.
    pub feature: FeatureId,
    /// The work tree.
    pub tree: StepTree,
    /// The commit to check out first; `None`: the tree is already there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The script, relative to the work tree; a missing script is skipped.
    pub script: String,
    /// The timeout.
    pub timeout_seconds: u64,
    /// Names of variables passed to it besides the usual ones.
    pub pass_env: Vec<String>,
    /// Its access to network and files.
    #[serde(default, skip_serializing_if = "Confinement::is_default")]
    pub confinement: Confinement,
}

/// Output of [`RunSetup`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetupReport {
    /// The result; `None`: there is no such script.
    pub evidence: Option<Evidence>,
}

impl SetupReport {
    /// The script, if it failed.
    pub fn failed(&self) -> Option<&Evidence> {
        self.evidence.as_ref().filter(|evidence| !evidence.passed())
    }
}

activity! {
    /// Runs checks in sequence, in a tree that no agent has touched. The tree is brought to
    /// `commit` and set up first (ignored files stay, for build caches). Stops at the first
    /// failure. Failing checks are a report, not a failure of the activity. A check that has passed
    /// on the same content with the same set-up is not repeated.
    RunChecks = "run_checks": ChecksInput => ChecksReport, |input| ranked(!input.is_baseline)
}

/// Input of [`RunChecks`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChecksInput {
    /// The project.
    pub project: ProjectRef,
    /// The feature whose checks run.
    pub feature: FeatureId,
    /// The work tree.
    pub tree: StepTree,
    /// The commit to check.
    pub commit: String,
    /// The checks.
    pub checks: Vec<Check>,
    /// Whether they run before the work begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_baseline: bool,
    /// Whether checks run that have passed on the same content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// The sealed commit, if `commit` differs from it by the mark of the feature in the list only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// Globs of files restored from the commit before each check, relative to the root.
    pub protected: Vec<String>,
    /// Names of variables passed to them besides the usual ones.
    pub pass_env: Vec<String>,
    /// Their access to network and files.
    #[serde(default, skip_serializing_if = "Confinement::is_default")]
    pub confinement: Confinement,
}

activity! {
    /// Runs the checks of a feature on the commit that its work begins on: a check that passes
    /// there is no evidence of the work. All checks run, each with a short timeout.
    Precheck = "precheck": ChecksInput => ChecksReport, ranked(false)
}

/// Output of [`RunChecks`] and [`Precheck`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChecksReport {
    /// The evidence of each check that ran, in order; a failed one is the last.
    pub evidence: Vec<Evidence>,
}

/// The exit codes of shells for a command that cannot be executed, or was not found.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// The evidence of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The check.
    pub name: String,
    /// Its command.
    pub command: String,
    /// The commit it ran on.
    pub commit: String,
    /// Its exit code; `None` after a signal or a timeout.
    pub exit_code: Option<i32>,
    /// How it ended without an exit code: `timed out after 600 s`, `killed by signal 9`.
    pub ended_by: Option<String>,
    /// The duration.
    pub duration_ms: u64,
    /// blake3 of its whole output, in hex.
    pub output_digest: String,
    /// The end of its output, at most 8 KiB.
    pub output_tail: String,
    /// The file that holds the whole output. Recorded relative to the data directory.
    pub log: String,
    /// Whether it ran earlier, on `commit`, with the same content and set-up, and was not repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// For a held-out check: its hash and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Protected files that differed from the commit just before the check and were restored;
    /// relative to the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<String>,
    /// Whether it is the set-up script of the project, without which checks prove little.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_setup: bool,
    /// Missing prerequisites that an agent cannot provide. Only sought before any work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet_need: Option<UnmetNeed>,
}

/// A missing prerequisite of a check that an agent cannot provide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UnmetNeed {
    /// A protected file that does not exist.
    File {
        /// The file, relative to the root.
        path: String,
    },
    /// A program that is not in the search path.
    Program {
        /// Its name.
        name: String,
    },
}

/// The part of a check that is held out from agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOut {
    /// blake3 of the paths and contents of its files, in hex.
    pub digest: String,
    /// The message for an agent when the check fails.
    pub message: Option<String>,
}

impl Evidence {
    /// Whether the check passed.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0)
    }

    /// Whether its failure says something about the content: it ended by itself, and could be run.
    pub fn is_verdict(&self) -> bool {
        self.exit_code.is_some_and(|code| !CANNOT_RUN.contains(&code))
    }

    /// Its kind, for people: the check or the set-up script.
    pub fn subject(&self) -> String {
        if self.is_setup {
            return "the set-up script".into();
        }
        format!("the check `{}`", self.name)
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
    /// The failed check, if any.
    pub fn failed(&self) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| !evidence.passed())
    }
}

/// The checks have their own timeouts; the activity's is the last resort. The checks of finished
/// work go before those of work that has not begun.
fn ranked(is_finished: bool) -> Policy {
    Policy {
        rank: u8::from(is_finished),
        start_to_close: Duration::from_hours(24),
        retry: Delays::List(vec![Duration::from_secs(1), Duration::from_secs(5)]),
        pool: Some("checks".into()),
        ..Policy::idempotent()
    }
}
