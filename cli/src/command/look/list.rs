//! `longhaul list`.

use std::path::Path;

use anyhow::Result;
use chrono::Utc;

use super::named;
use super::terminal::{self, Terminal};
use crate::arguments::ListOutput;
use crate::arguments::look::List;
use crate::document;
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::ListDocument;
use longhaul_server::views::list::{Cursor, ListRuns, RunLine};

pub(super) async fn run(data_dir: &Path, arguments: List) -> Result<Exit> {
    let output = arguments.output;
    let project = arguments.project.clone();
    let mut query = query(arguments)?;
    let document = if let Some(access) = Client::reach(data_dir, term::notice).await? {
        if let Some(project) = project {
            query.project = Some(named::project(&access, &project).await?);
        }
        super::call(&access, query).await?
    } else {
        term::say(format!("there is no log in {}: nothing has run yet", data_dir.display()));
        ListDocument { is_running: false, runs: Vec::new(), fitting: 0, superseded: 0, next: None }
    };
    match output {
        ListOutput::Json => {
            document::print(&document)?;
            return Ok(Exit::Ok);
        }
        ListOutput::Table if document.runs.is_empty() => {
            term::say(format!("no run fits in {}", data_dir.display()));
        }
        ListOutput::Table => show(&document),
        ListOutput::Jsonl => {
            for line in &document.runs {
                document::print_line(line)?;
            }
        }
        ListOutput::Ids => document.runs.iter().for_each(|line| term::print(line.header.id())),
    }
    if document.superseded > 0 {
        let count = terminal::counted(document.superseded as u64, "superseded run");
        term::say(format!("{count} not shown: --all shows them"));
    }
    if let Some(next) = &document.next {
        let rest = document.fitting - document.runs.len();
        term::say(format!("{rest} more: --after {next}"));
    }
    Ok(Exit::Ok)
}

/// The query without the project, which needs the log to resolve it.
fn query(arguments: List) -> Result<ListRuns> {
    let unfit = || usage("--after takes the cursor that the last page gave");
    let after = arguments.after.map(|text| Cursor::read(&text).ok_or_else(unfit)).transpose()?;
    Ok(ListRuns {
        project: None,
        status: arguments.status,
        is_open: false,
        kind: arguments.kind,
        feature: arguments.feature,
        since: arguments.since,
        until: arguments.until,
        labels: arguments.label,
        superseded: arguments.all,
        limit: arguments.limit as usize,
        after,
    })
}

fn show(document: &ListDocument) {
    let terminal = Terminal::here();
    let rows: Vec<Vec<String>> = document.runs.iter().map(|line| row(terminal, line)).collect();
    term::print(terminal.table(&["RUN", "WORKFLOW", "STATUS", "AGE", "TOOK", ""], &rows));
    super::say_if_idle(document.is_running, &document.runs);
}

fn row(terminal: Terminal, line: &RunLine) -> Vec<String> {
    let now = Utc::now();
    let took = line
        .ended_at
        .map(|ended_at| terminal::span(ended_at - line.started_at))
        .unwrap_or_default();
    let until = line.until.map(|until| format!("until {}", terminal::time(until)));
    let superseded = line.superseded_by.as_ref().map(|run| format!("superseded by {run}"));
    let remark = line.remark().or(until);
    let remark: Vec<String> = superseded.into_iter().chain(remark).collect();
    let remark = terminal::safe(&remark.join("; "));
    vec![
        line.header.id().to_owned(),
        line.workflow.to_string(),
        terminal.state(line.header.status),
        terminal::span(now - line.started_at),
        took,
        terminal::short(&remark, 100),
    ]
}
