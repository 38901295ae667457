//! Text for people: times, shortened lines, and program output without terminal control sequences.

use chrono::{DateTime, SecondsFormat, Utc};

/// `2026-01-31T09:05:00Z`.
pub(super) fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// `2026-01-31T09:05:00.123Z`.
pub(super) fn precise(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The text as one line of at most `limit` characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= limit {
        return line;
    }
    let short: String = line.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

/// The last `limit` bytes or fewer of a text.
pub(super) fn end_of(text: &str, limit: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(limit))..]
}

/// Text without terminal control sequences and characters.
pub(super) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.next_if_eq(&'[').is_some() => {
                // A control sequence ends with a character in this range.
                letters.by_ref().find(|letter| ('@'..='~').contains(letter));
            }
            '\n' | '\t' => cleaned.push(letter),
            _ if letter.is_control() => {}
            _ => cleaned.push(letter),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_shown_without_what_a_terminal_would_obey() {
        assert_eq!(clean("\u{1b}[1;31merror\u{1b}[0m: a\tb\r\nc\u{7}"), "error: a\tb\nc");
        assert_eq!(clean("\u{1b}[31"), "");
    }

    #[test]
    fn long_texts_become_one_short_line() {
        assert_eq!(one_line(" a\n  b ", 10), "a b");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcd fg", 6), "abcd…");
    }

    #[test]
    fn an_end_begins_with_a_whole_letter() {
        assert_eq!(end_of("aéb", 2), "b");
        assert_eq!(end_of("aéb", 9), "aéb");
    }
}
