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
    /// The machine cannot do it now: disk full, no descriptors, no memory. Waiting costs no
    /// attempt, and the next attempt follows after a delay however many failed.
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
    /// Tells this failure from others to the workflow that handles it; part of the contract of the
    /// activity.
    pub code: Option<String>,
}

impl Failure {
    fn of(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), code: None }
    }

    /// The same failure with a code.
    #[must_use]
    pub fn with_code(self, code: &str) -> Self {
        Self { code: Some(code.to_owned()), ..self }
    }

    /// May succeed when tried again.
    pub fn retryable(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Retryable, message)
    }

    /// Will not succeed however often it is tried.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Terminal, message)
    }

    /// Cancelled by request.
    pub fn cancelled() -> Self {
        Self::of(FailureKind::Cancelled, "cancelled")
    }

    /// The machine cannot do it now.
    pub fn machine(message: impl Into<String>) -> Self {
        Self::of(FailureKind::Machine, message)
    }

    /// Refused until a time.
    pub fn rate_limited(until: DateTime<Utc>, message: impl Into<String>) -> Self {
        Self::of(FailureKind::RateLimited { until }, message)
    }
}
