//! The table of all projects: `longhaul status` without a project, and the end of `run`.

use anyhow::Result;
use chrono::{DateTime, Utc};
use longhaul_engine::RunId;
use longhaul_server::Client;
use longhaul_server::status::StatusDocument;
use longhaul_server::views::{Overview, OverviewDocument, ProjectLine};

use super::terminal::{self, Terminal};
use crate::status_text::first_line;

/// The table of the projects that a command ran, with their cost if the log can still be asked.
pub(super) async fn of(client: &Client, documents: &[StatusDocument]) -> OverviewDocument {
    let ids = documents.iter().filter_map(|document| RunId::new(document.project.clone()).ok());
    let known = client.call(Overview { projects: ids.collect() }).await.ok();
    let known = known.map(|overview| overview.projects).unwrap_or_default();
    let line = |document: &StatusDocument| {
        let known = known.iter().find(|line| line.project == document.project);
        ProjectLine {
            cost_usd: known.and_then(|line| line.cost_usd),
            started_at: known.and_then(|line| line.started_at),
            ..ProjectLine::of(document)
        }
    };
    OverviewDocument::of(false, documents.iter().map(line).collect())
}

/// All projects of the log.
pub(super) async fn all(client: &Client) -> Result<OverviewDocument> {
    super::call(client, Overview::default()).await
}

/// The table for people.
pub(super) fn table(document: &OverviewDocument) -> String {
    let terminal = Terminal::here();
    let now = Utc::now();
    let has_costs = document.projects.iter().any(|line| line.cost_usd.is_some());
    let mut header = vec!["PROJECT", "STATUS", "PASSED", "RUNNING", "BLOCKED"];
    header.extend(has_costs.then_some("SPEND"));
    header.extend(["AGE", ""]);
    let rows: Vec<Vec<String>> =
        document.projects.iter().map(|line| row(terminal, line, has_costs, now)).collect();
    let counts = document.total;
    let cost: f64 = document.projects.iter().filter_map(|line| line.cost_usd).sum();
    let cost = if has_costs { format!(", {cost:.2} USD") } else { String::new() };
    let needy = document.projects.iter().filter(|line| line.needs_person).count();
    let needy = match needy {
        0 => String::new(),
        1 => ", 1 needs a person".to_owned(),
        needy => format!(", {needy} need a person"),
    };
    let head = format!(
        "{}{needy}: {} of {} features passed{cost}",
        terminal::counted(document.projects.len() as u64, "project"),
        counts.passed,
        counts.total,
    );
    format!("{}\n{}", terminal.fitted(&head), terminal.table(&header, &rows))
}

fn row(terminal: Terminal, line: &ProjectLine, has_costs: bool, now: DateTime<Utc>) -> Vec<String> {
    let count = |count: usize| if count == 0 { String::new() } else { count.to_string() };
    let counts = line.counts;
    let mut cells = vec![
        line.project.clone(),
        terminal.state(line.status),
        format!("{}/{}", counts.passed, counts.total),
        count(counts.running),
        count(counts.blocked),
    ];
    if has_costs {
        cells.push(line.cost_usd.map(|cost| format!("{cost:.2}")).unwrap_or_default());
    }
    cells.push(line.started_at.map(|at| terminal::span(now - at)).unwrap_or_default());
    let reason = first_line(&line.remark().unwrap_or_default());
    cells.push(terminal::safe(&reason));
    cells
}
