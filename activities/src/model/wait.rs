//! When a rate limit ends, as the headers of a response tell.

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::header::HeaderMap;

/// Without a header.
const DEFAULT: TimeDelta = TimeDelta::seconds(30);
const SHORTEST: TimeDelta = TimeDelta::seconds(1);
/// Longer than any limit of a provider; a damaged header must not stop a run for ever.
const LONGEST: TimeDelta = TimeDelta::days(8);

/// The time after which a refused request may be sent again.
pub(super) fn until(headers: &HeaderMap, now: DateTime<Utc>) -> DateTime<Utc> {
    let at = retry_after(headers, now).or_else(|| reset(headers, now)).unwrap_or(now + DEFAULT);
    at.clamp(now + SHORTEST, now + LONGEST)
}

/// The time before which a service refuses requests, if the headers of an answer say that a limit
/// is exhausted.
pub(super) fn exhausted_until(headers: &HeaderMap, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    reset(headers, now).filter(|until| *until > now).map(|until| until.min(now + LONGEST))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// `retry-after-ms`, and `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if let Some(delay) = text(headers, "retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return now.checked_add_signed(delay);
    }
    let text = text(headers, "retry-after")?;
    match seconds(text, 1.0) {
        Some(delay) => now.checked_add_signed(delay),
        None => Some(DateTime::parse_from_rfc2822(text).ok()?.to_utc()),
    }
}

/// A number of units; at most [`LONGEST`].
fn seconds(text: &str, unit: f64) -> Option<TimeDelta> {
    let seconds = text.parse::<f64>().ok().filter(|number| *number >= 0.0)? * unit;
    let longest = LONGEST.to_std().ok()?;
    let delay = std::time::Duration::try_from_secs_f64(seconds).unwrap_or(longest).min(longest);
    TimeDelta::from_std(delay).ok()
}

/// The latest reset of those limits that are exhausted.
fn reset(headers: &HeaderMap, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let anthropic = ["requests", "tokens", "input-tokens", "output-tokens"].map(|limit| {
        let prefix = format!("anthropic-ratelimit-{limit}");
        exhausted(headers, &format!("{prefix}-remaining"))?;
        let reset = text(headers, &format!("{prefix}-reset"))?;
        Some(DateTime::parse_from_rfc3339(reset).ok()?.to_utc())
    });
    let openai = ["requests", "tokens"].map(|limit| {
        exhausted(headers, &format!("x-ratelimit-remaining-{limit}"))?;
        now.checked_add_signed(units(text(headers, &format!("x-ratelimit-reset-{limit}"))?)?)
    });
    anthropic.into_iter().chain(openai).flatten().max()
}

fn exhausted(headers: &HeaderMap, remaining: &str) -> Option<()> {
    (text(headers, remaining)?.parse::<f64>().ok()? <= 0.0).then_some(())
}

/// A duration such as `1h2m3.5s` or `120ms`.
fn units(text: &str) -> Option<TimeDelta> {
    let mut total = TimeDelta::zero();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        total = total.checked_add(&seconds(number, unit)?)?;
        rest = &after[end..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn delay(lines: &[(&str, &str)]) -> f64 {
        let now = DateTime::parse_from_rfc3339("2026-11-22T12:00:00Z").unwrap().to_utc();
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = lines.iter().map(header).collect();
        (until(&headers, now) - now).as_seconds_f64()
    }

    #[test]
    fn headers_tell_when_a_limit_ends() {
        let day = 86400.0;
        let cases: [(&[(&str, &str)], f64); 12] = [
            (&[], 30.0),
            (&[("retry-after", "7")], 7.0),
            (&[("retry-after", "1.5")], 1.5),
            (&[("retry-after", "0")], 1.0),
            (&[("retry-after", "1e300")], 8.0 * day),
            (&[("retry-after", "-3")], 30.0),
            (&[("retry-after", "soon")], 30.0),
            (&[("retry-after", "Sun, 22 Nov 2026 12:01:00 GMT")], 60.0),
            (&[("retry-after-ms", "2500"), ("retry-after", "9")], 2.5),
            (
                &[
                    ("anthropic-ratelimit-tokens-remaining", "0"),
                    ("anthropic-ratelimit-tokens-reset", "2026-11-22T12:00:40Z"),
                    ("anthropic-ratelimit-requests-remaining", "4"),
                    ("anthropic-ratelimit-requests-reset", "2026-11-22T12:09:00Z"),
                ],
                40.0,
            ),
            (
                &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1h2m3s")],
                3723.0,
            ),
            (
                &[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "9x")],
                30.0,
            ),
        ];
        for (headers, expected) in cases {
            assert!((delay(headers) - expected).abs() < 1e-6, "{headers:?}: {}", delay(headers));
        }
    }
}
