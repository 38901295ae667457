//! The expected duration of the remaining features, from those that have passed.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use longhaul_server::status::StatusDocument;
use longhaul_workflows::projection::State;

/// The durations of passed features.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Durations {
    count: i32,
    total: TimeDelta,
}

impl Durations {
    /// Adds a passed feature.
    pub(super) fn add(&mut self, duration: TimeDelta) {
        self.count += 1;
        self.total += duration;
    }

    fn mean(self) -> Option<TimeDelta> {
        (self.count > 0).then(|| self.total / self.count)
    }
}

/// The time until the remaining features have passed: their number times the mean duration, divided
/// by the number of features in progress. `None` without a past feature or without progress.
pub(super) fn remaining<'a>(
    projects: impl Iterator<Item = (&'a StatusDocument, Durations)> + Clone,
) -> Option<TimeDelta> {
    let mut all = Durations::default();
    for (_, durations) in projects.clone() {
        all.count += durations.count;
        all.total += durations.total;
    }
    let overall = all.mean()?;
    let mut work = TimeDelta::zero();
    let mut at_once = 0;
    for (document, durations) in projects {
        let mean = durations.mean().unwrap_or(overall);
        work += mean * i32::try_from(workable(document)).unwrap_or(i32::MAX);
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
