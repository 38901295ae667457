//! The signals of a project: names, content, and permitted senders.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::payload::PayloadError;
use longhaul_engine::{Payload, RequestedBy, RunId};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::batch::Overrides;

use super::back::{Forked, Unblock};
use super::rollback::Rollback;
use super::signal;

/// The behaviour of a halted project after a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Stay,
}

/// A parsed signal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    Sync(String, Then),
    Halt(RequestedBy),
    Moved(String),
    Override(Box<Overrides>),
    Label(BTreeMap<String, String>),
    Block(FeatureId, String),
    Unblock(FeatureId),
    Fork(Forked),
    Rollback(Rollback),
    Held(Held),
}

/// Published under [`Skipped::KEY`]: the last ignored signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The name of the signal.
    pub signal: String,
    /// The run that sent it; `None`: a person or a program.
    pub from: Option<RunId>,
    /// The reason.
    pub reason: String,
}

/// The content of the signal `held`; published under [`Held::KEY`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The held feature runs.
    pub runs: BTreeSet<RunId>,
}

impl Held {
    /// The key under which it is published.
    pub const KEY: &'static str = "held";
}

impl Skipped {
    /// The key under which it is published.
    pub const KEY: &'static str = "skipped_signal";
}

impl Order {
    /// Parses a signal without a sending run; `None`: the name is unknown.
    pub(super) fn read(name: &str, payload: &Payload) -> Option<Result<Self, PayloadError>> {
        Some(match name {
            signal::SYNC => payload.read().map(|id| Self::Sync(id, Then::GoOn)),
            signal::RELOAD => payload.read().map(|id| Self::Sync(id, Then::Stay)),
            signal::HALT => payload.read().map(Self::Halt),
            signal::MOVED => payload.read().map(Self::Moved),
            signal::OVERRIDE => payload.read().map(Self::Override),
            signal::LABEL => payload.read().map(Self::Label),
            signal::BLOCK => payload.read().map(|(feature, reason)| Self::Block(feature, reason)),
            signal::UNBLOCK => {
                payload.read::<Unblock>().map(|unblock| Self::Unblock(unblock.feature().clone()))
            }
            signal::HELD => payload.read().map(Self::Held),
            Forked::SIGNAL => payload.read().map(Self::Fork),
            Rollback::SIGNAL => payload.read().map(Self::Rollback),
            _ => return None,
        })
    }
}
