//! Targets of figures.

use schemars::JsonSchema;
use serde::Serialize;

/// A target, and whether it is met.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Target {
    /// The figure, with its unit.
    pub(super) name: &'static str,
    pub(super) wanted: String,
    pub(super) figure: f64,
    pub(super) reached: bool,
}

impl Target {
    pub(super) fn at_most(name: &'static str, figure: f64, limit: f64) -> Self {
        Self { name, wanted: format!("{limit:.2} or less"), figure, reached: figure <= limit }
    }

    pub(super) fn at_least(name: &'static str, figure: f64, limit: f64) -> Self {
        Self { name, wanted: format!("{limit:.2} or more"), figure, reached: figure >= limit }
    }
}
