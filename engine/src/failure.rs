//! Why an activity failed, in the classes that decide what happens next.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// May succeed when tried again.
    Retryable,
    /// Will not succeed however often it is tried.
    Terminal,
    /// Cancelled by request.
    Cancelled,
    /// The machine cannot do it now: disk full, no descriptors, no memory. Waiting costs no attempt, and the next attempt
    /// follows after a delay however many failed.
    Machine,
    /// Refused until a time; waiting costs no attempt.
    RateLimited {
        /// When to try again.
        until: DateTime<Utc>,
    },
}

/// A failed attempt of an activity, or a failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What it means for a further attempt.
    pub kind: FailureKind,
    /// What is wrong, where, and what to do.
    pub message: String,
}

impl Failure {
    /// May succeed when tried again.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Retryable, message: message.into() }
    }

    /// Will not succeed however often it is tried.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Terminal, message: message.into() }
    }

    /// Cancelled by request.
    pub fn cancelled() -> Self {
        Self { kind: FailureKind::Cancelled, message: "cancelled".into() }
    }

    /// The machine cannot do it now.
    pub fn machine(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Machine, message: message.into() }
    }

    /// Refused until a time.
    pub fn rate_limited(until: DateTime<Utc>, message: impl Into<String>) -> Self {
        Self { kind: FailureKind::RateLimited { until }, message: message.into() }
    }
}
