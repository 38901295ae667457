//! The signals of a project: names, content, and permitted senders.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::payload::PayloadError;
use longhaul_engine::{Payload, RequestedBy, RunId};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::batch::Overrides;

use super::back::Forked;
use super::signal;
use super::view::Rollback;

/// The behaviour of a halted project after a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterSync {
    GoOn,
    Stay,
}

/// A parsed signal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    Sync(SyncRequest),
    Reload(String),
    Halt(RequestedBy),
    Moved(String),
    Override(Box<Overrides>),
    Label(BTreeMap<String, String>),
    Block(BlockRequest),
    Unblock(FeatureId),
    CalledDone(FeatureId),
    Fork(Forked),
    Rollback(Rollback),
    Held(HeldRuns),
}

/// The content of the signal `sync`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRequest {
    /// Its id.
    pub id: String,
    /// The only features to start, with those that they depend on; empty: all. It holds until the
    /// next `sync`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub only: BTreeSet<FeatureId>,
}

impl SyncRequest {
    /// A request without a selection.
    pub fn of_all(id: impl Into<String>) -> Self {
        Self { id: id.into(), only: BTreeSet::new() }
    }
}

/// The content of the signal `block`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRequest {
    /// The feature.
    pub feature: FeatureId,
    /// The reason.
    pub reason: String,
}

/// The content of the signal `held`; published under [`HeldRuns::KEY`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRuns {
    /// The held feature runs.
    pub runs: BTreeSet<RunId>,
}

impl HeldRuns {
    /// The key under which it is published.
    pub const KEY: &'static str = "held";
}

impl Order {
    /// Parses a signal without a sending run; `None`: the name is unknown.
    pub(super) fn read(name: &str, payload: &Payload) -> Option<Result<Self, PayloadError>> {
        Some(match name {
            signal::SYNC => payload.read().map(Self::Sync),
            signal::RELOAD => payload.read().map(Self::Reload),
            signal::HALT => payload.read().map(Self::Halt),
            signal::MOVED => payload.read().map(Self::Moved),
            signal::OVERRIDE => payload.read().map(Self::Override),
            signal::LABEL => payload.read().map(Self::Label),
            signal::BLOCK => payload.read().map(Self::Block),
            signal::UNBLOCK => payload.read().map(Self::Unblock),
            signal::CALLED_DONE => payload.read().map(Self::CalledDone),
            signal::HELD => payload.read().map(Self::Held),
            Forked::SIGNAL => payload.read().map(Self::Fork),
            Rollback::SIGNAL => payload.read().map(Self::Rollback),
            _ => return None,
        })
    }
}
