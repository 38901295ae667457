//! Terminal output: width, colours, durations, and tables that stay readable on a narrow terminal.

use longhaul_workflows::projection::State;
use std::io::IsTerminal;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use comfy_table::{ColumnConstraint, Table, Width, presets};
use ratatui::style::Style;
use textwrap::WordSplitter;

use crate::term;

/// Prints text on the terminal of this process.
pub(crate) fn print(text: impl AsRef<str>) {
    term::print(Terminal::here().fitted(text.as_ref()));
}

/// On a narrower terminal, each row of a table is a block of lines.
const NARROW: usize = 60;
/// Spaces between two columns of a table.
const GAP: u16 = 2;
/// Minimum width of a wrapped last column; below it, each row becomes a block.
const LAST_COLUMN: u16 = 20;

/// Rows of a screen of unknown size.
const ROWS: usize = 40;

/// How many entries of a list fit on the screen, with its header and the prompt; at least 5.
pub(crate) fn rows() -> usize {
    let rows = console::Term::stdout().size_checked().map_or(ROWS, |(rows, _)| usize::from(rows));
    rows.saturating_sub(4).max(5)
}

/// The properties of standard output as a terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Width in columns; `None`: unlimited.
    pub(crate) width: Option<usize>,
    /// Whether to print colours.
    pub(crate) is_coloured: bool,
}

/// The colour of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Green,
    Yellow,
    Red,
    Blue,
    Dim,
}

impl Terminal {
    /// The terminal of this process. `COLUMNS` applies to pipes too; colours are for terminals
    /// only.
    pub(crate) fn here() -> Self {
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
            .filter(|width| *width > 0);
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            width: columns
                .or_else(|| Table::new().width().map(usize::from).filter(|width| *width > 0)),
            is_coloured: std::io::stdout().is_terminal() && !is_plain,
        }
    }

    pub(crate) fn is_narrow(self) -> bool {
        self.width.is_some_and(|width| width < NARROW)
    }

    /// Text in a colour.
    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
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
    pub(crate) fn state(self, state: impl Into<State>) -> String {
        let state = state.into();
        self.paint(colour(state), state.as_str())
    }

    /// Text, wrapped on a narrow terminal.
    pub(crate) fn fitted(self, text: &str) -> String {
        if self.is_narrow() { self.indented(0, text) } else { text.to_owned() }
    }

    /// Text, wrapped to the width and indented.
    pub(crate) fn indented(self, by: usize, text: &str) -> String {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(by).max(16));
        let options = textwrap::Options::new(room).word_splitter(WordSplitter::NoHyphenation);
        let wrapped = text
            .lines()
            .flat_map(|line| textwrap::wrap(line, &options))
            .collect::<Vec<_>>()
            .join("\n");
        textwrap::indent(&wrapped, &" ".repeat(by))
    }

    /// A table. Only the last column is wrapped; if that is not enough, each row becomes a block
    /// below its first cell.
    pub(crate) fn table(self, header: &[&str], rows: &[Vec<String>]) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
        let mut widths = table.column_max_content_widths();
        let last = widths.pop().unwrap_or_default();
        let others: usize = widths.iter().map(|width| usize::from(width + GAP)).sum();
        let room = self.width.map_or(last, |width| {
            u16::try_from(width.saturating_sub(others)).map_or(last, |room| room.min(last))
        });
        if self.is_narrow() || room < last.min(LAST_COLUMN) {
            let blocks: Vec<String> = rows.iter().map(|row| self.block(header, row)).collect();
            return blocks.join("\n");
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, GAP));
        }
        if let Some(column) = table.column_mut(widths.len()) {
            column
                .set_padding((0, 0))
                .set_constraint(ColumnConstraint::Absolute(Width::Fixed(room)));
        }
        table.trim_fmt()
    }

    fn block(self, header: &[&str], row: &[String]) -> String {
        let cells = header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
        let lines = cells.map(|(name, cell)| match *name {
            "" => self.indented(2, cell),
            name => self.indented(2, &format!("{}: {cell}", name.to_lowercase())),
        });
        row.first().cloned().into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }
}

/// The colour of a state.
pub(crate) fn colour(state: State) -> Colour {
    match state {
        State::Passed | State::Done => Colour::Green,
        State::Running => Colour::Blue,
        State::Blocked | State::Failed | State::Parked | State::NeedsAttention => Colour::Red,
        State::Paused | State::Cancelled => Colour::Yellow,
        State::Pending | State::Waiting => Colour::Dim,
    }
}

