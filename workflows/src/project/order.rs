//! The signals that a project takes: their names, what they hold, and who may send them.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_engine::payload::PayloadError;
use longhaul_engine::{Payload, RequestedBy, RunId};
use serde::{Deserialize, Serialize};

use crate::backlog::FeatureId;
use crate::batch::Overrides;

use super::back::{Forked, Unblock};
use super::rollback::Rollback;
use super::signal;

/// What a halted project does when its list was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Stay,
}

/// A signal that was read.
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

/// Published under [`Skipped::KEY`]: the last signal that the project did not follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The name of the signal.
    pub signal: String,
    /// The run that sent it; `None`: a person or a program did.
    pub from: Option<RunId>,
    /// Why.
    pub reason: String,
}

/// The content of the signal `held`; published under [`Held::KEY`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The runs of features that do not go on by themselves.
    pub runs: BTreeSet<RunId>,
}

impl Held {
    /// The key that it is published under.
    pub const KEY: &'static str = "held";
}

impl Skipped {
    /// The key that it is published under.
    pub const KEY: &'static str = "skipped_signal";
}

impl Order {
    /// Reads a signal that no run has sent; `None`: a project takes no signal of this name.
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
