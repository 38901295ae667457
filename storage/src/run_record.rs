//! All data of one run in a log, for export, import and backup.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::{Event, Message, Payload, Position, Pruned, RunId, Summary};

/// A run with all its data.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run.
    pub run: RunId,
    /// Its events: the whole history, or the remaining events of a pruned run.
    pub events: Vec<Event>,
    /// The summary of the history.
    pub summary: Summary,
    /// Its unread messages, oldest first.
    pub mailbox: Vec<Message>,
    /// Its published values.
    pub published: BTreeMap<String, Payload>,
}

impl RunRecord {
    /// A run with only its whole history; `None` if that does not begin with a start.
    pub fn of_history(run: RunId, events: Vec<Event>) -> Option<Self> {
        let summary = fold(&events)?;
        Some(Self { run, published: published_by(&events), events, summary, mailbox: Vec::new() })
    }

    /// The first difference to the same run in another log, if any.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let here = self.events.len();
        let there = other.events.len();
        let same =
            self.events.iter().zip(&other.events).take_while(|(here, there)| here == there).count();
        if same < here.min(there) {
            return Some(format!("event {} differs", self.events[same].position));
        }
        if here != there {
            return Some(format!("the log has {here} events of it, and the file {there}"));
        }
        if self.mailbox != other.mailbox {
            return Some("its unread messages differ".into());
        }
        if self.published != other.published {
            return Some("its published values differ".into());
        }
        (self.summary != other.summary).then(|| "its summary differs".into())
    }

    /// Whether the beginning of its history was pruned.
    pub fn is_pruned(&self) -> bool {
        self.events.first().is_some_and(|event| event.position > 0)
    }
}

/// The summary of a whole history.
pub(crate) fn fold(events: &[Event]) -> Option<Summary> {
    let (first, rest) = events.split_first()?;
    let mut summary = Summary::begin(first).filter(|_| first.position == 0)?;
    for event in rest {
        summary.apply(event);
    }
    Some(summary)
}

/// The published values at the end of a whole history.
pub(crate) fn published_by(events: &[Event]) -> BTreeMap<String, Payload> {
    let mut published = BTreeMap::new();
    for event in events {
        if let longhaul_engine::EventKind::StatusPublished { key, value, .. } = &event.kind {
            if *value == Payload::null() {
                published.remove(key);
            } else {
                published.insert(key.clone(), value.clone());
            }
        }
    }
    published
}

/// The position of the first remaining event of a pruned run.
pub(crate) fn kept_from(summary: &Summary) -> Option<Position> {
    summary.pruned.map(|pruned| pruned.events)
}

/// The summary of a finished run after its events before `kept` are removed.
pub(crate) fn pruned(summary: Summary, kept: Position, at: DateTime<Utc>) -> Summary {
    Summary { pruned: Some(Pruned { events: kept, at }), origin: kept, ..summary }
}
