//! Text for people: times, shortened lines, and output of programs without what a terminal would obey.

use chrono::{DateTime, SecondsFormat, Utc};

/// `2026-01-31T09:05:00Z`.
pub(super) fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// `2026-01-31T09:05:00.123Z`.
pub(super) fn precise(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A length of time: `450 ms`, `12 s`, `3 min 5 s`, `2 h 10 min`.
pub(super) fn length_of(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `1 file`, `2 files`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The items with commas; of many only the first ones.
pub(super) fn some_of(items: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = items.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN { format!("{shown} and {} more", items.len() - SHOWN) } else { shown }
}

/// Everything in one line, with at most `limit` characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= limit {
        return line;
    }
    let short: String = line.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", short.trim_end())
}

/// The last lines of an output.
pub(super) fn last_lines(output: &str) -> String {
    const LINES: usize = 20;
    let text = clean(output);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// The end of a text, at most `limit` bytes of it.
pub(super) fn end_of(text: &str, limit: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(limit))..]
}

/// Text without the sequences and characters that a terminal would obey.
pub(super) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.next_if_eq(&'[').is_some() => {
                // A control sequence ends with a letter, or one of a few signs in the same range.
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
    fn lengths_of_time_are_rounded_down() {
        let shown = [450, 12_000, 185_000, 7_800_000].map(length_of);
        assert_eq!(shown, ["450 ms", "12 s", "3 min 5 s", "2 h 10 min"]);
    }

    #[test]
    fn an_end_begins_with_a_whole_letter() {
        assert_eq!(end_of("aéb", 2), "b");
        assert_eq!(end_of("aéb", 9), "aéb");
    }

    #[test]
    fn only_the_last_lines_of_an_output_are_shown() {
        let output = (1..=30).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n") + "\n\n";
        let shown = last_lines(&output);
        assert!(shown.starts_with("line 11\n") && shown.ends_with("\nline 30"), "{shown}");
    }
}
