//! Moves of the project's branches that something else than Longhaul made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A branch that Longhaul did not move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideChange {
    /// The branch: the target, or `longhaul/next`.
    pub branch: String,
    /// The commit where Longhaul knew it; `None`: it was not there.
    pub from: Option<String>,
    /// The commit where it was found; `None`: it was gone.
    pub to: Option<String>,
    /// Whether it was put back. A change of the target is the owner's right, and stays.
    pub put_back: bool,
}

impl fmt::Display for OutsideChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |commit: &Option<String>| {
            commit.as_ref().map_or("nowhere".to_owned(), |commit| commit.chars().take(10).collect())
        };
        let (branch, from, to) = (&self.branch, short(&self.from), short(&self.to));
        let what = format!("`{branch}` was moved from {from} to {to}, not by Longhaul");
        if !self.put_back {
            return formatter.write_str(&what);
        }
        let kept =
            self.to.as_ref().map(|_| format!("; {to} is kept under refs/longhaul/foreign/{to}"));
        write!(formatter, "{what}; it was put back{}", kept.unwrap_or_default())
    }
}
