//! What the commands that take back give as JSON.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use longhaul_server::Row;

/// A new run that goes on from a step of another one.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ForkDocument<'a> {
    /// The new run.
    pub(super) run: String,
    /// The run that it goes on from.
    pub(super) origin: String,
    /// The position in the history of that one which was asked for.
    pub(super) asked: u64,
    /// The position behind which it goes on: that of the last whole step up to there.
    pub(super) position: u64,
    /// The commit that its work tree stands on; none: a fresh one.
    pub(super) commit: Option<String>,
    /// Who says so.
    pub(super) by: &'a str,
    /// Why; empty where nobody said.
    pub(super) why: &'a str,
}

/// A project that is where it was.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct RollbackDocument<'a> {
    /// The commit that the target branch is at now.
    pub(super) to: String,
    /// Where the old tip is kept.
    pub(super) kept: String,
    /// The features that are to be done again.
    pub(super) undone: Vec<String>,
    /// Who says so.
    pub(super) by: &'a str,
    /// Why; empty where nobody said.
    pub(super) why: &'a str,
}

/// A work tree that is kept as it was.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct CheckpointDocument<'a> {
    /// The id of the run.
    pub(super) run: String,
    /// How `fork --from` calls it.
    pub(super) name: String,
    /// The commit that keeps the work.
    pub(super) commit: String,
    /// Who says so.
    pub(super) by: &'a str,
    /// Why; empty where nobody said.
    pub(super) why: &'a str,
}

/// What runs can be taken back to.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct CheckpointsDocument {
    /// Run by run, in the order of the history.
    checkpoints: Vec<CheckpointLine>,
}

/// A step of a run, and the commit that its work stood on.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckpointLine {
    /// The id of the run.
    run: String,
    /// How `fork --from` calls it: `session:N`, `checkpoint:N`, or the position.
    name: String,
    /// Whether `fork` can go on from it.
    fork: bool,
    /// Whether `rollback --to` takes its commit: it landed.
    rollback: bool,
    /// The position in the history of the run.
    position: u64,
    /// When it was recorded.
    at: DateTime<Utc>,
    /// The commit that keeps the work.
    commit: String,
    /// The session that it sealed, from 1.
    session: Option<u32>,
    /// What it is, for people: `session 2, done`, or the note of whoever asked for it.
    step: String,
}

impl CheckpointsDocument {
    pub(super) fn of(rows: Vec<Row>) -> Self {
        let line = |Row { run, name, fork, rollback, checkpoint }: Row| CheckpointLine {
            run: run.to_string(),
            name,
            fork,
            rollback,
            position: checkpoint.position,
            at: checkpoint.at,
            commit: checkpoint.commit,
            session: checkpoint.session,
            step: checkpoint.step,
        };
        Self { checkpoints: rows.into_iter().map(line).collect() }
    }
}
