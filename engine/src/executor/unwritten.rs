//! Decisions of a run that wait for its next commit.

use chrono::{DateTime, Utc};

use crate::event::EventKind;
use crate::id::MessageSeq;
use crate::payload::Payload;

/// Events of the next commit. If the activation ends first, the next activation decides them again.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    pub(super) events: Vec<(DateTime<Utc>, EventKind)>,
    pub(super) consumed: Vec<MessageSeq>,
    pub(super) published: Vec<(String, Option<Payload>)>,
}

impl Unwritten {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
