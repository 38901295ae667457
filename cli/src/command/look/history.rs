//! `longhaul history`.

use std::path::Path;

use anyhow::{Context, Result};
use longhaul_engine::Position;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::terminal::{self, Terminal};
use crate::arguments::EventsOutput;
use crate::arguments::look::History;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::history::{HistoryEntry, ShowHistory};
use longhaul_server::views::{HistoryPage, Name};

/// The history of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::command) struct HistoryDocument {
    /// The id of the run.
    run: String,
    /// Its events in the format of a history file: position, time, kind and fields.
    events: Vec<Map<String, Value>>,
}

pub(super) async fn run(data_dir: &Path, arguments: &History) -> Result<Exit> {
    let terminal = Terminal::here();
    let mut client = super::reach(data_dir).await?;
    // A feature may start another run meanwhile, so keep its run.
    let name = super::named::exact(&super::named::target(&client, &arguments.target).await?);
    let mut from = 0;
    let mut lines = Vec::new();
    loop {
        let page = match next(&client, arguments, &name, from).await {
            Ok(page) => page,
            // The owner has exited: the rest is in the log.
            Err(error) if super::is_gone(&error) && arguments.follow => {
                client = super::reach(data_dir).await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        for event in page.events {
            from = event.position + 1;
            match arguments.output {
                EventsOutput::Json => {
                    lines.push(serde_json::from_str(recorded_line(&event)?)?);
                }
                _ => show(terminal, arguments, &event)?,
            }
        }
        if page.more && !term::is_closed() {
            continue;
        }
        let is_stopped = !page.is_over && !page.is_running;
        if !arguments.follow || page.is_over || is_stopped || term::is_closed() {
            if arguments.output == EventsOutput::Json {
                document::print(HistoryDocument { run: name.text.clone(), events: lines })?;
            }
            if arguments.follow && is_stopped {
                term::say(format!(
                    "{} is open, but no process runs it: {} says how it continues",
                    name.text,
                    super::why_of(&name)
                ));
                return Ok(Exit::Suspended);
            }
            return Ok(Exit::Ok);
        }
    }
}

/// The next page; with `follow`, the next page that has events.
async fn next(
    client: &Client,
    arguments: &History,
    name: &Name,
    from: Position,
) -> Result<HistoryPage> {
    let lines = arguments.full || arguments.output != EventsOutput::Table;
    let query = ShowHistory { name: name.clone(), from, lines };
    if !arguments.follow {
        return super::call(client, query).await;
    }
    let mut watch = client.watch(query.clone()).await?;
    let mut last = None;
    while let Some(page) = watch.next().await.map_err(super::explained)? {
        if !page.events.is_empty() || page.is_over || !page.is_running {
            return Ok(page);
        }
        last = Some(page);
    }
    match last {
        Some(page) => Ok(HistoryPage { is_running: false, ..page }),
        None => super::call(client, query).await,
    }
}

/// The event in the format of a history file.
fn recorded_line(event: &HistoryEntry) -> Result<&str> {
    event.line.as_deref().context("the process that runs the log sent no lines of the history")
}

fn show(terminal: Terminal, arguments: &History, event: &HistoryEntry) -> Result<()> {
    if arguments.output == EventsOutput::Jsonl {
        term::print_data(recorded_line(event)?);
        return Ok(());
    }
    if event.words.is_empty() && !arguments.full {
        return Ok(());
    }
    let words = terminal::safe(&event.words);
    if terminal.is_narrow() {
        term::print(format!(
            "{} {}",
            event.position,
            terminal.paint(terminal::Colour::Dim, &terminal::time(event.at))
        ));
        term::print(terminal.indented(2, &words));
    } else {
        let head = format!("{:>5}  {}  ", event.position, terminal::time(event.at));
        let room =
            terminal.width.map_or(usize::MAX, |width| width.saturating_sub(head.len()).max(16));
        term::print(format!(
            "{}{}",
            terminal.paint(terminal::Colour::Dim, &head),
            terminal::short(&words, room)
        ));
    }
    if arguments.full {
        term::print(payloads(recorded_line(event)?)?);
    }
    Ok(())
}

/// The fields of an event, below its line.
fn payloads(line: &str) -> Result<String> {
    let mut fields: Map<String, Value> = serde_json::from_str(line)?;
    for known in ["position", "at"] {
        fields.shift_remove(known);
    }
    let text = serde_json::to_string_pretty(&fields)?;
    let lines: Vec<String> =
        text.lines().map(|line| format!("       {}", terminal::safe(line))).collect();
    Ok(lines.join("\n"))
}
