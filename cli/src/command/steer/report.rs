//! The report of an order, one line per run.

use std::collections::BTreeSet;

use anyhow::Result;
use longhaul_engine::{RequestedBy, RunId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{OrderArguments, Output};
use crate::command::terminal;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::{Order, advice};

/// The report of an order.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct OrderDocument<'a> {
    /// The verb, as on the command line.
    order: &'a str,
    /// The requester.
    by: &'a str,
    /// The reason; may be empty.
    why: &'a str,
    /// Whether it was a dry run.
    dry_run: bool,
    /// The named runs, or those that the filter selected.
    runs: Vec<OrderLine<'a>>,
}

impl<'a> OrderDocument<'a> {
    /// A report with one receiver.
    pub(in crate::command) fn of_one(
        order: &'a str,
        run: &'a str,
        waits: bool,
        request: &'a RequestedBy,
    ) -> Self {
        let RequestedBy { by, why } = request;
        let line =
            OrderLine { target: run, run, result: OrderResult::Delivered, waits, reason: None };
        Self { order, by, why, dry_run: false, runs: vec![line] }
    }
}

/// The result for one run.
#[derive(Debug, Serialize, JsonSchema)]
struct OrderLine<'a> {
    /// The name as given; with a filter, the id.
    target: &'a str,
    /// The id of the run; for an unresolved name, the name.
    run: &'a str,
    /// The result.
    result: OrderResult,
    /// Whether the order stays unread until a process runs the log.
    waits: bool,
    /// Why it had no effect or was refused, or the action that a person must take first.
    reason: Option<&'a str>,
}

/// The result of an order to one run.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OrderResult {
    /// The run received it.
    Delivered,
    /// A dry run: the run would receive it.
    WouldBeDelivered,
    /// The run is in the requested state already.
    Unchanged,
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
    pub(super) target: String,
    /// The resolved run, if any.
    pub(super) run: Option<RunId>,
    pub(super) outcome: Outcome,
    /// Whether the order stays unread until a process runs the log.
    pub(super) waits: bool,
    /// The checkout of its project.
    pub(super) root: Option<String>,
}

pub(super) enum Outcome {
    Delivered,
    WouldDeliver,
    Unchanged(String),
    Unknown(String),
    Refused(String),
    /// A person must act first.
    Held(String),
}

impl Line {
    fn is_delivered(&self) -> bool {
        matches!(self.outcome, Outcome::Delivered | Outcome::WouldDeliver | Outcome::Unchanged(_))
    }

    /// Whether it received the order now.
    pub(super) fn has_received(&self) -> bool {
        matches!(self.outcome, Outcome::Delivered)
    }

    /// Whether its run is that of a feature: `project/feature/number`.
    fn is_of_feature(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.as_str().matches('/').count() == 2)
    }

    /// Whether another line is about a run below its run.
    fn covers(&self, other: &Self) -> bool {
        let (Some(run), Some(other)) = (&self.run, &other.run) else { return false };
        run != other && other.is_within(run.as_str())
    }

    fn name(&self) -> &str {
        self.run.as_ref().map_or(&self.target, RunId::as_str)
    }

    fn shown(&self, order: &Order) -> String {
        let name = self.name();
        match &self.outcome {
            Outcome::Delivered if self.waits => {
                format!("{name}  will be {} when its project runs next", done(order))
            }
            Outcome::Delivered => format!("{name}  {}", done(order)),
            Outcome::WouldDeliver => format!("{name}  would be {}", done(order)),
            Outcome::Unchanged(reason) => format!("{name}  {reason}"),
            Outcome::Unknown(reason) | Outcome::Refused(reason) | Outcome::Held(reason) => {
                format!("{name}  not {}: {reason}", done(order))
            }
        }
    }

    fn document(&self) -> OrderLine<'_> {
        let (result, reason) = match &self.outcome {
            Outcome::Delivered => (OrderResult::Delivered, None),
            Outcome::WouldDeliver => (OrderResult::WouldBeDelivered, None),
            Outcome::Unchanged(reason) => (OrderResult::Unchanged, Some(reason)),
            Outcome::Unknown(reason) => (OrderResult::Unknown, Some(reason)),
            Outcome::Refused(reason) => (OrderResult::Refused, Some(reason)),
            Outcome::Held(reason) => (OrderResult::Held, Some(reason)),
        };
        OrderLine {
            target: &self.target,
            run: self.name(),
            result,
            waits: self.waits,
            reason: reason.map(String::as_str),
        }
    }
}

