//! The rate of requests to providers, for all runs of the process.
//!
//! A request that would exceed a limit gets a reserved time and fails until then, which the engine
//! records as a durable timer. The session of an agent that sends its requests itself waits in the
//! same way before it begins; its requests count as it reports them.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use longhaul_engine::Failure;

use crate::providers::ProviderLimits;

use super::rate_limits::{RateLimits, clock};

const MINUTE: TimeDelta = TimeDelta::minutes(1);
/// How long a reserved time is kept for a call that does not come.
const KEPT: TimeDelta = TimeDelta::seconds(30);

/// The rates of all providers.
#[derive(Debug, Clone)]
pub struct Limiter {
    stated_limits: RateLimits,
    rates: Arc<Mutex<HashMap<String, Rate>>>,
}

/// A request that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedRequest<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    /// The same for all attempts of a call.
    pub(crate) call: &'a str,
    /// Its estimated tokens; 0 for a session.
    pub(crate) tokens: u64,
    pub(crate) limits: ProviderLimits,
}

/// The requests to one provider.
#[derive(Debug, Default)]
struct Rate {
    /// Those of the last minute, oldest first.
    sent: VecDeque<Slot>,
    /// Those that wait for their time, earliest first.
    reserved: VecDeque<Slot>,
}

#[derive(Debug, Clone)]
struct Slot {
    call: String,
    at: DateTime<Utc>,
    tokens: u64,
}

impl Limiter {
    /// The rates of a data directory, whose stated rate limits outlive the process.
    pub fn new(data_dir: &Path) -> Self {
        Self { stated_limits: RateLimits::new(data_dir), rates: Arc::default() }
    }

    fn rates(&self) -> MutexGuard<'_, HashMap<String, Rate>> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a request now, or fails until its time.
    pub(crate) fn admit(
        &self,
        wanted: &QueuedRequest<'_>,
        now: DateTime<Utc>,
    ) -> Result<(), Failure> {
        let QueuedRequest { provider, model, limits, .. } = wanted;
        if let Some(until) = self.stated_limits.until(provider, model).filter(|until| *until > now)
        {
            let what = match wanted.tokens {
                0 => "session".to_owned(),
                _ => format!("request for {model}"),
            };
            let message = format!(
                "the provider {provider} accepts no {what} before {}: an earlier one reached its \
                 rate limit",
                clock(until)
            );
            return Err(Failure::rate_limited(until, message));
        }
        let mut rates = self.rates();
        let rate = rates.entry((*provider).to_owned()).or_default();
        rate.admit(wanted, now).map_err(|until| {
            let message = format!("providers.toml limits {provider} to {}", described(limits));
            Failure::rate_limited(until, message)
        })
    }

    /// Counts the tokens that an answer took, instead of the estimate.
    pub(super) fn settle(&self, provider: &str, call: &str, tokens: u64) {
        if let Some(rate) = self.rates().get_mut(provider)
            && let Some(slot) = rate.sent.iter_mut().rev().find(|slot| slot.call == call)
        {
            slot.tokens = tokens;
        }
    }

    /// Counts a request that an agent has sent itself. The first one of a session takes the place
    /// that the session got when it began.
    pub(crate) fn count(&self, provider: &str, call: &str, tokens: u64, now: DateTime<Utc>) {
        let mut rates = self.rates();
        let sent = &mut rates.entry(provider.to_owned()).or_default().sent;
        sent.retain(|slot| slot.at + MINUTE > now);
        match sent.iter_mut().find(|slot| slot.call == call && slot.tokens == 0) {
            Some(begun) => begun.tokens = tokens,
            None => sent.push_back(Slot { call: call.to_owned(), at: now, tokens }),
        }
    }
}

impl Rate {
    /// Counts a request, or gives it a time.
    fn admit(
        &mut self,
        wanted: &QueuedRequest<'_>,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>> {
        self.sent.retain(|slot| slot.at + MINUTE > now);
        let is_own = |slot: &Slot| slot.call == wanted.call;
        let had_time = self.reserved.iter().any(is_own);
        self.reserved.retain(|slot| !is_own(slot) && slot.at + KEPT > now);
        let mut slot = Slot { call: wanted.call.to_owned(), at: now, tokens: wanted.tokens };
        let is_first = had_time || self.reserved.is_empty();
        if is_first && self.room_at(&slot, &wanted.limits) {
            self.sent.push_back(slot);
            return Ok(());
        }
        if let Some(last) = self.reserved.back() {
            slot.at = slot.at.max(last.at);
        }
        while !self.room_at(&slot, &wanted.limits) {
            let oldest = self.before(slot.at).next().map_or(slot.at, |oldest| oldest.at);
            slot.at = oldest + MINUTE;
        }
        let at = slot.at;
        self.reserved.push_back(slot);
        Err(at)
    }

