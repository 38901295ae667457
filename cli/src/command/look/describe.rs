//! `longhaul describe`.

use std::path::Path;

use anyhow::Result;

use super::terminal::{self, Terminal};
use crate::arguments::Output;
use crate::arguments::look::Named;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::views::{Describe, DescribeDocument};
use longhaul_workflows::feature::{COPIED, FORKED_FROM};
use longhaul_workflows::projection::{CheckRun, SegmentCause, Session, SessionState};

pub(super) async fn run(data_dir: &Path, arguments: &Named) -> Result<Exit> {
    let client = super::reach(data_dir).await?;
    let run = super::named::target(&client, &arguments.target).await?;
    let document = super::call(&client, Describe(super::named::exact(&run))).await?;
    drop(client);
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => {
            term::print(text(Terminal::here(), &document));
            super::say_if_idle(document.is_running, [&document.run]);
        }
    }
    Ok(Exit::Ok)
}

fn text(terminal: Terminal, document: &DescribeDocument) -> String {
    let mut parts = vec![facts(terminal, document)];
    let mut part = |title: &str, header: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let inner =
                Terminal { width: terminal.width.map(|width| width.saturating_sub(2)), ..terminal };
            let table = inner.table(header, &rows);
            let table: Vec<String> =
                table.lines().map(|line| format!("  {line}").trim_end().to_owned()).collect();
            parts.push(format!("{title}:\n{}", table.join("\n")));
        }
    };
    let children = document.children.iter();
    let children = children
        .map(|child| vec![child.header.id().to_owned(), terminal.state(child.header.status)]);
    part("Children", &["RUN", "STATUS"], children.collect());
    let audit = document.audit.iter().map(|entry| {
        let action = &entry.action;
        let cells =
            [&action.what.to_string(), &action.by, &action.why].map(|text| terminal::safe(text));
        std::iter::once(terminal::time(entry.at)).chain(cells).collect()
    });
    part("Audit", &["WHEN", "WHAT", "BY", "WHY"], audit.collect());
    let activities = document.activities.iter().map(|activity| {
        let failure = activity.last_failure.as_ref();
        let failure = failure
            .map(|failure| terminal::short(&terminal::safe(&failure.message), 100))
            .unwrap_or_default();
        let counts = [activity.completed, activity.attempts, activity.failures]
            .map(|count| count.to_string());
        [activity.name.clone()].into_iter().chain(counts).chain([failure]).collect()
    });
    part(
        "Activities",
        &["NAME", "DONE", "ATTEMPTS", "FAILURES", "LAST FAILURE"],
        activities.collect(),
    );
    let sessions = document.sessions.iter().map(session).collect();
    part("Sessions", &["SESSION", "REASON", "STARTED", "SECONDS", "ENDED"], sessions);
    let evidence =
        document.evidence.iter().map(|evidence| self::evidence(terminal, evidence)).collect();
    part(
        "Evidence",
        &["CHECK", "STEP", "RESULT", "SECONDS", "COMMIT", "DIGEST", "COMMAND"],
        evidence,
    );
    if !document.findings.is_empty() {
        let lines: Vec<String> = document
            .findings
            .iter()
            .map(|text| terminal.indented(2, &terminal::safe(text)))
            .collect();
        parts.push(format!("Noticed:\n{}", lines.join("\n")));
    }
    parts.join("\n\n")
}

