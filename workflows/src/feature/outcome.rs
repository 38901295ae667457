//! Input, published progress and outcome of a feature run.

use std::collections::BTreeMap;

use longhaul_engine::Payload;
use serde::{Deserialize, Serialize};

use crate::backlog::{Check, Feature};
use crate::contracts::{ProjectRef, Usage};
use crate::finding::Findings;
use crate::resources::Resources;
use crate::settings::Settings;

use super::Stage;
use super::block::FeatureBlock;

/// Work that is part of the target.
pub(super) struct Landing {
    /// The commit whose gates passed.
    pub(super) commit: String,
    /// Why finished work waits on `longhaul/next`, if it does.
    pub(super) waits_on_next: Option<String>,
}

/// Input of the feature workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct FeatureInput {
    /// The project.
    pub project: ProjectRef,
    /// The target branch.
    pub target: String,
    /// The feature.
    pub feature: Feature,
    /// The settings at the start of the run.
    pub settings: Settings,
    /// The feature list, relative to the root.
    pub list_file: String,
    /// Whether the feature is claimed to pass: then its gates run on the target first.
    pub claimed: bool,
    /// Whether an earlier feature had this id: then its branch is moved aside first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// Whether an agent called the unlanded work of an earlier run done: then the gates run before
    /// a session is paid. For unfinished work, passing gates may prove too little.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub called_done: bool,
    /// Whether an earlier run ended before its outcome was known: then its commit is looked for on
    /// the target before a session is paid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_landed: bool,
    /// The resources used by earlier runs that this one continues.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub used: Resources,
}

/// The published progress of a feature run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureProgress {
    /// The current stage, if it is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// Sessions begun.
    pub sessions: u32,
    /// Sessions that failed.
    pub failed_sessions: u32,
    /// Sessions ended by an outage of the agent; they count towards no limit.
    #[serde(default)]
    pub outage_sessions: u32,
    /// Sessions that continued another one whose context was full; they count towards no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handoffs: u32,
    /// How often the gates failed.
    pub failed_gates: u32,
    /// How often the work conflicted.
    pub conflicts: u32,
    /// The resources used by earlier runs that this one continues.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub before: Resources,
    /// Answers of the model, if they are counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: u32,
    /// The tokens, if they are counted.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    /// The cost in millionths of a US dollar, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The sessions that were not needed. Their ids are not used again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unused_sessions: u32,
    /// The time of sessions in milliseconds.
    #[serde(default)]
    pub session_ms: u64,
    /// How often files were restored.
    pub tampered: u32,
    /// Findings about it.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub findings: Findings,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl FeatureProgress {
    /// The key under which it is published.
    pub const KEY: &'static str = "progress";

    /// The current stage, for people.
    pub fn step(&self) -> Option<String> {
        self.stage.as_ref().map(Stage::to_string)
    }

    /// The resources used by its sessions, and by the earlier runs that it continues.
    pub(crate) fn used(&self) -> Resources {
        let mut used = Resources {
            turns: self.turns,
            tokens: self.usage.fresh(),
            cost_micros: self.cost_micros.unwrap_or_default(),
            time_ms: self.session_ms,
        };
        used += self.before;
        used
    }

    /// The last published progress of a run.
    pub fn published(values: &BTreeMap<String, Payload>) -> Option<Self> {
        values.get(Self::KEY).and_then(|value| value.read().ok())
    }
}

/// The outcome of a feature run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum FeatureOutcome {
    /// Its gates passed, on the commit that is (or waits to be) on the target branch.
    Passed {
        /// That commit.
        commit: String,
        /// Why it waits on `longhaul/next`, if it does.
        waits_on_next: Option<String>,
        /// Its statistics.
        progress: FeatureProgress,
        /// The files that it changed.
        files: Vec<String>,
        /// The checks that passed: the gates of the project, then the feature's own.
        checks: Vec<Check>,
        /// Whether the target passed without changes, and nothing landed.
        claim: bool,
    },
    /// It waits for a person.
    Blocked {
        /// The reason.
        block: FeatureBlock,
        /// Its statistics.
        progress: FeatureProgress,
    },
}
