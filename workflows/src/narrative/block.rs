//! Why a run of a feature gave up, or gets no session.

use std::fmt;

use crate::contracts::{Evidence, UnmetNeed};
use crate::feature::{Attempts, BlockReason, BrokenBase, FeatureBlock, GivenUp};
use crate::prompt;
use crate::text::counted;

impl fmt::Display for FeatureBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, problem } = self;
        reason.fmt(formatter)?;
        let Some(problem) = problem.as_ref().map(prompt::summary) else { return Ok(()) };
        match reason {
            BlockReason::Attempts { .. } | BlockReason::Stalled { .. } => {
                write!(formatter, ". {problem}")
            }
            BlockReason::Setup => write!(formatter, ". {problem} Correct and commit it"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for BlockReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attempts { of, count } => attempts(*of, *count, formatter),
            Self::Stalled { sessions } => {
                write!(
                    formatter,
                    "{sessions} sessions in a row changed nothing (files that git ignores do not \
                     count)"
                )
            }
            Self::Limit { resource, limits } => write!(
                formatter,
                "the limit of {} is reached; raise `[limits] {}` in longhaul.toml",
                resource.amount(limits),
                resource.key()
            ),
            Self::Budget { resource, budget } => write!(
                formatter,
                "the budget of the project, {}, is spent; raise `[budget] {}` in longhaul.toml",
                resource.amount(budget),
                resource.key()
            ),
            Self::Baseline { broken, given_up } => baseline(broken, given_up, formatter),
            Self::SessionId => formatter.write_str("its session has no valid id"),
            Self::Setup => formatter.write_str("the set-up fails without any work of an agent"),
            Self::Check { evidence } => impossible(evidence, formatter),
            Self::Step { message } => formatter.write_str(message),
        }
    }
}

fn attempts(of: Attempts, count: u32, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (of, count) {
        (Attempts::FailedGates, 1) => formatter.write_str("the gates failed once"),
        (Attempts::FailedGates, _) => write!(formatter, "the gates failed {count} times"),
        (Attempts::Conflicts, 1) => formatter.write_str("the work failed to merge once"),
        (Attempts::Conflicts, _) => write!(formatter, "the work failed to merge {count} times"),
        (Attempts::FailedSessions, _) => {
            write!(formatter, "{} failed", counted(count as usize, "session"))
        }
        (Attempts::Sessions, 1) => formatter.write_str("1 session was used"),
        (Attempts::Sessions, _) => write!(formatter, "{count} sessions were used"),
    }
}

fn baseline(
    broken: &BrokenBase,
    given_up: &[GivenUp],
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let BrokenBase { commit, check, ending } = broken;
    let tries = given_up.iter().map(|GivenUp { feature, reason }| format!("{feature} ({reason})"));
    write!(
        formatter,
        "the project does not pass its own baseline: {check} fails on commit {commit} ({ending}), \
         and the repair was given up by {}. Repair the target branch, then unblock the feature",
        tries.collect::<Vec<_>>().join(" and ")
    )
}

/// Why no session can make a check pass.
fn impossible(evidence: &Evidence, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let command = evidence.command.lines().next().unwrap_or_default();
    match evidence.held_out {
        Some(_) => write!(formatter, "the held-out check `{}` cannot pass", evidence.name)?,
        None => write!(formatter, "the check `{command}` cannot pass")?,
    }
    match &evidence.unmet_need {
        Some(UnmetNeed::File { path }) => write!(
            formatter,
            ": {path} does not exist, and agents may not write it, because it is protected. Write \
             and commit it"
        ),
        Some(UnmetNeed::Program { name }) => write!(
            formatter,
            ": there is no program `{name}` ({}). Install it, or correct the check",
            evidence.ending()
        ),
        None => Ok(()),
    }
}
