//! Failures of activities, in the classes that decide whether the activity is retried.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// May succeed when tried again.
    Retryable,
    /// Fails on every attempt.
    Terminal,
    /// Cancelled by request.
    Cancelled,
    /// The machine cannot do it now: disk full, no descriptors, no memory. Such a failure does not
    /// count as an attempt; the next attempt always follows, after a delay.
    Machine,
    /// Refused until a time; does not count as an attempt.
    RateLimited {
        /// When to try again.
        until: DateTime<Utc>,
    },
}

/// A failed attempt of an activity, or a failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The class: it decides whether the activity is retried.
    pub kind: FailureKind,
    /// The error, its place and the remedy.
    pub message: String,
    /// A machine-readable code for the workflow that handles it; part of the contract of the
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

    /// Fails on every attempt.
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
