//! Reasons why a run or a feature makes no progress or failed, the nearest first.

pub(crate) mod batch;
mod feature;
mod project;
mod reason;
mod run;
mod session;

use std::path::Path;

use chrono::{DateTime, Utc};
use longhaul_engine::{RequestedBy, RunId};
use longhaul_workflows::projection::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Header;
use crate::advice;

/// The explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyDocument {
    /// The requested run or feature.
    pub about: String,
    /// Its project, its feature, its run and its state.
    #[serde(flatten)]
    pub header: Header,
    /// The reasons, the most important first.
    pub reasons: Vec<Reason>,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The kind of reason.
    pub kind: Kind,
    /// A whole sentence.
    pub text: String,
    /// The remedy for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// When it continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// The requester, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RequestedBySchema>")]
    pub by: Option<RequestedBy>,
    /// For a dependency: the path of features to the one that blocks. For a limit or a turn: the
    /// features that hold the places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// For a check or a failed session: the end of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

/// A requester with a reason.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of `RequestedBy`, for the schema alone")]
#[schemars(rename = "RequestedBy")]
pub struct RequestedBySchema {
    /// The person or program.
    by: String,
    /// The reason given; may be empty.
    why: String,
}

/// The kinds of obstacles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// None: it is complete.
    Done,
    /// None: it is in progress.
    Working,
    /// None: it starts next.
    Next,
    /// No process runs it.
    NotRunning,
    /// A dependency has not passed.
    Dependency,
    /// The budget of the project is spent.
    Budget,
    /// The project is at its limit of parallel features.
    ParallelLimit,
    /// The process is at its limit of agents or checks.
    Pool,
    /// Another feature holds the merge lease.
    Turn,
    /// Its project has no session for it yet; another feature comes first.
    Session,
    /// Its agent is unavailable; no session starts before a probe succeeds.
    Outage,
    /// A timer.
    Timer,
    /// A retry of a failed attempt.
    Retry,
    /// A failure of the machine.
    Machine,
    /// A rate limit of the provider.
    RateLimited,
    /// A message.
    Message,
    /// The approval of a person.
    Approval,
    /// The answer of a person to a question of its agent.
    Question,
    /// A request of a person that it has not taken yet.
    Pending,
    /// A person paused it.
    Paused,
    /// A person cancelled the project.
    Halted,
    /// A person cancelled it.
    Cancelled,
    /// The unknown outcome of an effect.
    Parked,
    /// It is stuck in the process that runs it.
    Stuck,
    /// A failed check.
    Gate,
    /// A failed set-up script.
    Setup,
    /// It was given up, or a person blocked it.
    Blocked,
    /// It ended with an error.
    Failed,
    /// A rejected signal.
    Skipped,
    /// An invalid list or invalid settings.
    List,
    /// Finished work that waits because the checkout has changes.
    Checkout,
    /// None: a finding that a person should read.
    Noticed,
}

impl Kind {
    /// Whether a person has to act.
    fn needs_person(self) -> bool {
        !matches!(
            self,
            Self::Done
                | Self::Working
                | Self::Next
                | Self::NotRunning
                | Self::Dependency
                | Self::Noticed
        )
    }

    /// Whether the obstacle is recorded in the log, so that it holds with and without a process.
    pub(super) fn holds(self) -> bool {
        !matches!(
            self,
            Self::Done
                | Self::Working
                | Self::Next
                | Self::NotRunning
                | Self::Pool
                | Self::Stuck
                | Self::Noticed
        )
    }
}

/// A feature of the list of the project at `root`, without a log entry.
pub fn of_list(
    feature: &str,
    project: &RunId,
    root: &Path,
    state: State,
    has_run: bool,
) -> WhyDocument {
    let text = if has_run {
        "It is new in the list, and the project has not run since."
    } else {
        "The project has never run."
    };
    let reason = Reason::of(Kind::NotRunning, text)
        .with_remedy(format!("{} takes it up", advice::run(root)));
    WhyDocument {
        about: feature.to_owned(),
        header: Header {
            project: Some(project.to_string()),
            feature: Some(feature.to_owned()),
            run: None,
            status: state,
        },
        reasons: vec![reason],
    }
}
