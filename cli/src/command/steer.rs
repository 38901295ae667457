//! Orders to runs: `pause`, `resume`, `cancel`, `terminate`, `signal`, `steer`, `approve`, `deny`.

mod report;
mod targets;
mod wait;

use std::path::Path;

use anyhow::Result;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use longhaul_engine::RequestedBy;

use crate::arguments::{OrderArguments, OrderTargets, Signal, SteerArguments, Verdict};
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::{Client, Delivered, Error, Order, Receiver, RequestError};

use report::{Line, Outcome};
pub(super) use report::{OrderDocument, done};
use targets::Target;
pub(super) use targets::read_names;

/// How many targets are terminated at the same time.
const AT_ONCE: usize = 64;

/// Sends an order to projects or runs; without a name, to the project of this directory.
pub(super) async fn projects(data_dir: &Path, named: OrderTargets, order: Order) -> Result<Exit> {
    let mut targets = named.targets;
    if targets.is_empty() && named.order.selection.filters.is_empty() {
        targets.push(named.order.scope.dir.to_string_lossy().into_owned());
    }
    send(data_dir, &targets, &named.order, &order).await
}

/// Responds to features that wait for approval.
pub(super) async fn verdict(data_dir: &Path, verdict: Verdict, order: Order) -> Result<Exit> {
    if order == Order::Deny && verdict.order.request.why.trim().is_empty() {
        return Err(usage("give a reason with --why TEXT"));
    }
    send(data_dir, &verdict.targets, &verdict.order, &order).await
}

pub(super) async fn signal(data_dir: &Path, signal: Signal) -> Result<Exit> {
    let mut words = signal.words.into_iter();
    let target = if signal.order.selection.filters.is_empty() { words.next() } else { None };
    let Some(name) = words.next() else {
        return Err(usage("a signal needs a name: `longhaul signal RUN NAME [JSON]`"));
    };
    let payload =
        words.next().map_or(Ok(serde_json::Value::Null), |text| serde_json::from_str(&text));
    let payload = payload
        .map_err(|error| usage(format!("the content of the signal is not JSON: {error}")))?;
    if words.next().is_some() {
        return Err(usage(
            "with --filter there is no RUN: `longhaul signal --filter KEY=VALUE NAME [JSON]`",
        ));
    }
    let targets: Vec<String> = target.into_iter().collect();
    send(data_dir, &targets, &signal.order, &Order::Signal { name, payload }).await
}

pub(super) async fn steer(data_dir: &Path, steer: SteerArguments) -> Result<Exit> {
    let mut targets = steer.words;
    let text = targets.pop().unwrap_or_default();
    if targets.is_empty() == steer.order.selection.filters.is_empty() {
        return Err(usage(
            "name a run, a feature or a project, or give --filter: `longhaul steer RUN TEXT`",
        ));
    }
    send(data_dir, &targets, &steer.order, &Order::Steer { text }).await
}

/// Resolves the targets, asks for confirmation, sends the order and reports.
async fn send(
    data_dir: &Path,
    named: &[String],
    arguments: &OrderArguments,
    order: &Order,
) -> Result<Exit> {
    if !named.is_empty() && !arguments.selection.filters.is_empty() {
        return Err(usage("give either names or --filter, not both"));
    }
    // Before the log is opened: the program that writes the names may need the log, and a person
    // may take long, which must not block other commands.
    let names = targets::read_names(named)?;
    let mut access = super::reach(data_dir).await?;
    let mut found = targets::find(&access, &names, arguments, order).await?;
    found.truncate(arguments.selection.limit.unwrap_or(usize::MAX));
    if found.is_empty() {
        term::say("no run matches");
    }
    let is_bulk = !arguments.selection.filters.is_empty() || named.iter().any(|name| name == "-");
    if is_bulk && found.len() > 1 && !arguments.selection.dry_run && !arguments.selection.yes {
        drop(access);
        targets::confirm(found.len(), order)?;
        access = super::reach(data_dir).await?;
    }
    let request = arguments.request.request();
    // A terminated run is waited for: those of all targets end at the same time.
    let at_once = if *order == Order::Terminate { AT_ONCE } else { 1 };
    let lines = stream::iter(found)
        .map(|target| send_one(&access, target, arguments.selection.dry_run, order, &request))
        .buffered(at_once);
    let lines = lines.try_concat().await?;
    report::print(&lines, arguments, order, &request)?;
    if arguments.wait.wait
        && !arguments.selection.dry_run
        && !is_followed(&access, &lines, arguments, order).await?
    {
        return Ok(Exit::Suspended);
    }
    Ok(report::exit(&lines))
}

/// Waits until the runs have followed the order; a message names those that have not.
async fn is_followed(
    access: &Client,
    lines: &[Line],
    arguments: &OrderArguments,
    order: &Order,
) -> Result<bool> {
    let received = lines.iter().filter(|line| line.has_received());
    if received.clone().any(|line| line.waits) {
        term::say("no process runs this log, so there is nothing to wait for");
        return Ok(false);
    }
    let runs = received.filter_map(|line| line.run.clone()).collect();
    let open = wait::laggards(access, runs, order, &arguments.wait).await?;
    for run in &open {
        term::say(format!("{run}  not {} yet", done(order)));
    }
    Ok(open.is_empty())
}

async fn send_one(
    access: &Client,
    Target { name, run }: Target,
    dry_run: bool,
    order: &Order,
    request: &RequestedBy,
) -> Result<Vec<Line>> {
    let line = |run, outcome| Line { target: name.clone(), run, outcome, waits: false, root: None };
    let target = match run {
        Ok(run) => run,
        Err(reason) => return Ok(vec![line(None, Outcome::Unknown(reason))]),
    };
    let steer = longhaul_server::Steer {
        target: target.clone(),
        order: order.clone(),
        request: request.clone(),
        dry_run,
    };
    let not_delivered = |outcome| Ok(vec![line(Some(target.clone()), outcome)]);
    match access.call(steer).await {
        Ok(Delivered { runs }) if runs.is_empty() => {
            not_delivered(Outcome::Refused("no run of it is open".into()))
        }
        Ok(Delivered { runs }) => {
            let outcome = || if dry_run { Outcome::WouldDeliver } else { Outcome::Delivered };
            let delivered =
                |Receiver { run, waits, root }| Line { waits, root, ..line(Some(run), outcome()) };
            Ok(runs.into_iter().map(delivered).collect())
        }
        Err(Error::Request(error)) => match error {
            // No run was started in the directory of the project yet.
            RequestError::UnknownRun { .. } => not_delivered(Outcome::Unknown(error.to_string())),
            RequestError::Refused { reason } => not_delivered(Outcome::Refused(reason)),
            RequestError::AlreadyDone { reason } => not_delivered(Outcome::Unchanged(reason)),
            RequestError::Held { reason } => not_delivered(Outcome::Held(reason)),
            error => Err(Error::Request(error).into()),
        },
        Err(error) => Err(error.into()),
    }
}
