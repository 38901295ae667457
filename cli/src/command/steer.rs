//! The verbs that tell runs something: `pause`, `resume`, `cancel`, `terminate`, `signal`, `steer`, `approve`, `deny`.

mod report;
mod targets;

use std::path::Path;

use anyhow::Result;
use longhaul_engine::{Request, RunId};

use crate::arguments::{self, Signal, Steer, Tell, Text};
use crate::exit::{Exit, usage};
use crate::owner::{Access, Answer, Ask, Order};

pub(super) use report::ToldDocument;
use report::{Line, Outcome};
use targets::Target;

/// Tells projects or runs; without a name, the project here.
pub(super) async fn projects(data_dir: &Path, steer: Steer, order: Order) -> Result<Exit> {
    let mut targets = steer.targets;
    if targets.is_empty() && steer.tell.filters.is_empty() {
        targets.push(steer.tell.dir.to_string_lossy().into_owned());
    }
    tell(data_dir, &targets, &steer.tell, &order).await
}

/// Answers features that wait for approval.
pub(super) async fn answer(data_dir: &Path, answer: arguments::Answer, order: Order) -> Result<Exit> {
    if order == Order::Deny && answer.tell.why.trim().is_empty() {
        return Err(usage("say what is to be done about it: `longhaul deny FEATURE --why TEXT`"));
    }
    tell(data_dir, &answer.targets, &answer.tell, &order).await
}

pub(super) async fn signal(data_dir: &Path, signal: Signal) -> Result<Exit> {
    let mut words = signal.words.into_iter();
    let target = if signal.tell.filters.is_empty() { words.next() } else { None };
    let Some(name) = words.next() else {
        return Err(usage("a signal needs a name: `longhaul signal RUN NAME [JSON]`"));
    };
    let payload = words.next().map_or(Ok(serde_json::Value::Null), |text| serde_json::from_str(&text));
    let payload = payload.map_err(|error| usage(format!("the content of the signal is no JSON: {error}")))?;
    if words.next().is_some() {
        return Err(usage("with --filter there is no RUN: `longhaul signal --filter KEY=VALUE NAME [JSON]`"));
    }
    let targets: Vec<String> = target.into_iter().collect();
    tell(data_dir, &targets, &signal.tell, &Order::Signal { name, payload }).await
}

pub(super) async fn text(data_dir: &Path, text: Text) -> Result<Exit> {
    let mut targets = text.words;
    let text_of = targets.pop().unwrap_or_default();
    if targets.is_empty() == text.tell.filters.is_empty() {
        return Err(usage("name a run, a feature or a project, or give --filter: `longhaul steer RUN TEXT`"));
    }
    tell(data_dir, &targets, &text.tell, &Order::Steer { text: text_of }).await
}

/// Finds whom it is for, makes sure that so many are meant, tells them and reports.
async fn tell(data_dir: &Path, named: &[String], tell: &Tell, order: &Order) -> Result<Exit> {
    if !named.is_empty() && !tell.filters.is_empty() {
        return Err(usage("give either names or --filter, not both"));
    }
    // Whoever writes the names may need the log for them, and a person may take long to answer: nobody waits for us then.
    let mut reached = None;
    let mut found = if tell.filters.is_empty() {
        targets::named(named, &tell.dir, order).await?
    } else {
        targets::filtered(reached.insert(super::reach(data_dir).await?), tell, order).await?
    };
    found.truncate(tell.limit.unwrap_or(usize::MAX));
    if found.is_empty() {
        return Err(usage("no run fits"));
    }
    let is_bulk = !tell.filters.is_empty() || named.iter().any(|name| name == "-");
    if is_bulk && found.len() > 1 && !tell.dry_run && !tell.yes {
        reached = None;
        targets::confirm(found.len(), order)?;
    }
    let access = match reached {
        Some(access) => access,
        None => super::reach(data_dir).await?,
    };
    let request = super::requested_by(tell.by.as_deref(), &tell.why);
    let mut lines = Vec::new();
    for target in found {
        lines.extend(tell_one(&access, target, tell.dry_run, order, &request).await?);
    }
    drop(access);
    report::print(&lines, tell, order, &request)?;
    Ok(report::exit(&lines))
}

async fn tell_one(
    access: &Access,
    target: Target,
    dry_run: bool,
    order: &Order,
    request: &Request,
) -> Result<Vec<Line>> {
    let line = |run: RunId, outcome, waits| Line { run: run.to_string(), outcome, waits };
    let ask = Ask::Steer { targets: target.runs, order: order.clone(), request: request.clone(), dry_run };
    Ok(match access.ask(ask).await? {
        Answer::Told { runs, .. } if runs.is_empty() => {
            vec![Line {
                run: target.written,
                outcome: Outcome::Refused("nothing of it is going on".into()),
                waits: false,
            }]
        }
        Answer::Told { runs, waits } if dry_run => {
            runs.into_iter().map(|run| line(run, Outcome::WouldBe, waits)).collect()
        }
        Answer::Told { runs, waits } => runs.into_iter().map(|run| line(run, Outcome::Told, waits)).collect(),
        Answer::Unknown { .. } => vec![Line { run: target.written, outcome: Outcome::Unknown, waits: false }],
        Answer::Refused { reason } => {
            vec![Line { run: target.written, outcome: Outcome::Refused(reason), waits: false }]
        }
        Answer::SoAlready { reason } => {
            vec![Line { run: target.written, outcome: Outcome::SoAlready(reason), waits: false }]
        }
        Answer::Held { reason } => vec![Line { run: target.written, outcome: Outcome::Held(reason), waits: false }],
        Answer::Failed { reason } => return Err(anyhow::anyhow!(reason)),
        _ => return Err(super::unasked()),
    })
}
