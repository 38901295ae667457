//! Percentiles and medians.

use std::time::Duration;

/// How long many things took.
#[derive(Debug, Default)]
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The latency in microseconds that `percent` of a hundred stay within; zero of nothing.
    pub(super) fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let at = (self.0.len() * percent / 100).min(last);
        self.0.get(at).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    }
}

/// The one in the middle; zero of nothing.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers of microseconds")]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(99), 0.0);
        for micros in (1..=100).rev() {
            latencies.add(Duration::from_micros(micros));
        }
        assert_eq!(latencies.percentile(50).round(), 51.0);
        assert_eq!(latencies.percentile(99).round(), 100.0);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    }
}
