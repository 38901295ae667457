//! `longhaul describe`.

use std::path::Path;

use anyhow::Result;

use super::page::{self, Page};
use crate::arguments::Output;
use crate::arguments::look::Named;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::views::report::brief;
use longhaul_server::views::{Describe, DescribeDocument, Evidence, Session, Waiting};

pub(super) async fn run(data_dir: &Path, arguments: &Named) -> Result<Exit> {
    let name = super::name(&arguments.one.run, &arguments.one.within.dir).await?;
    let document = super::ask(data_dir, Describe(name)).await?;
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => {
            term::print(text(Page::here(), &document));
            super::say_if_idle(document.is_running, [&document.run]);
        }
    }
    Ok(Exit::Ok)
}

fn text(page: Page, document: &DescribeDocument) -> String {
    let mut parts = vec![facts(page, document)];
    let mut part = |title: &str, header: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let inner = Page { width: page.width.map(|width| width.saturating_sub(2)), ..page };
            let table = inner.table(header, &rows);
            let table: Vec<String> = table.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect();
            parts.push(format!("{title}:\n{}", table.join("\n")));
        }
    };
    let children = document.children.iter();
    let children = children.map(|child| vec![child.run.to_string(), page.state(&child.status)]);
    part("Children", &["RUN", "STATUS"], children.collect());
    let told = document.told.iter();
    let told = told.map(|told| {
        [page::time(told.at)]
            .into_iter()
            .chain([&told.what, &told.by, &told.why].map(|text| page::safe(text)))
            .collect()
    });
    part("Told", &["WHEN", "WHAT", "BY", "WHY"], told.collect());
    let activities = document.activities.iter().map(|activity| {
        let failure = activity.last_failure.as_ref();
        let failure = failure.map(|failure| page::short(&page::safe(&failure.message), 100)).unwrap_or_default();
        let counts = [activity.completed, activity.attempts, activity.failures].map(|count| count.to_string());
        [activity.name.clone()].into_iter().chain(counts).chain([failure]).collect()
    });
    part("Activities", &["NAME", "DONE", "ATTEMPTS", "FAILURES", "LAST FAILURE"], activities.collect());
    let sessions = document.sessions.iter().map(session).collect();
    part("Sessions", &["SESSION", "REASON", "STARTED", "SECONDS", "ENDED"], sessions);
    let evidence = document.evidence.iter().map(|evidence| self::evidence(page, evidence)).collect();
    part("Evidence", &["CHECK", "STEP", "RESULT", "SECONDS", "COMMIT", "DIGEST", "COMMAND"], evidence);
    if !document.findings.is_empty() {
        let lines: Vec<String> = document.findings.iter().map(|text| page.indented(2, &page::safe(text))).collect();
        parts.push(format!("Noticed:\n{}", lines.join("\n")));
    }
    parts.join("\n\n")
}

fn facts(page: Page, document: &DescribeDocument) -> String {
    let run = &document.run;
    let status = match &run.reason {
        Some(reason) => {
            format!("{}: {}", page.state(&run.status), page::safe(&brief(reason)))
        }
        None => page.state(&run.status),
    };
    let labels: Vec<String> = run.labels.iter().map(|(key, value)| page::safe(&format!("{key}={value}"))).collect();
    let ancestors: Vec<String> = document.ancestors.iter().map(ToString::to_string).collect();
    let waiting: Vec<String> = document.mailbox.iter().map(waiting).collect();
    let began = document.segments.iter().filter(|segment| segment.cause != "started");
    let began: Vec<String> =
        began.map(|segment| format!("{} at {}", segment.cause.replace('_', " "), segment.position)).collect();
    let took = run
        .ended_at
        .map(|ended_at| format!("{} (took {})", page::time(ended_at), page::span(ended_at - run.started_at)));
    let gone = document.pruned_at.as_ref().map(|at| format!(", pruned on {at}: not there any more"));
    let history = format!("{} events{}", document.events, gone.unwrap_or_default());
    let lines = [
        ("Run", Some(run.run.to_string())),
        ("Status", Some(status)),
        ("Workflow", Some(run.workflow.clone())),
        ("Project", run.project.clone()),
        ("Feature", run.feature.clone()),
        ("Below", (!ancestors.is_empty()).then(|| ancestors.join(", "))),
        ("Labels", (!labels.is_empty()).then(|| labels.join(", "))),
        ("Step", document.step.clone()),
        ("Waits", (!document.waits_for.is_empty()).then(|| page::safe(&document.waits_for.join(" ")))),
        ("Mailbox", (!waiting.is_empty()).then(|| waiting.join(", "))),
        ("Started", Some(page::time(run.started_at))),
        ("Ended", took),
        ("Commit", document.commit.clone()),
        ("History", Some(history)),
        ("Began anew", (!began.is_empty()).then(|| began.join(", "))),
        ("Cost", cost(document)),
    ];
    let shown = lines.into_iter().filter_map(|(name, value)| Some(line(page, name, &value?)));
    shown.collect::<Vec<_>>().join("\n")
}

fn waiting(message: &Waiting) -> String {
    let by = message.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let why = message.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    page::safe(&format!("{}{by}{why}", message.what))
}

/// A name and its value; a value that needs more than one line goes below itself.
fn line(page: Page, name: &str, value: &str) -> String {
    const COLUMN: usize = 12;
    let body = page.indented(COLUMN, value);
    format!("{:<COLUMN$}{}", format!("{name}:"), body.trim_start())
}

fn cost(document: &DescribeDocument) -> Option<String> {
    let cost = &document.cost;
    let dollars = cost.usd.map(|dollars| format!(", {dollars:.2} USD")).unwrap_or_default();
    let sessions = page::counted(cost.sessions as u64, "session");
    (cost.sessions > 0).then(|| format!("{sessions}, {:.1} seconds of agents{dollars}", cost.session_seconds))
}

fn session(session: &Session) -> Vec<String> {
    let again = if session.attempts > 1 { format!(" ({} attempts)", session.attempts) } else { String::new() };
    vec![
        format!("{}{again}", session.number),
        session.reason.replace('_', " "),
        page::time(session.started_at),
        session.seconds.map(|seconds| format!("{seconds:.1}")).unwrap_or_default(),
        session.ending.as_deref().unwrap_or("at work").replace('_', " "),
    ]
}

fn evidence(page: Page, evidence: &Evidence) -> Vec<String> {
    let result = if evidence.passed {
        page.paint(page::Colour::Green, "passed")
    } else {
        page.paint(page::Colour::Red, &evidence.ending())
    };
    let seconds = std::time::Duration::from_millis(evidence.duration_ms).as_secs_f64();
    vec![
        page::safe(&evidence.name),
        evidence.step.clone(),
        result,
        format!("{seconds:.1}"),
        evidence.commit.chars().take(10).collect(),
        evidence.output_digest.chars().take(10).collect(),
        page::short(&page::safe(&evidence.command), 60),
    ]
}
