//! `longhaul session show`.

use std::path::Path;

use anyhow::Result;

use super::super::terminal::{self, Terminal};
use super::super::{ask, describe, name};
use super::{share, state};
use crate::arguments::Output;
use crate::arguments::session::OneSession;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::advice;
use longhaul_server::views::{SessionDocument, ShowSession};
use longhaul_workflows::contracts::Usage;

pub(super) async fn run(data_dir: &Path, arguments: &OneSession) -> Result<Exit> {
    let name = name(&arguments.one.id, &arguments.one.scope.dir).await?;
    let document = ask(data_dir, ShowSession(name)).await?;
    match arguments.output {
        Output::Json => document::print(&document)?,
        Output::Table => term::print(text(Terminal::here(), &document)),
    }
    Ok(Exit::Ok)
}

fn text(terminal: Terminal, document: &SessionDocument) -> String {
    let mut parts = vec![facts(terminal, document)];
    if !document.context_summary.is_empty() {
        let lines: Vec<String> = document
            .context_summary
            .lines()
            .map(|line| terminal.indented(2, &terminal::safe(line)))
            .collect();
        parts.push(format!("Summary:\n{}", lines.join("\n")));
    }
    if !document.checkpoints.is_empty() {
        let checkpoints = document.checkpoints.iter().map(|checkpoint| {
            vec![
                terminal::time(checkpoint.at),
                checkpoint.commit.chars().take(10).collect(),
                terminal::safe(&checkpoint.step),
            ]
        });
        let inner =
            Terminal { width: terminal.width.map(|width| width.saturating_sub(2)), ..terminal };
        let table = inner.table(&["TIME", "COMMIT", "STEP"], &checkpoints.collect::<Vec<_>>());
        let table: Vec<String> = table.lines().map(|line| format!("  {line}")).collect();
        parts.push(format!("Checkpoints:\n{}", table.join("\n")));
    }
    parts.join("\n\n")
}

fn facts(terminal: Terminal, document: &SessionDocument) -> String {
    let session = &document.session;
    let status = match &session.failure {
        Some(failure) => format!("{}: {}", state(session), terminal::safe(failure)),
        None => state(session).to_owned(),
    };
    let question = session.question.as_ref().map(|question| {
        let answer = advice::command(["answer", session.id.as_str(), "TEXT"]);
        format!("{} → {answer}", terminal::safe(question))
    });
    let window = session.window_share.map(|part| match document.window {
        Some(size) => format!("{} of {size} tokens", share(part)),
        None => share(part),
    });
    let list = |steps: &[String]| Some(steps.join(", ")).filter(|steps| !steps.is_empty());
    let count = |count: Option<u32>| count.map(|count| count.to_string());
    let lines = [
        ("Session", Some(session.id.clone())),
        ("State", Some(status)),
        ("Question", question),
        ("Project", session.project.clone()),
        ("Feature", session.feature.clone()),
        ("Run", Some(document.run.clone()).filter(|run| !run.is_empty())),
        ("Reason", Some(document.reason.as_str().replace('_', " "))),
        ("Task", document.task.as_deref().map(terminal::safe)),
        ("Driver", Some(session.driver.as_str().to_owned())),
        ("Model", session.model.as_deref().map(terminal::safe)),
        ("Started", Some(terminal::time(session.started_at))),
        ("Activity", Some(terminal::time(document.last_activity))),
        ("Ended", session.ended_at.map(terminal::time)),
        ("Step", document.current_step.as_deref().map(terminal::safe)),
        ("Completed", list(&document.completed_steps)),
        ("Pending", list(&document.pending_steps)),
        ("Turns", count(session.turns)),
        ("Tool calls", count(document.tool_calls)),
        ("Tokens", session.tokens.as_ref().map(tokens)),
        ("Window", window),
        ("Summaries", count(document.compactions).filter(|count| count != "0")),
        ("Continues", document.predecessor.clone()),
        ("Successor", document.successor.clone()),
        ("Agent's id", document.conversation.as_deref().map(terminal::safe)),
        ("Refused", list(&document.refused).map(|tools| terminal::safe(&tools))),
        ("Granted", count(document.granted).map(|calls| format!("{calls} calls"))),
        ("Output", document.log.clone()),
    ];
    let shown =
        lines.into_iter().filter_map(|(name, value)| Some(describe::line(terminal, name, &value?)));
    shown.collect::<Vec<_>>().join("\n")
}

/// The tokens in words.
fn tokens(usage: &Usage) -> String {
    format!(
        "{}: {} input, {} output, {} read from the cache, {} written to it",
        usage.total(),
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write
    )
}