/// The style of a state in a drawing.
pub(crate) fn style(state: impl Into<State>) -> Style {
    match colour(state.into()) {
        Colour::Green => Style::new().green(),
        Colour::Yellow => Style::new().yellow(),
        Colour::Red => Style::new().red(),
        Colour::Blue => Style::new().blue(),
        Colour::Dim => Style::new().dim(),
    }
}

/// Text on one line, without control characters.
pub(crate) fn safe(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The beginning of a string, at most `room` characters; a command in backticks is whole or absent.
pub(crate) fn short(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let mut start: String = text.chars().take(room.saturating_sub(1)).collect();
    if start.matches('`').count() % 2 == 1
        && let Some(at) = start.rfind("`longhaul ")
    {
        start.truncate(at);
    }
    format!("{}…", start.trim_end())
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A time, to the second.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A duration or an age: `45s`, `3m12s`, `2h05m`, `3d04h`.
pub(crate) fn span(span: TimeDelta) -> String {
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

    const PLAIN: Terminal = Terminal { width: None, is_coloured: false };

    #[test]
    fn spans_have_two_units() {
        let shown = |seconds| span(TimeDelta::seconds(seconds));
        assert_eq!([0, 59, 60, 3725, 93_600].map(shown), ["0s", "59s", "1m00s", "1h02m", "1d02h"]);
        assert_eq!(shown(-5), "0s");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let terminal = Terminal { width: Some(20), ..PLAIN };
        assert_eq!(terminal.indented(2, "one two three four five"), "  one two three four\n  five");
        assert_eq!(
            terminal.indented(0, &"x".repeat(45)),
            [20, 20, 5].map(|length| "x".repeat(length)).join("\n")
        );
        assert_eq!(PLAIN.indented(2, "one two\nthree"), "  one two\n  three");
    }

    #[test]
    fn colours_are_for_pages_that_show_them() {
        assert_eq!(PLAIN.state(State::Passed), "passed");
        assert_eq!(
            Terminal { is_coloured: true, ..PLAIN }.state(State::Passed),
            "\x1b[32mpassed\x1b[0m"
        );
    }

    #[test]
    fn control_characters_do_nothing() {
        assert_eq!(safe("a\x1b[31mb\nc"), "a [31mb c");
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!(short("it waits: `longhaul approve shop/login/1`", 24), "it waits:…");
    }

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_narrow_table_is_made_of_blocks() {
        let rows = [row(["shop/login/1", "running", ""])];
        let header = ["RUN", "STATUS", "REASON"];
        let narrow = Terminal { width: Some(40), ..PLAIN };
        assert_eq!(narrow.table(&header, &rows), "shop/login/1\n  status: running");
        assert_eq!(narrow.table(&["RUN", "", "REASON"], &rows), "shop/login/1\n  running");
        assert_eq!(PLAIN.table(&header, &rows).lines().count(), 2);
    }

    #[test]
    fn colours_take_no_room() {
        let terminal = Terminal { is_coloured: true, ..PLAIN };
        let table = terminal
            .table(&["RUN", "STATUS", "AGE"], &[row(["a", &terminal.state(State::Passed), "3s"])]);
        assert_eq!(table, "RUN  STATUS  AGE\na    \x1b[32mpassed\x1b[0m  3s");
    }

    #[test]
    fn no_cell_but_the_last_is_ever_broken() {
        let rows = [row(["shop/login/1", "4a7931dee0", "the check of the parser exits with 1"])];
        let header = ["RUN", "COMMIT", "REASON"];
        let at = |width| Terminal { width: Some(width), ..PLAIN }.table(&header, &rows);
        let last: Vec<String> = at(60).lines().skip(1).map(|line| line[26..].to_owned()).collect();
        assert_eq!(last, ["the check of the parser exits with", "1"]);
        let blocks = "shop/login/1-of-many\n  commit: 4a7931dee0\n  \
                      reason: the check of the parser exits with 1";
        let rows = [row(["shop/login/1-of-many", &"x".repeat(20), rows[0][2].as_str()])];
        assert_eq!(
            Terminal { width: Some(60), ..PLAIN }.table(&header, &rows),
            blocks.replace("4a7931dee0", &"x".repeat(20))
        );
    }
}
