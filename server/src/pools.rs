//! The pools that limit parallel activities.

/// The pool of agent sessions.
pub(crate) const AGENTS: &str = "agents";

/// The pool of set-up scripts and checks.
pub(crate) const CHECKS: &str = "checks";

/// The pool of new work trees.
pub(crate) const TREES: &str = "trees";
