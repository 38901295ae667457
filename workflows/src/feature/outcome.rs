//! What a run of a feature is given, what it shows while it runs, and what it comes to.

use std::collections::BTreeMap;

use longhaul_engine::Payload;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, Feature};
use crate::contracts::ProjectRef;
use crate::finding::Findings;
use crate::settings::Settings;

/// Input of the feature workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The project.
    pub project: ProjectRef,
    /// The branch that finished work goes to.
    pub target: String,
    /// The feature.
    pub feature: Feature,
    /// The settings, as they were when the run began.
    pub settings: Settings,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// Whether it is said to pass already: then its gates run on the target before anything else
    /// is done.
    pub claimed: bool,
    /// Whether an earlier feature had this id: what that one left on the branch is put aside
    /// first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// Whether an agent called the work of an earlier run done, and it has not landed: then the
    /// gates are run before a session is paid. Of work that was never called done, passing
    /// gates may say too little.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called_done: bool,
}

/// What a run of a feature publishes while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureProgress {
    /// What is happening: `session 2 (gates failed)`.
    pub step: String,
    /// Sessions begun.
    pub sessions: u32,
    /// Sessions that failed.
    pub failed_sessions: u32,
    /// Sessions that an outage of the agent ended; they count towards no limit.
    #[serde(default)]
    pub outage_sessions: u32,
    /// Times that the gates failed.
    pub failed_gates: u32,
    /// Times that the work did not merge.
    pub conflicts: u32,
    /// Times that something was put back.
    pub tampered: u32,
    /// What a person should know of it.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub findings: Findings,
}

impl FeatureProgress {
    /// The key that it is published under.
    pub const KEY: &'static str = "progress";
    /// The step in which work that failed its gates is tried on the target as it is now, before it
    /// is given up.
    pub const LAST_TRY: &'static str = "last try on the target as it is now";

    /// What a run has published last.
    pub fn published(values: &BTreeMap<String, Payload>) -> Option<Self> {
        values.get(Self::KEY).and_then(|value| value.read().ok())
    }
}

/// What a run of a feature comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FeatureOutcome {
    /// Its gates passed, on the commit that is (or waits to be) on the target branch.
    Passed {
        /// That commit.
        commit: String,
        /// Why it waits on `longhaul/next`, if it does.
        waits_on_next: Option<String>,
        /// How it went.
        progress: FeatureProgress,
        /// The files that it changed.
        files: Vec<String>,
        /// The checks that passed: the gates of the project, then the feature's own.
        checks: Vec<Check>,
        /// Whether the target passed as it was, and nothing landed.
        claim: bool,
    },
    /// It needs a person.
    Blocked {
        /// Why, in one line.
        reason: String,
        /// The end of the output of the session that failed last; empty if something else went
        /// wrong.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        /// How it went.
        progress: FeatureProgress,
    },
}
