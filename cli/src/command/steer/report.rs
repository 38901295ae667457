//! Who was told, a line for each.

use anyhow::Result;
use longhaul_engine::Request;
use serde_json::{Value, json};

use crate::arguments::{Output, Tell};
use crate::exit::Exit;
use crate::owner::Order;
use crate::term;

/// What became of one of those that were named.
pub(super) struct Line {
    pub(super) run: String,
    pub(super) outcome: Outcome,
    /// Whether it lies in the mailbox until somebody runs it.
    pub(super) waits: bool,
}

pub(super) enum Outcome {
    Told,
    WouldBe,
    SoAlready(String),
    Unknown,
    Refused(String),
    /// A person has to do something else first.
    Held(String),
}

impl Line {
    fn is_told(&self) -> bool {
        matches!(self.outcome, Outcome::Told | Outcome::WouldBe | Outcome::SoAlready(_))
    }

    fn shown(&self, order: &Order) -> String {
        match &self.outcome {
            Outcome::Told if self.waits => format!("{}  {}, when it is run again", self.run, order.done()),
            Outcome::Told => format!("{}  {}", self.run, order.done()),
            Outcome::WouldBe => format!("{}  would be {}", self.run, order.done()),
            Outcome::SoAlready(reason) => format!("{}  {reason}", self.run),
            Outcome::Unknown => format!("{}  not told: the log knows no such project or run", self.run),
            Outcome::Refused(reason) | Outcome::Held(reason) => format!("{}  not told: {reason}", self.run),
        }
    }

    fn as_json(&self) -> Value {
        let (result, reason) = match &self.outcome {
            Outcome::Told => ("told", None),
            Outcome::WouldBe => ("would_be_told", None),
            Outcome::SoAlready(reason) => ("so_already", Some(reason)),
            Outcome::Unknown => ("unknown", None),
            Outcome::Refused(reason) => ("refused", Some(reason)),
            Outcome::Held(reason) => ("held", Some(reason)),
        };
        json!({ "run": self.run, "result": result, "waits": self.waits, "reason": reason })
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

pub(super) fn print(lines: &[Line], tell: &Tell, order: &Order, request: &Request) -> Result<()> {
    match tell.output {
        Output::Json => {
            let runs: Vec<_> = lines.iter().map(Line::as_json).collect();
            let told = json!({
                "schema": "longhaul.told/1", "order": order.verb(), "by": request.by, "why": request.why,
                "dry_run": tell.dry_run, "runs": runs,
            });
            term::print(serde_json::to_string_pretty(&told)?);
        }
        Output::Table => {
            for line in lines {
                if line.is_told() { term::print(line.shown(order)) } else { term::say(line.shown(order)) }
            }
            if lines.iter().any(Line::is_told) && !tell.dry_run {
                term::say(order.remark());
            }
        }
    }
    Ok(())
}
