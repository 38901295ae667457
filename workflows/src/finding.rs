//! Findings: facts about a feature or a project that an operator should know, although they stop
//! nothing. Examples are reverted tampering, weak evidence, and changes by other programs. Each is
//! recorded where it is detected, and shown by `status` and `why`.

use std::fmt;
use std::mem::discriminant;

use longhaul_engine::RunId;
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::contracts::{LeftOut, OutsideChange};
use crate::text::short;

/// How many findings of each kind are kept: the latest ones.
const KEPT: usize = 20;

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// An agent changed a protected file; the change was reverted.
    Tampered {
        /// The session; `None`: work of an earlier run.
        session: Option<u32>,
        /// The file.
        file: String,
        /// The change: `feature "x": passes was set to true`.
        what: String,
    },
    /// An agent made a file that is too large for a commit.
    LeftOut {
        /// The session; `None`: work of an earlier run.
        session: Option<u32>,
        /// The file.
        file: LeftOut,
    },
    /// The work has landed, but its work tree or its branch could not be removed.
    TreeLeft {
        /// Why not.
        reason: String,
    },
    /// Protected files in the tree of the gates differed from the commit just before a check: a
    /// program that ran there changed them.
    PutBack {
        /// The check.
        check: String,
        /// The files.
        files: Vec<String>,
    },
    /// Protected files of the merged result differed from the tip; they were restored from it.
    MergedOver {
        /// The files.
        files: Vec<String>,
    },
    /// Checks that pass without any work.
    PassedOnBase {
        /// The names of the checks.
        checks: Vec<String>,
        /// Whether the feature has no other checks.
        all: bool,
    },
    /// A program of a session tried to control Longhaul.
    Steering {
        /// The request: `pause`.
        verb: String,
        /// The call of that session: `<run>@<slot>`.
        call: String,
    },
    /// Another program moved a branch.
    Outside {
        /// The move.
        change: OutsideChange,
    },
    /// A finished feature fails a check on the target itself.
    PassRefuted {
        /// The feature.
        feature: FeatureId,
        /// The name of the check.
        check: String,
        /// The commit of the target.
        commit: String,
    },
    /// The requirements of a feature were edited while features were in progress.
    ListEdited {
        /// The feature.
        feature: FeatureId,
        /// The fields.
        fields: Vec<String>,
        /// The features in progress.
        during: Vec<FeatureId>,
    },
    /// A protection setting was edited while features were in progress.
    SettingsEdited {
        /// The setting: `gates`.
        setting: String,
        /// The features in progress.
        during: Vec<FeatureId>,
    },
}

/// A set of findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// The key under which a project publishes its own.
    pub const KEY: &'static str = "findings";

    /// Adds one; returns whether it is new.
    pub fn add(&mut self, finding: Finding) -> bool {
        if self.0.contains(&finding) {
            return false;
        }
        let is_like = |known: &Finding| discriminant(known) == discriminant(&finding);
        if self.0.iter().filter(|known| is_like(known)).count() >= KEPT
            && let Some(oldest) = self.0.iter().position(is_like)
        {
            self.0.remove(oldest);
        }
        self.0.push(finding);
        true
    }

    /// Removes findings that no longer hold.
    pub fn retain(&mut self, holds: impl Fn(&Finding) -> bool) {
        self.0.retain(holds);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The findings, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }
}

/// The signal `steering_refused`: a program of the run made a request reserved for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringRefused {
    /// The request.
    pub verb: String,
    /// The call of its session.
    pub call: String,
}

impl SteeringRefused {
    /// The name of the signal.
    pub const SIGNAL: &'static str = "steering_refused";
}

impl From<SteeringRefused> for Finding {
    fn from(SteeringRefused { verb, call }: SteeringRefused) -> Self {
        Self::Steering { verb, call }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tampered { session: Some(session), file, what } => {
                write!(
                    formatter,
                    "session {session} tampered with {file} ({what}); it was put back"
                )
            }
            Self::Tampered { session: None, file, what } => {
                write!(
                    formatter,
                    "an earlier run left {file} tampered with ({what}); it was put back"
                )
            }
            Self::LeftOut { session, file } => {
                write!(formatter, "{file} is too large for a commit and was left out")?;
                session.map_or(Ok(()), |session| write!(formatter, " after session {session}"))
            }
            Self::TreeLeft { reason } => {
                write!(formatter, "it has landed, but its work tree could not be removed: {reason}")
            }
            Self::PutBack { check, files } => write!(
                formatter,
                "protected files were changed where gates run, and put back before `{check}`: {}",
                files.join(", ")
            ),
            Self::MergedOver { files } => {
                write!(
                    formatter,
                    "the merge changed protected files; those of the target were kept: {}",
                    files.join(", ")
                )
            }
            Self::PassedOnBase { all: true, .. } => formatter
                .write_str("all its checks passed before any work: that they pass is no evidence"),
            Self::PassedOnBase { checks, all: false } => {
                write!(
                    formatter,
                    "passed before any work, so no evidence of it: {}",
                    quoted(checks)
                )
            }
            Self::Steering { verb, call } => {
                write!(formatter, "a program of {call} asked for `longhaul {verb}` and was refused")
            }
            Self::Outside { change } => change.fmt(formatter),
            Self::PassRefuted { feature, check, commit } => write!(
                formatter,
                "{feature} had passed, and its check `{check}` fails on the target ({}) without \
                 any other work: it is in progress again",
                short(commit)
            ),
            Self::ListEdited { feature, fields, during } => {
                let fields = fields.join(", ");
                let during = named(during);
                write!(
                    formatter,
                    "the list was edited while {during} worked on: {fields} of {feature}"
                )
            }
            Self::SettingsEdited { setting, during } => {
                write!(
                    formatter,
                    "{setting} in longhaul.toml changed while {} worked on",
                    named(during)
                )
            }
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn named(features: &[FeatureId]) -> String {
    let names: Vec<&str> = features.iter().map(FeatureId::as_str).collect();
    format!("{} {}", names.join(", "), if names.len() == 1 { "was" } else { "were" })
}

/// Published under [`Skipped::KEY`]: the last ignored signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The name of the signal.
    pub signal: String,
    /// The run that sent it; `None`: a person or a program.
    pub from: Option<RunId>,
    /// The reason.
    pub reason: String,
}

impl Skipped {
    /// The key under which it is published.
    pub const KEY: &'static str = "skipped_signal";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_kept_once_and_no_more_than_a_person_can_read() {
        let mut findings = Findings::default();
        let finding = |number: usize| Finding::Steering {
            verb: "pause".into(),
            call: format!("p/f/1@{number}"),
        };
        assert!(findings.add(finding(0)) && !findings.add(finding(0)));
        let other = Finding::MergedOver { files: Vec::new() };
        findings.add(other.clone());
        for number in 1..2 * KEPT {
            findings.add(finding(number));
        }
        assert_eq!(findings.iter().count(), KEPT + 1);
        assert_eq!(findings.iter().next(), Some(&other));
    }
}