/// Past participle for a run that received the order.
pub(in crate::command) fn done(order: &Order) -> &'static str {
    match order {
        Order::Pause => "paused",
        Order::Resume => "resumed",
        Order::Cancel => "cancelled",
        Order::Terminate => "terminated",
        Order::Signal { .. } => "signalled",
        Order::Steer { .. } => "steered",
        Order::Approve => "approved",
        Order::Deny => "denied",
    }
}

/// The effect of an order, for the user; `None` if it is evident.
fn effect(order: &Order) -> Option<&'static str> {
    match order {
        Order::Pause => Some("a session that is under way ends first"),
        Order::Resume => None,
        Order::Cancel | Order::Terminate => Some("the work is kept"),
        Order::Signal { .. } => Some("the workflow takes it when it looks at its mailbox"),
        Order::Steer { .. } => {
            Some("the agent receives the note at the beginning of its next session")
        }
        Order::Approve => Some("it is merged when its turn comes"),
        Order::Deny => Some("the agent receives the reason"),
    }
}

/// The most names in an advised command.
const MOST_NAMES: usize = 5;

/// The runs of projects that received it, without those below another one.
fn top(lines: &[Line]) -> impl Iterator<Item = &Line> {
    let received = lines.iter().filter(|line| line.is_delivered() && line.root.is_some());
    received.filter(|line| !lines.iter().any(|other| other.covers(line)))
}

/// The command that continues a stopped run, or runs one that no process runs.
fn next(lines: &[Line], order: &Order) -> Option<String> {
    let delivered = || lines.iter().filter(|line| line.is_delivered());
    let roots = |lines: &mut dyn Iterator<Item = &Line>| -> BTreeSet<String> {
        lines.filter_map(|line| line.root.clone()).collect()
    };
    let (verb, names, what) = match order {
        Order::Cancel => {
            ("resume", top(lines).map(|line| line.name().to_owned()).collect(), "continues it")
        }
        // A terminated project is begun again, but a feature whose run was terminated is not.
        Order::Terminate if top(lines).all(Line::is_of_feature) => {
            let open = || top(lines).filter(|line| line.waits);
            if open().next().is_none() {
                ("resume", top(lines).map(|line| line.name().to_owned()).collect(), "continues it")
            } else {
                ("run", roots(&mut open()), "runs it")
            }
        }
        Order::Terminate => ("run", roots(&mut delivered()), "continues it"),
        _ => ("run", roots(&mut delivered().filter(|line| line.waits)), "runs it"),
    };
    if names.is_empty() || names.len() > MOST_NAMES {
        return None;
    }
    Some(format!("{} {what}", advice::command(std::iter::once(verb.to_owned()).chain(names))))
}

/// 0: all received it, or no run matches; 5: some did; 3: none did, but a person can change that;
/// 2: none did.
pub(super) fn exit(lines: &[Line]) -> Exit {
    match lines.iter().filter(|line| line.is_delivered()).count() {
        _ if lines.is_empty() => Exit::Ok,
        0 if lines.iter().any(|line| matches!(line.outcome, Outcome::Held(_))) => Exit::Suspended,
        0 => Exit::Usage,
        delivered if delivered == lines.len() => Exit::Ok,
        _ => Exit::Partial,
    }
}

pub(super) fn print(
    lines: &[Line],
    arguments: &OrderArguments,
    order: &Order,
    request: &RequestedBy,
) -> Result<()> {
    match arguments.output {
        Output::Json => {
            let runs = lines.iter().map(Line::document).collect();
            let RequestedBy { by, why } = request;
            document::print(OrderDocument {
                order: order.verb(),
                by,
                why,
                dry_run: arguments.selection.dry_run,
                runs,
            })?;
        }
        Output::Table => {
            for line in lines {
                if line.is_delivered() {
                    terminal::print(line.shown(order));
                } else {
                    term::say(line.shown(order));
                }
            }
            if lines.iter().any(Line::is_delivered) && !arguments.selection.dry_run {
                let remarks: Vec<String> = effect(order)
                    .map(str::to_owned)
                    .into_iter()
                    .chain(next(lines, order))
                    .collect();
                if !remarks.is_empty() {
                    term::say(remarks.join("; "));
                }
            }
        }
    }
    Ok(())
}