fn facts(terminal: Terminal, document: &DescribeDocument) -> String {
    let run = &document.run;
    let state = terminal.state(run.header.status);
    let status = match run.remark() {
        Some(remark) => format!("{state}: {}", terminal::safe(&remark)),
        None => state,
    };
    let is_internal = |name: &str| [COPIED, FORKED_FROM].contains(&name);
    let shown = run.labels.iter().filter(|(name, _)| !is_internal(name));
    let labels: Vec<String> =
        shown.map(|(key, value)| terminal::safe(&format!("{key}={value}"))).collect();
    let ancestors: Vec<String> = document.ancestors.iter().map(ToString::to_string).collect();
    let mailbox: Vec<String> =
        document.mailbox.iter().map(|entry| terminal::safe(&entry.action.to_string())).collect();
    let began = document.segments.iter().filter_map(|segment| match segment.cause {
        SegmentCause::Started => None,
        SegmentCause::ContinuedAsNew => Some(format!("continued as new at {}", segment.position)),
        SegmentCause::Restarted => Some(format!("restarted at {}", segment.position)),
    });
    let began: Vec<String> = began.collect();
    let took = run.ended_at.map(|ended_at| {
        format!("{} (took {})", terminal::time(ended_at), terminal::span(ended_at - run.started_at))
    });
    let gone = document
        .pruned_at
        .map(|at| format!(", pruned on {}: only the last is kept", terminal::time(at)));
    let history = format!("{} events{}", document.events, gone.unwrap_or_default());
    let lines = [
        ("Run", Some(run.header.id().to_owned())),
        ("Status", Some(status)),
        ("Workflow", Some(run.workflow.to_string())),
        ("Project", run.header.project.clone()),
        ("Feature", run.header.feature.clone()),
        ("Below", (!ancestors.is_empty()).then(|| ancestors.join(", "))),
        ("Fork of", run.labels.get(FORKED_FROM).cloned()),
        ("Labels", (!labels.is_empty()).then(|| labels.join(", "))),
        ("Step", document.step.clone()),
        (
            "Waits",
            (!document.waits_for.is_empty()).then(|| terminal::safe(&document.waits_for.join(" "))),
        ),
        ("Mailbox", (!mailbox.is_empty()).then(|| mailbox.join(", "))),
        ("Started", Some(terminal::time(run.started_at))),
        ("Ended", took),
        ("Commit", document.commit.clone()),
        ("History", Some(history)),
        ("Restarts", (!began.is_empty()).then(|| began.join(", "))),
        ("Cost", cost(document)),
    ];
    let shown = lines.into_iter().filter_map(|(name, value)| Some(line(terminal, name, &value?)));
    shown.collect::<Vec<_>>().join("\n")
}

/// A name and its value; a multi-line value is printed below the name.
pub(super) fn line(terminal: Terminal, name: &str, value: &str) -> String {
    const COLUMN: usize = 12;
    let body = terminal.indented(COLUMN, value);
    format!("{:<COLUMN$}{}", format!("{name}:"), body.trim_start())
}

fn cost(document: &DescribeDocument) -> Option<String> {
    let cost = &document.cost;
    let sessions = terminal::counted(cost.sessions as u64, "session");
    let usage = cost.usage.as_ref().map(|sum| {
        let tokens = sum.tokens.total();
        let tokens = if tokens > 0 { format!(", {tokens} tokens") } else { String::new() };
        let usd = sum.cost_usd.map(|usd| format!(", {usd:.2} USD")).unwrap_or_default();
        format!("{tokens}{usd}")
    });
    let usage = usage.unwrap_or_default();
    (cost.sessions > 0)
        .then(|| format!("{sessions}, {:.1} seconds of agents{usage}", cost.session_seconds))
}

fn session(session: &Session) -> Vec<String> {
    let again = if session.attempts > 1 {
        format!(" ({} attempts)", session.attempts)
    } else {
        String::new()
    };
    vec![
        format!("{}{again}", session.number),
        session.reason.as_str().replace('_', " "),
        terminal::time(session.started_at),
        session.seconds.map(|seconds| format!("{seconds:.1}")).unwrap_or_default(),
        ended(session),
    ]
}

/// A state of a session in words.
pub(super) fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Working => "working",
        SessionState::Interrupted => "interrupted",
        SessionState::ClaimsDone => "claims done",
        SessionState::ContextFull => "context full",
        SessionState::Landed => "landed",
        SessionState::Failed => "failed",
    }
}

fn ended(session: &Session) -> String {
    let how = state(session.state);
    session
        .failure
        .as_ref()
        .map_or_else(|| how.to_owned(), |failure| format!("{how}: {}", terminal::safe(failure)))
}

fn evidence(terminal: Terminal, check: &CheckRun) -> Vec<String> {
    let evidence = &check.evidence;
    let result = if check.passed {
        let passed = if evidence.reused { "passed (not repeated)" } else { "passed" };
        terminal.paint(terminal::Colour::Green, passed)
    } else {
        terminal.paint(terminal::Colour::Red, &evidence.ending())
    };
    let seconds = std::time::Duration::from_millis(evidence.duration_ms).as_secs_f64();
    vec![
        terminal::safe(&evidence.name),
        check.step.clone(),
        result,
        format!("{seconds:.1}"),
        evidence.commit.chars().take(10).collect(),
        evidence.output_digest.chars().take(10).collect(),
        terminal::short(&terminal::safe(&evidence.command), 60),
    ]
}
