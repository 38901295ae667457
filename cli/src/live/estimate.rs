//! The expected duration of the remaining features, from those that have passed.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use longhaul_server::status::StatusDocument;
use longhaul_workflows::projection::State;

/// The durations of passed features.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations(Vec<TimeDelta>);

impl Durations {
    /// Adds a passed feature.
    pub(super) fn add(&mut self, duration: TimeDelta) {
        let place = self.0.partition_point(|known| *known <= duration);
        self.0.insert(place, duration);
    }

    /// The median: a feature that was interrupted for a night does not count more than others.
    fn typical(&self) -> Option<TimeDelta> {
        self.0.get(self.0.len().saturating_sub(1) / 2).copied()
    }
}

/// The time until the remaining features have passed: their number times the typical duration,
/// divided by the number of features in progress. `None` without a past feature or without
/// progress.
pub(super) fn remaining<'a>(
    projects: impl Iterator<Item = (&'a StatusDocument, &'a Durations)> + Clone,
) -> Option<TimeDelta> {
    let mut all = Durations::default();
    for (_, durations) in projects.clone() {
        durations.0.iter().for_each(|duration| all.add(*duration));
    }
    let overall = all.typical()?;
    let mut work = TimeDelta::zero();
    let mut at_once = 0;
    for (document, durations) in projects {
        let typical = durations.typical().unwrap_or(overall);
        work += typical * i32::try_from(workable(document)).unwrap_or(i32::MAX);
        at_once += document.counts.running;
    }
    match i32::try_from(at_once).unwrap_or(i32::MAX) {
        0 => None,
        at_once => Some(work / at_once),
    }
}

/// The number of features that can still pass without a person: no blocked one is below them.
fn workable(document: &StatusDocument) -> usize {
    let mut dependants: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in document.features.iter().filter(|line| !line.passes) {
        for need in &line.waiting_for {
            dependants.entry(need).or_default().push(&line.id);
        }
    }
    let is_stopped = |state| matches!(state, State::Blocked | State::Failed | State::Cancelled);
    let stopped = document.features.iter().filter(|line| is_stopped(line.status));
    let mut open: Vec<&str> = stopped.map(|line| line.id.as_str()).collect();
    let mut held = HashSet::new();
    while let Some(id) = open.pop() {
        if held.insert(id) {
            open.extend(dependants.get(id).into_iter().flatten());
        }
    }
    let open = document.features.iter().filter(|line| !line.passes);
    open.filter(|line| !held.contains(line.id.as_str())).count()
}
