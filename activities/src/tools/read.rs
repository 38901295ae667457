//! `read`: a text file with numbered lines.

use std::fmt::Write as _;

use super::text::{Secrets, start_of_line};
use super::tool_tree::{Fault, LONGEST, ToolTree, quoted};

/// The most lines of an answer.
const LINES: usize = 2000;
/// The most bytes of an answer.
const BYTES: usize = 48 * 1024;
/// The most bytes of a line.
const LINE: usize = 2000;

/// Lines `start` to `end` of a file, from 1.
pub(super) fn read(
    tree: &ToolTree,
    secrets: &Secrets,
    given: &str,
    (start, end): (Option<u64>, Option<u64>),
) -> Result<String, Fault> {
    let path = tree.path(given)?;
    let content = tree.read(&path, LONGEST)?;
    if content.contains(&0) {
        return Err(format!("{} is a binary file.", quoted(&path)).into());
    }
    // Secrets first: a line may be cut within one.
    let text = secrets.redacted(&String::from_utf8_lossy(&content));
    let lines: Vec<&str> = text.lines().collect();
    let count = lines.len();
    let number = |given: u64| usize::try_from(given).unwrap_or(usize::MAX);
    let first = start.map_or(1, number);
    let last = end.map_or(count, number).min(count);
    if count == 0 {
        return Ok(format!("{} is empty.", quoted(&path)));
    }
    if first > last {
        let shown = quoted(&path);
        return Err(format!("{shown} has {count} lines: there are no lines {first} to {}.", {
            end.map_or(count, number)
        })
        .into());
    }
    let mut answer = String::new();
    let mut at = first;
    while at <= last && at - first < LINES && answer.len() < BYTES {
        let _ = writeln!(answer, "{at}\t{}", start_of_line(lines[at - 1], LINE));
        at += 1;
    }
    if at <= last {
        let _ =
            writeln!(answer, "[lines {first} to {} of {count}; go on with start = {at}]", at - 1);
    } else if last < count || first > 1 {
        let _ = writeln!(answer, "[lines {first} to {last} of {count}]");
    }
    Ok(answer)
}
