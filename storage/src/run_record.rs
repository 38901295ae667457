//! All that a log holds of one run: what is exported, imported and backed up.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::{Event, Message, Payload, Position, Pruned, RunId, Summary};

/// A run with all that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The run.
    pub run: RunId,
    /// Its events: the whole history, or, of a pruned run, what is left of it.
    pub events: Vec<Event>,
    /// What the history amounts to.
    pub summary: Summary,
    /// The messages that it has not taken yet, oldest first.
    pub mailbox: Vec<Message>,
    /// The values that it has published and not removed.
    pub published: BTreeMap<String, Payload>,
}

impl RunRecord {
    /// A run of which nothing but its whole history is known; `None` if that does not begin with a
    /// start.
    pub fn of_history(run: RunId, events: Vec<Event>) -> Option<Self> {
        let summary = fold(&events)?;
        Some(Self { run, published: published_by(&events), events, summary, mailbox: Vec::new() })
    }

    /// How the same run in another place differs, if it does.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (here, there) = (self.events.len(), other.events.len());
        let same =
            self.events.iter().zip(&other.events).take_while(|(here, there)| here == there).count();
        if same < here.min(there) {
            return Some(format!("event {} is another one", self.events[same].position));
        }
        if here != there {
            return Some(format!("the log has {here} events of it, and the file {there}"));
        }
        if self.mailbox != other.mailbox {
            return Some("the messages that it has not taken are others".into());
        }
        if self.published != other.published {
            return Some("what it has published is something else".into());
        }
        (self.summary != other.summary).then(|| "its summary is another one".into())
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

/// What a whole history has published and not removed.
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

/// The position of the first event that a pruned run still has.
pub(crate) fn kept_from(summary: &Summary) -> Option<Position> {
    summary.pruned.map(|pruned| pruned.events)
}

/// The summary of a run that is over, after its events before `kept` are gone.
pub(crate) fn pruned(summary: Summary, kept: Position, at: DateTime<Utc>) -> Summary {
    Summary { pruned: Some(Pruned { events: kept, at }), origin: kept, ..summary }
}
