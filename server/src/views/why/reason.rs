//! Texts of the reasons.

use chrono::{DateTime, Utc};
use longhaul_engine::{FailureKind, RequestedBy, RunId, UnknownEffect};
use longhaul_workflows::finding::{Finding, Findings};
use longhaul_workflows::narrative::{by, clock, short};
use longhaul_workflows::project::SessionsPaused;
use longhaul_workflows::projection::{AuditEntry, CheckRun, CurrentWait, MailboxEntry};

use super::{Kind, Reason};
use crate::advice;

/// How many lines of the output of a check are shown.
const LINES: usize = 12;

impl Reason {
    pub(super) fn of(kind: Kind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            kind,
            text,
            remedy: None,
            until: None,
            by: None,
            features: Vec::new(),
            output: Vec::new(),
        }
    }

    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub(super) fn until(self, until: DateTime<Utc>) -> Self {
        Self { until: Some(until), ..self }
    }

    pub(super) fn with_features(self, features: Vec<String>) -> Self {
        Self { features, ..self }
    }

    pub(super) fn asked_by(self, request: &RequestedBy) -> Self {
        Self { by: Some(request.clone()), ..self }
    }

    /// A finding for the user.
    pub(super) fn noticed(findings: &Findings) -> Vec<Self> {
        let reason = |finding: &Finding| Self::of(Kind::Noticed, format!("Noticed: {finding}."));
        findings.iter().map(reason).collect()
    }

    /// No process runs it; `root`: the checkout of its project.
    pub(super) fn not_running(root: &str) -> Self {
        let reason = Self::of(Kind::NotRunning, "No process runs it now.");
        if root.is_empty() {
            return reason;
        }
        reason.with_remedy(format!("{} continues it", advice::run(root)))
    }

    pub(super) fn paused(what: &str, target: &RunId, request: &RequestedBy) -> Self {
        Self::of(Kind::Paused, format!("{what} paused{}.", by(request)))
            .asked_by(request)
            .with_remedy(format!("{} resumes it", advice::on("resume", target)))
    }

    pub(super) fn parked(run: &RunId, effect: &UnknownEffect) -> Self {
        let settle = format!("{} says what became of it", advice::reconcile(run));
        Self::of(Kind::Parked, format!("The run is parked: {effect}.")).with_remedy(settle)
    }

    /// A cancelled project, or one that was rolled back to a commit.
    pub(super) fn halted(request: &RequestedBy, root: &str, back: Option<&str>) -> Self {
        let how = match back {
            Some(commit) => format!("rolled back to {}", short(commit)),
            None => "cancelled".to_owned(),
        };
        Self::of(Kind::Halted, format!("The project was {how}{}.", by(request)))
            .asked_by(request)
            .with_remedy(format!("{} continues it", advice::run(root)))
    }

    /// A request of a person that is unread.
    pub(super) fn pending(entry: &MailboxEntry) -> Self {
        Self::of(Kind::Pending, format!("Pending: {}.", entry.action))
            .asked_by(&entry.action.request())
    }

    /// It was cancelled or terminated.
    pub(super) fn ended(entry: Option<&AuditEntry>) -> Self {
        let Some(entry) = entry else { return Self::of(Kind::Cancelled, "It was cancelled.") };
        let how = entry.ended().unwrap_or("cancelled");
        let request = entry.action.request();
        Self::of(Kind::Cancelled, format!("It was {how}{}.", by(&request))).asked_by(&request)
    }

    /// The current wait of a run, from its history.
    pub(super) fn waits(waits: &CurrentWait) -> Self {
        match waits {
            CurrentWait::Retry { name, failure, at, .. }
                if matches!(failure.kind, FailureKind::RateLimited { .. }) =>
            {
                let text =
                    format!("{} is limited until {}: {}", words(name), clock(*at), failure.message);
                Self::of(Kind::RateLimited, text).until(*at)
            }
            CurrentWait::Retry { name, failure, at, .. }
                if failure.kind == FailureKind::Machine =>
            {
                let message = failure.message.trim_end_matches('.');
                let text = format!(
                    "{} is waiting: {message}. It is tried again at {}.",
                    words(name),
                    clock(*at)
                );
                Self::of(Kind::Machine, text)
                    .until(*at)
                    .with_remedy("it continues when the cause is gone")
            }
            CurrentWait::Retry { name, attempt, failure, at } => {
                let name = words(name);
                let text = format!(
                    "Attempt {attempt} of {name} failed: {}. The next one is due at {}.",
                    failure.message.trim_end_matches('.'),
                    clock(*at)
                );
                Self::of(Kind::Retry, text).until(*at)
            }
            CurrentWait::Timer { at } => {
                Self::of(Kind::Timer, format!("It waits until {}.", clock(*at))).until(*at)
            }
            CurrentWait::Message { deadline: Some(at) } => {
                Self::of(Kind::Message, format!("It waits for a message until {}.", clock(*at)))
                    .until(*at)
            }
            CurrentWait::Message { deadline: None } => {
                Self::of(Kind::Message, "It waits for a message.")
            }
            CurrentWait::Call { name, .. } => {
                Self::of(Kind::Working, format!("It is working: {}.", words(name)))
            }
        }
    }

    /// An unavailable agent.
    pub(super) fn outage(paused: &SessionsPaused, project: &RunId) -> Self {
        let reason = paused.reason.trim_end_matches('.');
        let remedy = format!("{} probes it at once", advice::on("resume", project));
        match paused.until {
            Some(until) => {
                let text = format!("No session begins until {}, because {reason}.", clock(until));
                Self::of(Kind::Outage, text).until(until).with_remedy(remedy)
            }
            None => Self::of(Kind::Outage, format!("No session begins now, because {reason}.")),
        }
    }

    /// A failed check, with the end of its output.
    pub(super) fn gate(check: &CheckRun, run: &RunId) -> Self {
        let evidence = &check.evidence;
        let (kind, what) =
            if evidence.is_setup { (Kind::Setup, "set-up") } else { (Kind::Gate, "check") };
        let text = format!(
            "The {what} `{}` failed on {} ({}): {}.",
            evidence.command,
            short(&evidence.commit),
            check.step,
            evidence.ending()
        );
        let again = advice::on("resume", run);
        let remedy = format!("correct the script or what it needs, commit that, then {again}");
        let remedy = evidence.is_setup.then_some(remedy);
        Self { remedy, ..Self::of(kind, text) }.with_output(&evidence.output_tail)
    }

    /// Adds the end of an output.
    pub(super) fn with_output(self, output: &str) -> Self {
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let from = lines.len().saturating_sub(LINES);
        Self { output: lines[from..].iter().map(|line| (*line).to_owned()).collect(), ..self }
    }
}

/// Ends a text with exactly one full stop.
pub(super) fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches(['.', ':']))
}

/// The name of an activity for people.
fn words(name: &str) -> String {
    name.replace('_', " ")
}
