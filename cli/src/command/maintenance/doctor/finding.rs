//! One finding of the doctor.

use schemars::JsonSchema;
use serde::Serialize;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// No problem.
    Ok,
    /// It works, but may fail later.
    Warning,
    /// It keeps Longhaul from working.
    Problem,
}

/// The finding on one subject.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Finding {
    /// How serious it is.
    pub(super) state: State,
    /// The subject in a word or two.
    pub(super) subject: &'static str,
    /// The finding.
    pub(super) what: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
    /// Whether `--fix` does it.
    pub(super) can_be_fixed: bool,
    /// Whether `--fix` has done it.
    pub(super) fixed: bool,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, what: impl Into<String>) -> Self {
        let state = State::Ok;
        let what = what.into();
        Self { state, subject, what, advice: None, can_be_fixed: false, fixed: false }
    }

    pub(super) fn warning(
        subject: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { state: State::Warning, advice: Some(advice.into()), ..Self::ok(subject, what) }
    }

    pub(super) fn problem(
        subject: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { state: State::Problem, ..Self::warning(subject, what, advice) }
    }

    /// A finding with a risk-free fix, which is performed if `fix` is set.
    pub(super) fn or_fix(self, fix: bool, put_right: impl FnOnce() -> std::io::Result<()>) -> Self {
        if !fix {
            return Self { can_be_fixed: true, ..self };
        }
        match put_right() {
            Ok(()) => Self {
                fixed: true,
                advice: None,
                ..Self::ok(self.subject, format!("{}: put right", self.what))
            },
            Err(error) => {
                Self { what: format!("{}; it could not be put right: {error}", self.what), ..self }
            }
        }
    }

    /// Whether it is a problem, or was one.
    pub(super) fn is_notable(&self) -> bool {
        self.fixed || self.state != State::Ok
    }

    pub(super) fn is_problem(&self) -> bool {
        self.state == State::Problem
    }

    /// The row of this finding in a table: subject, state, finding and advice.
    pub(super) fn cells(&self) -> Vec<String> {
        let state = match self.state {
            State::Ok if self.fixed => "fixed",
            State::Ok => "ok",
            State::Warning => "warning",
            State::Problem => "problem",
        };
        let mark = if self.can_be_fixed { "*" } else { "" };
        let advice = self
            .advice
            .as_ref()
            .map(|advice| format!("\n{mark}to do: {advice}"))
            .unwrap_or_default();
        vec![self.subject.to_owned(), state.to_owned(), format!("{}{advice}", self.what.trim_end())]
    }
}
