//! Why a feature waits, as a clause without a subject.

use std::fmt;

use crate::backlog::FeatureId;
use crate::feature::GivenUp;
use crate::project::WaitReason;

impl fmt::Display for WaitReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => formatter.write_str("waits until its run continues"),
            Self::Repair { by, earlier } => {
                write!(formatter, "waits while {by} repairs the baseline of the project")?;
                match earlier {
                    Some(GivenUp { feature, reason }) => {
                        write!(formatter, "; {feature} gave up on it: {reason}")
                    }
                    None => Ok(()),
                }
            }
            Self::Resolving { other, to_merge: true } => write!(
                formatter,
                "waits to merge until {other} has resolved its conflict in the same files"
            ),
            Self::Resolving { other, to_merge: false } => write!(
                formatter,
                "waits to resolve its conflict until {other}, with the same files, is through"
            ),
            Self::Places { taken_by } => {
                let taken: Vec<&str> = taken_by.iter().map(FeatureId::as_str).collect();
                write!(
                    formatter,
                    "waits for a place: {} have the {}",
                    taken.join(", "),
                    taken.len()
                )
            }
            Self::Reserved => formatter.write_str(
                "waits until sessions at work give back what they reserved of the budget",
            ),
            Self::Agent { failure } => write!(formatter, "waits for its agent: {failure}"),
        }
    }
}
