//! The CPU time of scheduling a large backlog.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longhaul_workflows::backlog::{Backlog, Feature, FeatureId};
use schemars::JsonSchema;
use serde::Serialize;

use super::machine::cpu_time;

const FEATURES: usize = 100_000;

/// Dependencies of a feature; the first ones have fewer.
const DEPENDENCIES: usize = 3;

/// Features in progress at once.
const AGENTS: usize = 8;

/// CPU time of scheduling.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Scheduling {
    pub(super) features: usize,
    pub(super) dependencies: usize,
    /// CPU time to build the graph.
    pub(super) build_seconds: f64,
    /// CPU time to work it off from start to end.
    pub(super) work_off_seconds: f64,
}

impl Scheduling {
    pub(super) fn total_seconds(&self) -> f64 {
        self.build_seconds + self.work_off_seconds
    }
}

pub(super) fn measure(scale: usize) -> Result<Scheduling> {
    let features = features(FEATURES / scale)?;
    let count = features.len();
    let dependencies = features.iter().map(|feature| feature.depends_on.len()).sum();
    let begun = cpu_time()?;
    let mut backlog = Backlog::new(features)?;
    let built = cpu_time()?;
    work_off(&mut backlog)?;
    let done = cpu_time()?;
    ensure!(
        backlog.counts().passed == count,
        "the backlog was not worked off: {:?}",
        backlog.counts()
    );
    let seconds = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
    Ok(Scheduling {
        features: count,
        dependencies,
        build_seconds: seconds(begun, built),
        work_off_seconds: seconds(built, done),
    })
}

/// Features that depend on one shortly before them and two anywhere before, so that the graph is
/// both deep and wide.
fn features(count: usize) -> Result<Vec<Feature>> {
    let id = |number: usize| {
        FeatureId::new(format!("feature-{number:06}")).context("an id of letters and digits")
    };
    let mut features = Vec::with_capacity(count);
    let mut random = Random(1);
    for number in 0..count {
        let mut before = Vec::new();
        while before.len() < DEPENDENCIES.min(number) {
            let reach = if before.is_empty() { number.min(100) } else { number };
            let dependency = number - 1 - random.below(reach);
            if !before.contains(&dependency) {
                before.push(dependency);
            }
        }
        let depends_on = before.into_iter().map(id).collect::<Result<_>>()?;
        let priority = i64::try_from(random.below(5))?;
        features.push(Feature { depends_on, priority, ..Feature::new(id(number)?, "One of many") });
    }
    Ok(features)
}

fn work_off(backlog: &mut Backlog) -> Result<()> {
    let mut under_way = VecDeque::with_capacity(AGENTS);
    loop {
        while under_way.len() < AGENTS
            && let Some(next) = backlog.start_next()
        {
            under_way.push_back(next);
        }
        let Some(done) = under_way.pop_front() else { return Ok(()) };
        backlog.mark_passed(&done)?;
    }
}

/// Reproducible random numbers (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower bits are as good as the upper ones"
    )]
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_has_three_dependencies_to_a_feature_and_is_worked_off() {
        let measured = measure(100).unwrap();
        assert_eq!((measured.features, measured.dependencies), (1000, 2994));
    }
}
