//! `longhaul usage`.

use std::path::Path;

use anyhow::Result;

use super::named;
use super::terminal::{self, Terminal};
use crate::arguments::usage::{Ledger, Usage};
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::usage::{ShowUsage, UsageBy, UsageDocument, UsageSum};

/// The columns of numbers.
const COLUMNS: [&str; 6] = ["turns", "input", "output", "cache_read", "cache_write", "cost_usd"];

pub(super) async fn run(data_dir: &Path, arguments: &Usage) -> Result<Exit> {
    let by = arguments.by.into();
    let document = if let Some(client) = Client::reach(data_dir, term::notice).await? {
        let within = match &arguments.target {
            Some(target) => Some(named::scope(target, &arguments.scope.dir).await?),
            None => None,
        };
        super::call(&client, ShowUsage { within, by }).await?
    } else {
        term::say(format!("there is no log in {}: nothing has run yet", data_dir.display()));
        UsageDocument { by, ..UsageDocument::default() }
    };
    match arguments.output {
        Ledger::Json => document::print(&document)?,
        Ledger::Csv => csv(&document),
        Ledger::Table if document.rows.is_empty() => term::say("no agent has stated any tokens"),
        Ledger::Table => table(&document),
    }
    if document.pruned_runs > 0 {
        let runs = terminal::counted(document.pruned_runs as u64, "pruned run");
        term::say(format!("without {runs}, whose histories are gone"));
    }
    Ok(Exit::Ok)
}

fn table(document: &UsageDocument) {
    let subject = subject(document.by).to_uppercase();
    let columns = COLUMNS.map(|name| name.replace('_', " ").to_uppercase());
    let mut header = vec![subject.as_str()];
    header.extend(columns.iter().map(String::as_str));
    let row = |name: &str, sum: &UsageSum| {
        let cost = match sum.cost_usd {
            None => "-".to_owned(),
            Some(cost) if sum.unpriced_tokens > 0 => format!("at least {cost:.4}"),
            Some(cost) => format!("{cost:.4}"),
        };
        [terminal::safe(name)].into_iter().chain(numbers(sum)).chain([cost]).collect()
    };
    let mut rows: Vec<Vec<String>> =
        document.rows.iter().map(|line| row(&line.name, &line.sum)).collect();
    rows.push(row("total", &document.total));
    term::print(Terminal::here().table(&header, &rows));
}

fn csv(document: &UsageDocument) {
    let header = [&[subject(document.by)][..], &COLUMNS[..], &["unpriced_tokens"][..]].concat();
    term::print_data(header.join(","));
    for line in &document.rows {
        let cost = line.sum.cost_usd.map(|cost| format!("{cost:.6}")).unwrap_or_default();
        let cells = [cell(&line.name)].into_iter().chain(numbers(&line.sum)).chain([cost]);
        let cells = cells.chain([line.sum.unpriced_tokens.to_string()]);
        term::print_data(cells.collect::<Vec<_>>().join(","));
    }
}

fn subject(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Feature => "feature",
        UsageBy::Project => "project",
        UsageBy::Model => "model",
        UsageBy::Day => "day",
        UsageBy::Provider => "provider",
        UsageBy::Label => "label",
    }
}

fn numbers(sum: &UsageSum) -> [String; 5] {
    let tokens = &sum.tokens;
    [sum.turns, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write]
        .map(|number| number.to_string())
}

/// A cell of comma-separated values (RFC 4180).
fn cell(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
