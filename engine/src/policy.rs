//! Activity policies: number of attempts, delays, timeouts, and the handling of unknown outcomes.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::failure::{Failure, FailureKind};

/// The delays between attempts.
#[derive(Debug, Clone, PartialEq)]
pub enum Delays {
    /// Exactly these delays; no attempt follows after the last.
    List(Vec<Duration>),
    /// `initial × factor^n`, at most `max`, for at most `attempts` attempts in all.
    Exponential {
        /// Before the second attempt.
        initial: Duration,
        /// The factor between two delays.
        factor: f64,
        /// The longest delay.
        max: Duration,
        /// Attempts in total, including the first.
        attempts: u32,
    },
}

/// The delays after machine failures, independent of the activity's policy: the activity is not at
/// fault, so there is always a further attempt.
const MACHINE: Delays = Delays::Exponential {
    initial: Duration::from_secs(1),
    factor: 2.0,
    max: Duration::from_mins(1),
    attempts: u32::MAX,
};

impl Delays {
    /// One attempt only.
    pub const fn none() -> Self {
        Self::List(Vec::new())
    }

    /// The delay after `failed` failed attempts, or the end of the attempts.
    fn after(&self, failed: u32) -> Option<Duration> {
        match self {
            Self::List(delays) => delays.get(failed.saturating_sub(1) as usize).copied(),
            Self::Exponential { initial, factor, max, attempts } => {
                if failed >= *attempts {
                    return None;
                }
                let power = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
                let seconds = initial.as_secs_f64() * factor.powi(power);
                Some(Duration::try_from_secs_f64(seconds).unwrap_or(*max).min(*max))
            }
        }
    }
}

/// The failed attempts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    /// The failures that count against the policy.
    pub counted: u32,
    /// Consecutive machine failures.
    pub of_machine: u32,
}

/// The effect of performing an activity twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A repetition is harmless: after a crash the activity runs again, and its start is not
    /// recorded.
    Idempotent,
    /// A repetition does harm. The start is made durable first; after a crash the handler's probe
    /// determines the outcome, or else the run is parked until a person settles it.
    Guarded,
}

/// The policy of an activity contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// When to try again after a retryable failure.
    pub retry: Delays,
    /// The timeout of one attempt, from start to end.
    pub start_to_close: Duration,
    /// The heartbeat timeout of one attempt; `None`: no heartbeats are required.
    pub heartbeat: Option<Duration>,
    /// The handling of an unknown outcome.
    pub effect: Effect,
    /// The pool whose slots limit how many of these run at once in the whole engine.
    pub pool: Option<String>,
    /// A pool of which a slot is taken first, and held as long.
    pub within: Option<String>,
    /// The order in the pools among projects of the same priority: higher is served first. Work
    /// that is nearly done goes before new work.
    pub rank: u8,
}

impl Policy {
    /// Runs again after a crash; five attempts, 200 ms to 10 s apart; ten minutes each.
    pub fn idempotent() -> Self {
        Self {
            retry: Delays::Exponential {
                initial: Duration::from_millis(200),
                factor: 3.0,
                max: Duration::from_secs(10),
                attempts: 5,
            },
            start_to_close: Duration::from_mins(10),
            heartbeat: None,
            effect: Effect::Idempotent,
            pool: None,
            within: None,
            rank: 0,
        }
    }

    /// As [`Policy::idempotent`], but repeated only after a probe.
    pub fn guarded() -> Self {
        Self { effect: Effect::Guarded, ..Self::idempotent() }
    }

    /// The time of the next attempt after a failure, given the earlier failures of the call;
    /// `None`: no further attempt.
    pub fn retry_at(
        &self,
        failure: &Failure,
        before: Failures,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let delay = match failure.kind {
            FailureKind::Terminal | FailureKind::Cancelled => None,
            FailureKind::RateLimited { until } => return Some(until.max(now)),
            FailureKind::Machine => MACHINE.after(before.of_machine.saturating_add(1)),
            FailureKind::Retryable => self.retry.after(before.counted + 1),
        }?;
        Some(now + chrono::Duration::from_std(delay).unwrap_or(chrono::Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(policy: &Delays) -> Vec<Option<u64>> {
        (1..=4).map(|failed| policy.after(failed).map(|delay| delay.as_secs())).collect()
    }

    #[test]
    fn a_list_ends_with_its_last_delay() {
        let list = Delays::List(vec![Duration::from_secs(3), Duration::from_secs(5)]);
        assert_eq!(delays(&list), [Some(3), Some(5), None, None]);
        assert_eq!(delays(&Delays::none()), [None; 4]);
    }

    #[test]
    fn exponential_delays_grow_to_the_maximum_and_stop() {
        let growing = Delays::Exponential {
            initial: Duration::from_secs(1),
            factor: 10.0,
            max: Duration::from_mins(1),
            attempts: 4,
        };
        assert_eq!(delays(&growing), [Some(1), Some(10), Some(60), None]);
    }

    #[test]
    fn a_rate_limit_costs_no_attempt() {
        let now = Utc::now();
        let until = now + chrono::Duration::hours(5);
        let policy = Policy { retry: Delays::none(), ..Policy::idempotent() };
        let nine = Failures { counted: 9, of_machine: 0 };
        assert_eq!(policy.retry_at(&Failure::rate_limited(until, "limit"), nine, now), Some(until));
        assert_eq!(policy.retry_at(&Failure::retryable("again"), Failures::default(), now), None);
    }

    #[test]
    fn the_machine_has_delays_of_its_own_without_end() {
        let now = Utc::now();
        let policy = Policy { retry: Delays::none(), ..Policy::idempotent() };
        let delay = |of_machine| {
            let before = Failures { counted: 9, of_machine };
            let at = policy.retry_at(&Failure::machine("disk full"), before, now).unwrap();
            (at - now).num_seconds()
        };
        assert_eq!([0, 1, 2, 5, 6, 1_000_000].map(delay), [1, 2, 4, 32, 60, 60]);
    }
}
