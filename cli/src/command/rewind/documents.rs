//! JSON documents of fork, restart, rollback and checkpoint.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use longhaul_server::RewindPoint;

/// A new run that continues from a step of another one.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ForkDocument {
    /// The new run.
    pub(super) run: String,
    /// The origin run.
    pub(super) origin: String,
    /// The requested position in the history of the origin.
    pub(super) requested: u64,
    /// The last position that the fork took over: the end of a whole step.
    pub(super) position: u64,
    /// The first commit of its work tree; absent: it starts without earlier work.
    pub(super) commit: Option<String>,
    /// The passed features whose checks run again, because they depend on the feature.
    pub(super) invalidates: Vec<String>,
    /// The requester.
    pub(super) by: String,
    /// The reason; may be empty.
    pub(super) why: String,
}

/// The forks of several runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ForksDocument {
    /// Whether it was a dry run.
    pub(super) dry_run: bool,
    /// The new runs.
    pub(super) forks: Vec<ForkDocument>,
    /// The runs that were not forked.
    pub(super) refused: Vec<RefusedFork>,
}

/// A run that was not forked.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RefusedFork {
    /// The run.
    pub(super) run: String,
    /// Why.
    pub(super) reason: String,
}

/// The result of a rollback.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct RollbackDocument<'a> {
    /// The id of the project.
    pub(super) project: String,
    /// Whether it was a dry run.
    pub(super) dry_run: bool,
    /// The commit of the target branch.
    pub(super) to: String,
    /// The ref that keeps the old tip; empty in a dry run.
    pub(super) kept: String,
    /// The features that are pending again.
    pub(super) undone: Vec<String>,
    /// The requester.
    pub(super) by: &'a str,
    /// The reason; may be empty.
    pub(super) why: &'a str,
}

/// The rollbacks of several projects.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct RollbacksDocument<'a> {
    /// Whether it was a dry run.
    pub(super) dry_run: bool,
    /// The projects that were rolled back.
    pub(super) rollbacks: Vec<RollbackDocument<'a>>,
    /// The projects that were not rolled back.
    pub(super) refused: Vec<RefusedRollback>,
}

/// A project that was not rolled back.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RefusedRollback {
    /// The id of the project.
    pub(super) project: String,
    /// Why.
    pub(super) reason: String,
}

/// A recorded work tree.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct CheckpointDocument<'a> {
    /// The id of the run.
    pub(super) run: String,
    /// Its name for `fork --from`.
    pub(super) name: String,
    /// The commit that contains the work.
    pub(super) commit: String,
    /// The requester.
    pub(super) by: &'a str,
    /// The reason; may be empty.
    pub(super) why: &'a str,
}

/// The steps to which runs can return.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct CheckpointsDocument {
    /// The steps by run, in the order of the history.
    checkpoints: Vec<CheckpointLine>,
}

/// A step of a run, with its commit.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckpointLine {
    /// The id of the run.
    run: String,
    /// Its name for `fork --from`: `session:N`, `checkpoint:N`, or the position.
    name: String,
    /// Whether `fork` can start from it.
    fork: bool,
    /// Whether `rollback --to` accepts its commit, because it landed.
    rollback: bool,
    /// The position in the history of the run.
    position: u64,
    /// When it was recorded.
    at: DateTime<Utc>,
    /// The commit that contains the work.
    commit: String,
    /// The session that it sealed, from 1.
    session: Option<u32>,
    /// Description: `session 2, done`, or the note of the requester.
    step: String,
}

impl CheckpointsDocument {
    pub(super) fn of(rows: Vec<RewindPoint>) -> Self {
        let line =
            |RewindPoint { run, name, fork, rollback, checkpoint }: RewindPoint| CheckpointLine {
                run: run.to_string(),
                name,
                fork,
                rollback,
                position: checkpoint.position,
                at: checkpoint.at,
                commit: checkpoint.commit,
                session: checkpoint.session,
                step: checkpoint.step.to_string(),
            };
        Self { checkpoints: rows.into_iter().map(line).collect() }
    }
}
