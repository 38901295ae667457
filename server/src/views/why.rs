//! Why a run or a feature does not go on, or why it failed: the reasons, the nearest first.

mod batch;
mod feature;
mod project;
mod reason;
mod run;

use chrono::{DateTime, Utc};
use longhaul_engine::{RequestedBy, RunId};
use longhaul_workflows::projection::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Header;

/// Why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyDocument {
    /// The id that was asked about: of a run or of a feature.
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
    /// The person who asked for it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Asked>")]
    pub by: Option<RequestedBy>,
    /// Of a dependency: the features from the one that was asked about to the one that holds it
    /// up. Of a limit or a turn: the features that have the places.
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
    /// The person or program.
    by: String,
    /// The reason given; may be empty.
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
    /// A person asked for something, and it has not taken that yet.
    Pending,
    /// A person paused it.
    Paused,
    /// A person cancelled the project.
    Halted,
    /// A person cancelled it.
    Cancelled,
    /// The outcome of an effect is unknown.
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

    /// Whether something holds it up that is in the log: the same whether a process runs it or not.
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
        header: Header {
            project: Some(project.to_string()),
            feature: Some(feature.to_owned()),
            run: None,
            status: state,
        },
        reasons: vec![reason],
    }
}
