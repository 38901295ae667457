//! The report of an order, one line per run.

use std::collections::BTreeSet;

use anyhow::Result;
use longhaul_engine::{RequestedBy, RunId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Output, Tell};
use crate::command::terminal;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::{Order, advice};

/// The report of an order.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ToldDocument<'a> {
    /// The verb, as on the command line.
    order: &'a str,
    /// The requester.
    by: &'a str,
    /// The reason; may be empty.
    why: &'a str,
    /// Whether it was a dry run.
    dry_run: bool,
    /// The named runs, or those that the filter selected.
    runs: Vec<ToldLine<'a>>,
}

impl<'a> ToldDocument<'a> {
    /// A report with one receiver.
    pub(in crate::command) fn of_one(
        order: &'a str,
        run: &'a str,
        waits: bool,
        request: &'a RequestedBy,
    ) -> Self {
        let RequestedBy { by, why } = request;
        let line = ToldLine { asked: run, run, result: ToldResult::Told, waits, reason: None };
        Self { order, by, why, dry_run: false, runs: vec![line] }
    }
}

/// The result for one run.
#[derive(Debug, Serialize, JsonSchema)]
struct ToldLine<'a> {
    /// The name as given; with a filter, the id.
    asked: &'a str,
    /// The id of the run; for an unresolved name, the name.
    run: &'a str,
    /// The result.
    result: ToldResult,
    /// Whether the order stays unread until a process runs the log.
    waits: bool,
    /// Why it had no effect or was refused, or the action that a person must take first.
    reason: Option<&'a str>,
}

/// The result of an order to one run.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ToldResult {
    /// The run received it.
    Told,
    /// A dry run: the run would receive it.
    WouldBeTold,
    /// The run is in the requested state already.
    SoAlready,
    /// There is no such run.
    Unknown,
    /// It does not apply to this run.
    Refused,
    /// A person must act first.
    Held,
}

/// The result for one name.
pub(super) struct Line {
    /// The name as given.
    pub(super) asked: String,
    /// The resolved run, if any.
    pub(super) run: Option<RunId>,
    pub(super) outcome: Outcome,
    /// Whether the order stays unread until a process runs the log.
    pub(super) waits: bool,
    /// The checkout of its project.
    pub(super) root: Option<String>,
}

pub(super) enum Outcome {
    Told,
    WouldBe,
    SoAlready(String),
    Unknown(String),
    Refused(String),
    /// A person must act first.
    Held(String),
}

impl Line {
    fn is_told(&self) -> bool {
        matches!(self.outcome, Outcome::Told | Outcome::WouldBe | Outcome::SoAlready(_))
    }

    /// Whether another line is about a run below its run.
    fn covers(&self, other: &Self) -> bool {
        let (Some(run), Some(other)) = (&self.run, &other.run) else { return false };
        run != other && other.is_within(run.as_str())
    }

    fn name(&self) -> &str {
        self.run.as_ref().map_or(&self.asked, RunId::as_str)
    }

    fn shown(&self, order: &Order) -> String {
        let name = self.name();
        match &self.outcome {
            Outcome::Told if self.waits => {
                format!("{name}  {}, when it is run again", order.done())
            }
            Outcome::Told => format!("{name}  {}", order.done()),
            Outcome::WouldBe => format!("{name}  would be {}", order.done()),
            Outcome::SoAlready(reason) => format!("{name}  {reason}"),
            Outcome::Unknown(reason) | Outcome::Refused(reason) | Outcome::Held(reason) => {
                format!("{name}  not told: {reason}")
            }
        }
    }

    fn told(&self) -> ToldLine<'_> {
        let (result, reason) = match &self.outcome {
            Outcome::Told => (ToldResult::Told, None),
            Outcome::WouldBe => (ToldResult::WouldBeTold, None),
            Outcome::SoAlready(reason) => (ToldResult::SoAlready, Some(reason)),
            Outcome::Unknown(reason) => (ToldResult::Unknown, Some(reason)),
            Outcome::Refused(reason) => (ToldResult::Refused, Some(reason)),
            Outcome::Held(reason) => (ToldResult::Held, Some(reason)),
        };
        ToldLine {
            asked: &self.asked,
            run: self.name(),
            result,
            waits: self.waits,
            reason: reason.map(String::as_str),
        }
    }
}

/// The most names in an advised command.
const MOST_NAMES: usize = 5;

/// The command that continues what was stopped, or runs what no process runs.
fn next(lines: &[Line], order: &Order) -> String {
    let told = || lines.iter().filter(|line| line.is_told());
    let roots = |lines: &mut dyn Iterator<Item = &Line>| -> BTreeSet<String> {
        lines.filter_map(|line| line.root.clone()).collect()
    };
    let (verb, names, what) = match order {
        Order::Cancel => {
            let projects = told().filter(|line| line.root.is_some());
            let top = projects.filter(|line| !lines.iter().any(|other| other.covers(line)));
            ("resume", top.map(|line| line.name().to_owned()).collect(), "continues it")
        }
        Order::Terminate => ("run", roots(&mut told()), "continues it"),
        _ => ("run", roots(&mut told().filter(|line| line.waits)), "runs it"),
    };
    if names.is_empty() || names.len() > MOST_NAMES {
        return String::new();
    }
    format!("{} {what}", advice::command(std::iter::once(verb.to_owned()).chain(names)))
}

/// 0: all received it; 5: some did; 3: none did, but a person can change that; 2: none did.
pub(super) fn exit(lines: &[Line]) -> Exit {
    match lines.iter().filter(|line| line.is_told()).count() {
        0 if lines.iter().any(|line| matches!(line.outcome, Outcome::Held(_))) => Exit::Suspended,
        0 => Exit::Usage,
        told if told == lines.len() => Exit::Ok,
        _ => Exit::Partial,
    }
}

pub(super) fn print(
    lines: &[Line],
    tell: &Tell,
    order: &Order,
    request: &RequestedBy,
) -> Result<()> {
    match tell.output {
        Output::Json => {
            let runs = lines.iter().map(Line::told).collect();
            let RequestedBy { by, why } = request;
            document::print(ToldDocument {
                order: order.verb(),
                by,
                why,
                dry_run: tell.dry_run,
                runs,
            })?;
        }
        Output::Table => {
            for line in lines {
                if line.is_told() {
                    terminal::print(line.shown(order));
                } else {
                    term::say(line.shown(order));
                }
            }
            if lines.iter().any(Line::is_told) && !tell.dry_run {
                let remarks = [order.remark().to_owned(), next(lines, order)];
                let remarks: Vec<String> =
                    remarks.into_iter().filter(|remark| !remark.is_empty()).collect();
                if !remarks.is_empty() {
                    term::say(remarks.join("; "));
                }
            }
        }
    }
    Ok(())
}
