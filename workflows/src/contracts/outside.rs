//! Moves of the project's branches by other programs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A branch that another program moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideChange {
    /// The branch: the target, or `longhaul/next`.
    pub branch: String,
    /// The last known commit; `None`: the branch did not exist.
    pub from: Option<String>,
    /// The current commit; `None`: the branch is gone.
    pub to: Option<String>,
    /// Whether it was restored. A change of the target is the user's right, so it stays.
    pub put_back: bool,
}

impl fmt::Display for OutsideChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |commit: &Option<String>| {
            commit.as_ref().map_or("nowhere".to_owned(), |commit| commit.chars().take(10).collect())
        };
        let branch = &self.branch;
        let from = short(&self.from);
        let to = short(&self.to);
        let what = format!("`{branch}` was moved from {from} to {to}, not by Longhaul");
        if !self.put_back {
            return formatter.write_str(&what);
        }
        let kept =
            self.to.as_ref().map(|_| format!("; {to} is kept under refs/longhaul/foreign/{to}"));
        write!(formatter, "{what}; it was put back{}", kept.unwrap_or_default())
    }
}
