//! `longhaul session list`, `show`, `transcript` and `handoff`.

mod show;
pub(in crate::command) mod transcript;

use std::path::Path;

use anyhow::Result;

use super::terminal::{self, Terminal};
use super::{ask, named};
use crate::arguments::ListOutput;
use crate::arguments::Output;
use crate::arguments::session::{OneHandoff, Session, SessionCommand, SessionList};
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::session::list::ListSessions;
use longhaul_server::views::{SessionLine, SessionsDocument, ShowHandoff};
use longhaul_workflows::projection::SessionState;
use longhaul_workflows::session::SessionPhase;

pub(super) async fn run(data_dir: &Path, session: Session) -> Result<Exit> {
    match session.command {
        SessionCommand::List(arguments) => list(data_dir, &arguments).await,
        SessionCommand::Show(arguments) => show::run(data_dir, &arguments).await,
        SessionCommand::Transcript(arguments) => transcript::run(data_dir, &arguments).await,
        SessionCommand::Handoff(arguments) => handoff(data_dir, &arguments).await,
    }
}

pub(in crate::command) async fn list(data_dir: &Path, arguments: &SessionList) -> Result<Exit> {
    let document = if let Some(client) = Client::reach(data_dir, term::notice).await? {
        let within = match &arguments.target {
            Some(target) => Some(named::scope(target, &arguments.scope.dir).await?),
            None => None,
        };
        super::call(&client, ListSessions { within }).await?
    } else {
        term::say(format!("there is no log in {}: nothing has run yet", data_dir.display()));
        SessionsDocument { is_running: false, sessions: Vec::new() }
    };
    let sessions = &document.sessions;
    match arguments.output {
        ListOutput::Json => document::print(&document)?,
        ListOutput::Jsonl => {
            for session in sessions {
                document::print_line(session)?;
            }
        }
        ListOutput::Ids => sessions.iter().for_each(|session| term::print(&session.id)),
        ListOutput::Table if sessions.is_empty() => term::say("there has been no session yet"),
        ListOutput::Table => {
            let terminal = Terminal::here();
            let rows: Vec<_> = sessions.iter().map(|line| row(terminal, line)).collect();
            let header =
                ["SESSION", "STATE", "DRIVER", "MODEL", "TURNS", "TOKENS", "WINDOW", "STARTED", ""];
            term::print(terminal.table(&header, &rows));
        }
    }
    Ok(Exit::Ok)
}

async fn handoff(data_dir: &Path, arguments: &OneHandoff) -> Result<Exit> {
    let name = super::name(&arguments.one.id, &arguments.one.scope.dir).await?;
    let handoff = ask(data_dir, ShowHandoff(name)).await?;
    match arguments.output {
        Output::Json => document::print(&handoff)?,
        Output::Table => term::print(handoff.document.trim_end()),
    }
    Ok(Exit::Ok)
}

fn row(terminal: Terminal, line: &SessionLine) -> Vec<String> {
    let remark = line.question.as_ref().or(line.failure.as_ref());
    vec![
        line.id.clone(),
        state(line).to_owned(),
        line.driver.as_str().to_owned(),
        terminal::safe(line.model.as_deref().unwrap_or("-")),
        line.turns.map_or_else(|| "-".into(), |turns| turns.to_string()),
        line.tokens.map_or_else(|| "-".into(), |tokens| tokens.total().to_string()),
        line.window_share.map_or_else(|| "-".into(), share),
        terminal::time(line.started_at),
        terminal::short(
            &terminal::safe(remark.map_or("", String::as_str)),
            terminal.width.map_or(100, |width| width.min(100)),
        ),
    ]
}

/// The state of a session; of one at work, its phase.
fn state(line: &SessionLine) -> &'static str {
    match (line.state, line.phase) {
        (SessionState::Working, Some(SessionPhase::Starting)) => "starting",
        (SessionState::Working, Some(SessionPhase::Asking)) => "asking",
        (SessionState::Working, Some(SessionPhase::HandingOver)) => "handing over",
        (SessionState::Working, _) => "working",
        (state, _) => super::describe::state(state),
    }
}

/// A share in percent.
fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
