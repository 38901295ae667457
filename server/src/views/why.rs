//! Why a run or a feature does not go on, or why it failed: the reasons, the nearest first.

mod batch;
mod feature;
mod outcome;
mod project;
mod reason;
mod run;

use chrono::{DateTime, Utc};
use longhaul_engine::{RequestedBy, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::State;

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyDocument {
    /// What was asked about: the id of a run or of a feature.
    pub about: String,
    /// The project that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The feature that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// The run; of a feature the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub run: Option<RunId>,
    /// Where it stands, as `list` and `status` say it.
    pub state: String,
    /// The reasons, the most important first.
    pub reasons: Vec<Reason>,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What kind of reason it is.
    pub kind: Kind,
    /// A whole sentence.
    pub text: String,
    /// What a person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Who asked for it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Asked>")]
    pub by: Option<RequestedBy>,
    /// Of a dependency: the features from the one that was asked about to the one that holds it up. Of a limit or a turn:
    /// the features that have the places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Of a check, or of a session that failed: the end of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

/// Who asked for something, and why.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of `RequestedBy`, for the schema alone")]
pub struct Asked {
    by: String,
    why: String,
}

/// What holds something up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing: it is over, as it should be.
    Done,
    /// Nothing: it is being worked on.
    Working,
    /// Nothing: it is the next.
    Next,
    /// No process runs it.
    NotRunning,
    /// A feature that it needs does not pass.
    Dependency,
    /// As many features are worked on as the project allows.
    ParallelLimit,
    /// As many agents, or checks, run as the process allows.
    Pool,
    /// Another feature merges.
    Turn,
    /// Its project has no session for it yet: another feature comes first.
    Session,
    /// Its agent is out of order: no session begins until one has probed it.
    Outage,
    /// A time has to come.
    Timer,
    /// A failed attempt is made again at a time.
    Retry,
    /// A failure of the machine is waited out.
    Machine,
    /// A limit of a provider.
    RateLimited,
    /// A message has to come.
    Message,
    /// A person has to agree before it is merged.
    Approval,
    /// Somebody paused it.
    Paused,
    /// Somebody cancelled the project.
    Halted,
    /// Somebody cancelled it.
    Cancelled,
    /// Nobody knows what became of an effect.
    Parked,
    /// It cannot go on in the process that runs it.
    Stuck,
    /// A check failed.
    Gate,
    /// It was given up, or a person blocked it.
    Blocked,
    /// It ended with a failure.
    Failed,
    /// A signal was not followed.
    Skipped,
    /// The list or the settings are wrong.
    List,
    /// Finished work waits because the checkout has changes.
    Checkout,
    /// Nothing: it was noticed, and a person should know of it.
    Noticed,
}

impl Kind {
    /// Whether somebody has to do something, and no process.
    fn needs_person(self) -> bool {
        !matches!(self, Self::Done | Self::Working | Self::Next | Self::NotRunning | Self::Dependency | Self::Noticed)
    }

    /// Whether something holds it up that is in the log: the same whether a process runs it or not.
    pub(super) fn holds(self) -> bool {
        !matches!(
            self,
            Self::Done | Self::Working | Self::Next | Self::NotRunning | Self::Pool | Self::Stuck | Self::Noticed
        )
    }
}

/// A feature of a list that no log knows.
pub fn of_list(feature: &str, project: &RunId, state: State, has_run: bool) -> WhyDocument {
    let text = if has_run {
        "It is new in the list, and the project has not run since."
    } else {
        "The project has never run."
    };
    let reason = Reason::of(Kind::NotRunning, text).with_remedy("`longhaul run` takes it up");
    WhyDocument {
        about: feature.to_owned(),
        project: Some(project.to_string()),
        feature: Some(feature.to_owned()),
        run: None,
        state: state.words().into(),
        reasons: vec![reason],
    }
}
