//! Who was told, a line for each.

use anyhow::Result;
use longhaul_engine::{RequestedBy, RunId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Output, Tell};
use crate::command::page;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::Order;

/// Who was told what.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct ToldDocument<'a> {
    /// The verb, as on the command line.
    order: &'a str,
    /// Who says so.
    by: &'a str,
    /// Why; empty where nobody said.
    why: &'a str,
    /// Whether nothing was to be sent.
    dry_run: bool,
    /// Those that were named, or found.
    runs: Vec<ToldLine<'a>>,
}

impl<'a> ToldDocument<'a> {
    /// One run was told.
    pub(in crate::command) fn of_one(
        order: &'a str,
        run: &'a str,
        waits: bool,
        request: &'a RequestedBy,
    ) -> Self {
        let RequestedBy { by, why } = request;
        let line = ToldLine { asked: run, run, result: "told", waits, reason: None };
        Self { order, by, why, dry_run: false, runs: vec![line] }
    }
}

/// What became of the order at one of them.
#[derive(Debug, Serialize, JsonSchema)]
struct ToldLine<'a> {
    /// As it was named; of those that a filter found, the id.
    asked: &'a str,
    /// The id of the run; of what is no run, as it was named.
    run: &'a str,
    /// `told`, `would_be_told`, `so_already`, `unknown`, `refused` or `held`.
    result: &'a str,
    /// Whether the order lies in its mailbox until somebody runs it.
    waits: bool,
    /// Why it is so already, was refused, or what a person has to do first.
    reason: Option<&'a str>,
}

/// What became of one of those that were named.
pub(super) struct Line {
    /// As it was named.
    pub(super) asked: String,
    /// The run that is meant, if there is one.
    pub(super) run: Option<RunId>,
    pub(super) outcome: Outcome,
    /// Whether it lies in the mailbox until somebody runs it.
    pub(super) waits: bool,
}

pub(super) enum Outcome {
    Told,
    WouldBe,
    SoAlready(String),
    Unknown(String),
    Refused(String),
    /// A person has to do something else first.
    Held(String),
}

impl Line {
    fn is_told(&self) -> bool {
        matches!(self.outcome, Outcome::Told | Outcome::WouldBe | Outcome::SoAlready(_))
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
            Outcome::Told => ("told", None),
            Outcome::WouldBe => ("would_be_told", None),
            Outcome::SoAlready(reason) => ("so_already", Some(reason)),
            Outcome::Unknown(reason) => ("unknown", Some(reason)),
            Outcome::Refused(reason) => ("refused", Some(reason)),
            Outcome::Held(reason) => ("held", Some(reason)),
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

/// 0: all were told; 5: some were not; 3: nobody was, and a person can change that; 2: nobody was.
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
                    page::print(line.shown(order));
                } else {
                    term::say(line.shown(order));
                }
            }
            if lines.iter().any(Line::is_told) && !tell.dry_run {
                term::say(order.remark());
            }
        }
    }
    Ok(())
}
