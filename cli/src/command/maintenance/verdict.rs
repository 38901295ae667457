//! The verdicts of replays as a table or as JSON.

use chrono::{DateTime, Utc};
use longhaul_engine::{EventKind, RunId, Workflows, verify};
use longhaul_storage::RunRecord;
use schemars::JsonSchema;
use serde::Serialize;

use super::counted;
use crate::command::terminal::{self, Terminal};
use crate::exit::Exit;

/// The verdict on one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It makes the same decisions.
    Same,
    /// It diverges.
    Diverged {
        /// The position of the first diverging event.
        position: u64,
        /// The recorded decision.
        recorded: String,
        /// The decision of this program.
        asked: String,
    },
    /// Its history was pruned.
    Pruned {
        /// The time of the pruning, if known.
        at: Option<DateTime<Utc>>,
    },
    /// Its history is unreadable, or this program cannot replay it.
    Unreadable {
        /// Why.
        reason: String,
    },
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Line {
    /// The run; unknown for an unreadable file.
    #[schemars(with = "Option<String>")]
    pub(super) run: Option<RunId>,
    /// Its file; absent for a run of the log.
    pub(super) file: Option<String>,
    /// How many events were replayed.
    pub(super) events: u64,
    #[serde(flatten)]
    pub(super) verdict: Verdict,
}

/// The verdicts on several runs, and their counts.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct Report {
    /// Runs that make the same decisions.
    same: usize,
    /// Runs that decide differently.
    diverged: usize,
    /// Runs whose histories were pruned.
    pruned: usize,
    /// Runs that could not be read.
    unreadable: usize,
    /// The verdict on each run.
    runs: Vec<Line>,
}

/// Replays a run.
pub(super) fn of(workflows: &Workflows, record: &RunRecord) -> Verdict {
    // A pruned history starts in the middle; only a later start in it can be replayed.
    let is_start = |kind: &EventKind| matches!(kind, EventKind::RunStarted { .. });
    let Some(begin) = record.events.iter().position(|event| is_start(&event.kind)) else {
        return Verdict::Pruned { at: record.summary.pruned_at() };
    };
    let events = &record.events[begin..];
    let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        verify(workflows, &record.run, events)
    }));
    match verified {
        Ok(Ok(None)) => Verdict::Same,
        Ok(Ok(Some(diverged))) => Verdict::Diverged {
            position: diverged.position,
            recorded: diverged.recorded,
            asked: diverged.asked,
        },
        Ok(Err(error)) => Verdict::Unreadable { reason: error.to_string() },
        Err(_) => Verdict::Unreadable { reason: "the workflow panicked; this is a bug".into() },
    }
}

impl Report {
    pub(super) fn of(runs: Vec<Line>) -> Self {
        let count = |is: fn(&Verdict) -> bool| runs.iter().filter(|line| is(&line.verdict)).count();
        Self {
            same: count(|verdict| matches!(verdict, Verdict::Same)),
            diverged: count(|verdict| matches!(verdict, Verdict::Diverged { .. })),
            pruned: count(|verdict| matches!(verdict, Verdict::Pruned { .. })),
            unreadable: count(|verdict| matches!(verdict, Verdict::Unreadable { .. })),
            runs,
        }
    }

    /// Divergence is the finding; it takes precedence over unreadable runs.
    pub(super) fn exit(&self) -> Exit {
        match (self.diverged, self.unreadable) {
            (0, 0) => Exit::Ok,
            (0, _) => Exit::Operational,
            _ => Exit::Finding,
        }
    }

    /// A table of the runs, both sides of each difference, and a summary.
    pub(super) fn text(&self, terminal: Terminal) -> String {
        let rows: Vec<Vec<String>> = self.runs.iter().map(Line::cells).collect();
        let table = if rows.is_empty() {
            String::new()
        } else {
            terminal.table(&["RUN", "VERDICT", ""], &rows) + "\n"
        };
        let mut summary =
            vec![format!("{} same", self.same), format!("{} diverged", self.diverged)];
        for (count, word) in [(self.pruned, "pruned"), (self.unreadable, "unreadable")] {
            if count > 0 {
                summary.push(format!("{count} {word}"));
            }
        }
        table + &format!("{}: {}", counted(self.runs.len() as u64, "run"), summary.join(", "))
    }
}

impl Line {
    fn cells(&self) -> Vec<String> {
        let name = self
            .run
            .as_ref()
            .map(RunId::to_string)
            .or_else(|| self.file.clone())
            .unwrap_or_default();
        let events = counted(self.events, "event");
        let (verdict, remark) = match &self.verdict {
            Verdict::Same => ("same", events),
            Verdict::Pruned { at: Some(at) } => {
                let at = terminal::time(*at);
                ("pruned", format!("on {at}: skipped, nothing is left to replay"))
            }
            Verdict::Pruned { at: None } => {
                ("pruned", "skipped, nothing is left to replay".to_owned())
            }
            Verdict::Unreadable { reason } => ("unreadable", reason.clone()),
            Verdict::Diverged { position, recorded, asked } => (
                "diverged",
                format!(
                    "at event {position} of {}\nrecorded   {recorded}\nasked now  {asked}",
                    self.events
                ),
            ),
        };
        vec![name, verdict.to_owned(), remark]
    }
}
