//! The lines that were entered before.

use std::collections::VecDeque;

use crate::error::Error;

/// The last lines, up to a limit.
#[derive(Debug, Clone)]
pub struct History {
    lines: VecDeque<String>,
    limit: usize,
    /// How many lines were dropped at the front: numbers never change.
    dropped: usize,
}

impl History {
    /// An empty history that keeps at most `limit` lines.
    pub fn new(limit: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            limit,
            dropped: 0,
        }
    }

    /// Remembers a line, unless it is blank or the same as the one before.
    pub fn push(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() || self.lines.back().is_some_and(|last| last == line) {
            return;
        }
        self.lines.push_back(line.to_owned());
        if self.lines.len() > self.limit {
            self.lines.pop_front();
            self.dropped += 1;
        }
    }

    /// The lines that it holds with their numbers, the oldest first.
    pub fn lines(&self) -> Vec<(usize, String)> {
        self.lines
            .iter()
            .cloned()
            .enumerate()
            .map(|(i, line)| (self.dropped + i + 1, line))
            .collect()
    }

    /// The line that is meant: `!!` is the last one, `!3` the third, any other line itself.
    pub fn recall(&self, line: &str) -> Result<String, Error> {
        let found = match line.trim().strip_prefix('!') {
            None => return Ok(line.to_owned()),
            Some("!") => self.lines.back(),
            Some(number) => number
                .parse::<usize>()
                .ok()
                .and_then(|number| number.checked_sub(self.dropped + 1))
                .and_then(|index| self.lines.get(index)),
        };
        found
            .cloned()
            .ok_or_else(|| Error::new(format!("the history has no line `{}`", line.trim())))
    }
}
