//! The end of a segment of a history.

use std::fmt;

use crate::context::Stop;
use crate::event::{Cause, EventKind};
use crate::failure::Failure;
use crate::payload::Payload;
use crate::workflow::Ending;

/// The end of a segment, as a workflow decides on it and as a history records it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SegmentEnd {
    Completed(Payload),
    ContinuedAsNew(Payload),
    Failed(Failure),
    Cancelled,
}

impl SegmentEnd {
    /// The end that a workflow decided on; `Err`: it could not decide.
    pub(crate) fn of(ending: Result<Ending, Stop>) -> Result<Self, Stop> {
        match ending {
            Ok(Ending::Complete(output)) => Ok(Self::Completed(output)),
            Ok(Ending::ContinueAsNew(input)) => Ok(Self::ContinuedAsNew(input)),
            Err(Stop::Failed(failure)) => Ok(Self::Failed(failure)),
            Err(Stop::Cancelled) => Ok(Self::Cancelled),
            Err(stop) => Err(stop),
        }
    }

    /// The end that an event records.
    pub(crate) fn recorded(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::RunCompleted { output } => Some(Self::Completed(output.clone())),
            EventKind::RunStarted { cause: Cause::ContinuedAsNew, input, .. } => {
                Some(Self::ContinuedAsNew(input.clone()))
            }
            EventKind::RunFailed { failure } => Some(Self::Failed(failure.clone())),
            EventKind::RunCancelled => Some(Self::Cancelled),
            _ => None,
        }
    }

    /// The end in a word, for people.
    pub(crate) fn how(&self) -> &'static str {
        match self {
            Self::Completed(_) => "completed",
            Self::ContinuedAsNew(_) => "continued as new",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for SegmentEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(output) => {
                write!(formatter, "complete with {}", output.preview(usize::MAX))
            }
            Self::ContinuedAsNew(input) => {
                write!(formatter, "continue as new with {}", input.preview(usize::MAX))
            }
            Self::Failed(failure) => write!(formatter, "fail: {failure}"),
            Self::Cancelled => write!(formatter, "end as cancelled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_same_text_are_compared_by_their_class() {
        let recorded = EventKind::RunFailed { failure: Failure::terminal("no disk") };
        let recorded = SegmentEnd::recorded(&recorded);
        let end = |failure| SegmentEnd::of(Err(Stop::Failed(failure))).ok();
        assert_eq!(recorded, end(Failure::terminal("no disk")));
        assert_ne!(recorded, end(Failure::machine("no disk")));
        assert_ne!(recorded, end(Failure::terminal("no disk").with_code("disk")));
    }
}
