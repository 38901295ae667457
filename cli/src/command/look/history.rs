//! `longhaul history`.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use longhaul_engine::Position;
use serde_json::Value;

use super::page::{self, Page};
use crate::arguments::Output;
use crate::arguments::look::History;
use crate::exit::Exit;
use crate::term;
use longhaul_server::views::history::{Happened, Query};
use longhaul_server::views::{HistoryPage, Name};

/// How often a run that is followed is asked for more.
const AGAIN: Duration = Duration::from_millis(300);

pub(super) async fn run(data_dir: &Path, arguments: &History) -> Result<Exit> {
    let mut name = super::name(&arguments.one.run, &arguments.one.within.dir).await?;
    let page = Page::here();
    let mut from = 0;
    loop {
        let happened = ask(data_dir, arguments, &name, from).await?;
        for event in &happened.events {
            show(page, arguments, event);
            from = event.position + 1;
        }
        // A feature may begin another run while this one is read.
        name.text = happened.run.to_string();
        if term::is_over() {
            return Ok(Exit::Ok);
        }
        if happened.more {
            continue;
        }
        if !arguments.follow || happened.is_over {
            return Ok(Exit::Ok);
        }
        if !happened.is_running {
            term::say(format!("{} is not over, but no process runs it: `longhaul run` goes on", happened.run));
            return Ok(Exit::Suspended);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn ask(data_dir: &Path, arguments: &History, name: &Name, from: Position) -> Result<HistoryPage> {
    let lines = arguments.full || arguments.output == Output::Json;
    let query = Query { name: name.clone(), from, lines };
    super::ask(data_dir, query).await
}

fn show(page: Page, arguments: &History, event: &Happened) {
    if arguments.output == Output::Json {
        term::print_data(event.line.as_deref().unwrap_or_default());
        return;
    }
    let words = page::safe(&event.words);
    if page.is_narrow() {
        term::print(format!("{} {}", event.position, page.paint(page::Colour::Dim, &page::time(event.at))));
        term::print(page.indented(2, &words));
    } else {
        let head = format!("{:>5}  {}  ", event.position, page::time(event.at));
        let room = page.width.map_or(usize::MAX, |width| width.saturating_sub(head.len()).max(16));
        term::print(format!("{}{}", page.paint(page::Colour::Dim, &head), page::short(&words, room)));
    }
    if arguments.full {
        term::print(payloads(event));
    }
}

/// The fields of an event, below its line.
fn payloads(event: &Happened) -> String {
    let line = event.line.as_deref().unwrap_or_default();
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return String::new() };
    for known in ["position", "at"] {
        fields.shift_remove(known);
    }
    let text = serde_json::to_string_pretty(&fields).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|line| format!("       {}", page::safe(line))).collect();
    lines.join("\n")
}
