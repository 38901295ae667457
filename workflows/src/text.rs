//! Text fragments: counts, times, shortened lists.

use chrono::{DateTime, Utc};

/// Joins paragraphs, without empty ones.
pub(crate) fn paragraphs(parts: &[&str]) -> String {
    let parts: Vec<&str> =
        parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// A time, to the second.
pub fn clock(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `1 file`, `2 files`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The abbreviated hash of a commit.
pub fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// The items with commas; of many only the first ones.
pub(crate) fn some_of(items: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = items.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN { format!("{shown} and {} more", items.len() - SHOWN) } else { shown }
}

/// A duration.
pub(crate) fn took(milliseconds: u64) -> String {
    format!("{:.1} s", std::time::Duration::from_millis(milliseconds).as_secs_f64())
}

/// The last lines of an output.
pub(crate) fn last_lines(output: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
