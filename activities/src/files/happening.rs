//! What happened, in the words of the files: the fixed vocabulary, and the order in which it is told.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use longhaul_engine::{Position, RunId};
use longhaul_workflows::backlog::FeatureId;

/// What kind of thing happened. The names are in files that people and scripts read: they do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    FeatureStarted,
    WorktreeOpened,
    SetupPassed,
    SetupFailed,
    BaselinePassed,
    BaselineFailed,
    SessionStarted,
    SessionEnded,
    Handoff,
    SessionFailed,
    Checkpoint,
    Tampering,
    GatesPassed,
    GatesFailed,
    Merged,
    MergeConflict,
    Landed,
    WorktreeClosed,
    AttemptFailed,
    FeatureCompleted,
    FeatureBlocked,
    FeatureCancelled,
    Paused,
    Resumed,
    Parked,
    Reconciled,
    ListProblem,
}

impl Kind {
    /// Its name in `history.json`, and as an `Action` in `claude-progress.txt`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FeatureStarted => "feature_started",
            Self::WorktreeOpened => "worktree_opened",
            Self::SetupPassed => "setup_passed",
            Self::SetupFailed => "setup_failed",
            Self::BaselinePassed => "baseline_passed",
            Self::BaselineFailed => "baseline_failed",
            Self::SessionStarted => "session_started",
            Self::SessionEnded => "session_ended",
            Self::Handoff => "handoff",
            Self::SessionFailed => "session_failed",
            Self::Checkpoint => "checkpoint",
            Self::Tampering => "tampering",
            Self::GatesPassed => "gates_passed",
            Self::GatesFailed => "gates_failed",
            Self::Merged => "merged",
            Self::MergeConflict => "merge_conflict",
            Self::Landed => "landed",
            Self::WorktreeClosed => "worktree_closed",
            Self::AttemptFailed => "attempt_failed",
            Self::FeatureCompleted => "feature_completed",
            Self::FeatureBlocked => "feature_blocked",
            Self::FeatureCancelled => "feature_cancelled",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Parked => "parked",
            Self::Reconciled => "reconciled",
            Self::ListProblem => "list_problem",
        }
    }

    /// Whether it is told in `claude-progress.txt`, or only in `history.json`.
    pub(super) fn is_for_progress_file(self) -> bool {
        !matches!(
            self,
            Self::FeatureStarted
                | Self::WorktreeOpened
                | Self::SetupPassed
                | Self::BaselinePassed
                | Self::Merged
                | Self::Landed
                | Self::WorktreeClosed
                | Self::AttemptFailed
                | Self::ListProblem
        )
    }
}

/// The order in which things are told: by time; then as the log has them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) at: DateTime<Utc>,
    pub(super) run: RunId,
    pub(super) position: Position,
    /// Which of the things that one event tells.
    pub(super) nth: u8,
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub(super) struct Happening {
    pub(super) key: Key,
    pub(super) kind: Kind,
    /// `None`: it happened to the whole project.
    pub(super) feature: Option<FeatureId>,
    /// The session that it belongs to, or the run if there is none.
    pub(super) session: String,
    /// In full.
    pub(super) text: String,
    pub(super) commit: Option<String>,
    /// The step that was completed by it.
    pub(super) step: Option<String>,
}

/// The latest things of a kind, in order, whenever they were heard of.
#[derive(Debug)]
pub(super) struct Timeline<T>(BTreeMap<Key, T>);

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Timeline<T> {
    /// How many are kept.
    pub(super) const LIMIT: usize = 2000;

    pub(super) fn insert(&mut self, key: Key, item: T) {
        self.0.insert(key, item);
        if self.0.len() > Self::LIMIT {
            self.0.pop_first();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