    /// The requests within the minute that ends at a time.
    fn before(&self, at: DateTime<Utc>) -> impl Iterator<Item = &Slot> {
        let all = self.sent.iter().chain(&self.reserved);
        all.filter(move |slot| slot.at <= at && slot.at + MINUTE > at)
    }

    /// Whether a request stays within the limits at its time. One alone always does.
    fn room_at(&self, slot: &Slot, limits: &ProviderLimits) -> bool {
        let requests = self.before(slot.at).count();
        let tokens = self.before(slot.at).map(|slot| slot.tokens).sum::<u64>() + slot.tokens;
        let most = limits.requests_per_minute.map_or(usize::MAX, |most| most as usize);
        requests == 0
            || (requests < most && limits.tokens_per_minute.is_none_or(|most| tokens <= most))
    }
}

fn described(limits: &ProviderLimits) -> String {
    let requests = limits.requests_per_minute.map(|most| format!("{most} requests"));
    let tokens = limits.tokens_per_minute.map(|most| format!("{most} tokens"));
    let both: Vec<_> = requests.into_iter().chain(tokens).collect();
    format!("{} per minute", both.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn wanted(call: &str, limits: ProviderLimits) -> QueuedRequest<'_> {
        QueuedRequest { provider: "p", model: "m", call, tokens: 10, limits }
    }

    /// The time of the next attempt, in seconds; `None`: admitted.
    fn admit(rate: &mut Rate, call: &str, limits: ProviderLimits, now: i64) -> Option<i64> {
        rate.admit(&wanted(call, limits), at(now)).err().map(|until| until.timestamp())
    }

    #[test]
    fn no_minute_has_more_requests_than_the_limit_and_each_waits_once() {
        let limits = ProviderLimits { requests_per_minute: Some(2), ..ProviderLimits::default() };
        let mut rate = Rate::default();
        let first = ["a", "b", "c", "d", "e"].map(|call| admit(&mut rate, call, limits, 0));
        assert_eq!(first, [None, None, Some(60), Some(60), Some(120)]);
        assert_eq!(admit(&mut rate, "f", limits, 60), Some(120), "the reserved times are kept");
        let second = ["c", "d"].map(|call| admit(&mut rate, call, limits, 60));
        assert_eq!(second, [None, None]);
        let third = ["e", "f", "g"].map(|call| admit(&mut rate, call, limits, 121));
        assert_eq!(third, [None, None, Some(181)]);
    }

    #[test]
    fn tokens_count_as_the_provider_counts_them_and_an_abandoned_time_is_given_away() {
        let limits = ProviderLimits { tokens_per_minute: Some(25), ..ProviderLimits::default() };
        let limiter = Limiter::new(Path::new("/nonexistent"));
        let admit = |call: &str, now: i64| {
            let outcome = limiter.admit(&wanted(call, limits), at(now));
            outcome.map_err(|failure| failure.message)
        };
        assert_eq!(admit("a", 0), Ok(()));
        limiter.settle("p", "a", 20);
        let refused = "providers.toml limits p to 25 tokens per minute".to_owned();
        assert_eq!(admit("b", 1), Err(refused));
        assert_eq!(admit("c", 100), Ok(()), "b did not come");
    }

    #[test]
    fn a_session_waits_for_room_and_its_requests_count_as_reported() {
        let limits = ProviderLimits {
            requests_per_minute: Some(4),
            tokens_per_minute: Some(100),
            concurrent: None,
        };
        let limiter = Limiter::new(Path::new("/nonexistent"));
        let begin = |call: &str, now: i64| {
            let session = QueuedRequest { tokens: 0, ..wanted(call, limits) };
            limiter.admit(&session, at(now)).is_ok()
        };
        assert!(begin("a", 0));
        limiter.count("p", "a", 70, at(1));
        assert!(begin("b", 2), "one request so far");
        limiter.count("p", "a", 50, at(3));
        assert!(!begin("c", 4), "120 tokens");
        let requests = limiter.rates()["p"].sent.len();
        assert_eq!(requests, 3, "two of a, and the first one of b is not reported yet");
        assert!(begin("d", 130));
    }
}
