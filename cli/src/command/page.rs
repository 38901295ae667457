//! How things look on a page: its width, colours, durations, and tables that stay readable when it is narrow.

mod table;

use std::io::IsTerminal;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use comfy_table::Table;

use crate::term;

/// Prints a text on the page of this process.
pub(super) fn print(text: impl AsRef<str>) {
    term::print(Page::here().fitted(text.as_ref()));
}

/// Narrower than this, and a table is written as blocks of lines.
const NARROW: usize = 60;

/// The page: standard output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// In letters; `None`: as wide as it takes.
    pub(super) width: Option<usize>,
    /// Whether it shows colours.
    pub(super) is_coloured: bool,
}

/// A colour, for a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Green,
    Yellow,
    Red,
    Blue,
    Dim,
}

impl Page {
    /// The page of this process. `COLUMNS` is obeyed in a pipe too; colours are for terminals alone.
    pub(super) fn here() -> Self {
        let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|width| *width > 0);
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            width: told.or_else(|| Table::new().width().map(usize::from).filter(|width| *width > 0)),
            is_coloured: std::io::stdout().is_terminal() && !is_plain,
        }
    }

    pub(super) fn is_narrow(self) -> bool {
        self.width.is_some_and(|width| width < NARROW)
    }

    /// A text in a colour.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
            Colour::Blue => "34",
            Colour::Dim => "2",
        };
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A state in its colour.
    pub(super) fn state(self, state: &str) -> String {
        self.paint(colour(state), state)
    }

    /// A text as it is; on a narrow page with its lines broken to the width.
    pub(super) fn fitted(self, text: &str) -> String {
        if self.is_narrow() { self.indented(0, text) } else { text.to_owned() }
    }

    /// A text with its lines broken to the width and moved to the right.
    pub(super) fn indented(self, by: usize, text: &str) -> String {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(by).max(16));
        let indent = " ".repeat(by);
        let lines = text.lines().flat_map(|line| broken(line, room));
        lines.map(|line| format!("{indent}{line}").trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

/// The colour of a state.
pub(super) fn colour(state: &str) -> Colour {
    match state {
        "passed" | "done" => Colour::Green,
        "running" => Colour::Blue,
        "blocked" | "failed" | "parked" => Colour::Red,
        "paused" | "cancelled" => Colour::Yellow,
        _ => Colour::Dim,
    }
}

/// A line broken between words; a word that is longer than a line is cut.
fn broken(line: &str, room: usize) -> Vec<String> {
    let start: String = line.chars().take_while(|letter| *letter == ' ').collect();
    let mut lines = vec![start];
    for word in line.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let last = lines.last_mut().expect("there is always a line");
            let length = last.chars().count();
            let gap = usize::from(!last.trim().is_empty());
            if length + gap + word.len() <= room {
                last.extend(std::iter::repeat_n(' ', gap).chain(word));
                break;
            }
            if last.trim().is_empty() {
                let rest = word.split_off(room.saturating_sub(length).clamp(1, word.len()));
                last.extend(word);
                word = rest;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// A text of one line that cannot do anything to a terminal.
pub(super) fn safe(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The beginning of a text, at most so many letters.
pub(super) fn short(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let start: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// `1 run`, `2 runs`.
pub(super) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A time, to the second.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// How long something took, or is ago: `45s`, `3m12s`, `2h05m`, `3d04h`.
pub(super) fn span(span: TimeDelta) -> String {
    let seconds = span.num_seconds().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Page = Page { width: None, is_coloured: false };

    #[test]
    fn spans_have_two_units() {
        let shown = |seconds| span(TimeDelta::seconds(seconds));
        assert_eq!([0, 59, 60, 3725, 93_600].map(shown), ["0s", "59s", "1m00s", "1h02m", "1d02h"]);
        assert_eq!(shown(-5), "0s");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let page = Page { width: Some(20), ..PLAIN };
        assert_eq!(page.indented(2, "one two three four five"), "  one two three four\n  five");
        assert_eq!(page.indented(0, &"x".repeat(45)), [20, 20, 5].map(|length| "x".repeat(length)).join("\n"));
        assert_eq!(PLAIN.indented(2, "one two\nthree"), "  one two\n  three");
    }

    #[test]
    fn colours_are_for_pages_that_show_them() {
        assert_eq!(PLAIN.state("passed"), "passed");
        assert_eq!(Page { is_coloured: true, ..PLAIN }.state("passed"), "\x1b[32mpassed\x1b[0m");
    }

    #[test]
    fn control_characters_do_nothing() {
        assert_eq!(safe("a\x1b[31mb\nc"), "a [31mb c");
        assert_eq!(short("abcdef", 4), "abc…");
    }
}
