//! `longhaul logs`: prints the session output files of a run, or the conversations of its sessions.

mod conversation;
mod output;

use longhaul_server::RunKind;
use std::path::Path;

use anyhow::Result;
use longhaul_engine::RunId;

use super::terminal::counted;
use crate::arguments::look::Logs;
use crate::exit::{Exit, usage};
use crate::term;
use longhaul_server::views::{Describe, DescribeDocument, Name};
use longhaul_server::{Watch, advice, pruned};
use longhaul_workflows::projection::Session;

pub(in crate::command) use output::SessionOutput;

pub(super) async fn run(data_dir: &Path, arguments: &Logs) -> Result<Exit> {
    let name = super::name(&arguments.one.run, &arguments.one.scope.dir).await?;
    let mut follower = Follower::begin(data_dir, name, arguments).await?;
    let mut last_shown = 0;
    loop {
        let document = &follower.document;
        if let Some(at) = document.pruned_at {
            return Err(usage(pruned::refusal(document.run.header.id(), at)));
        }
        if matches!(document.run.workflow, RunKind::Project | RunKind::Batch) {
            let id = document.run.header.id();
            return Err(usage(format!(
                "{id} has no session of its own: name a feature or a session; {} shows them",
                advice::command(["tree", id])
            )));
        }
        if document.run.workflow == RunKind::Session {
            let run = RunId::new(follower.name.text.clone())?;
            conversation::show(data_dir, &run, arguments.follow, arguments.raw).await?;
            return Ok(Exit::Ok);
        }
        if let Some(index) = chosen(document, arguments, last_shown)? {
            last_shown = index + 1;
            term::say(format!(
                "{}: session {}",
                follower.name.text, document.sessions[index].number
            ));
            follower.show(index).await?;
            if !arguments.follow || arguments.session.is_some() || term::is_closed() {
                return Ok(Exit::Ok);
            }
            continue;
        }
        if document.run.ended_at.is_some() || !arguments.follow || term::is_closed() {
            return Ok(Exit::Ok);
        }
        if !document.is_running {
            term::say(format!(
                "{} is open, but no process runs it: {} says how it continues",
                follower.name.text,
                super::why_of(&follower.name)
            ));
            return Ok(Exit::Suspended);
        }
        follower.next().await?;
    }
}

/// Prints the conversation of a session so far.
pub(super) async fn show(data_dir: &Path, session: &RunId) -> Result<()> {
    conversation::show(data_dir, session, false, false).await
}

/// The session to show now: the requested one, else the latest, unless it was shown already.
fn chosen(document: &DescribeDocument, arguments: &Logs, shown: usize) -> Result<Option<usize>> {
    let sessions = &document.sessions;
    if let Some(number) = arguments.session {
        let found = sessions.iter().rposition(|session| session.number == number);
        let unknown = || {
            usage(format!(
                "{} has had {}, and no session {number}",
                document.run.header.id(),
                counted(sessions.len() as u64, "session")
            ))
        };
        return found.map(Some).ok_or_else(unknown);
    }
    if shown > 0 {
        return Ok((shown < sessions.len()).then_some(shown));
    }
    if sessions.is_empty() && !arguments.follow {
        term::say(format!("{} has had no session yet", document.run.header.id()));
    }
    Ok(sessions.len().checked_sub(1))
}

/// A run whose sessions are shown.
struct Follower<'a> {
    data_dir: &'a Path,
    arguments: &'a Logs,
    name: Name,
    document: DescribeDocument,
    /// Updates of its description, if it is followed.
    watch: Option<Watch<Describe>>,
}

impl<'a> Follower<'a> {
    async fn begin(data_dir: &'a Path, mut name: Name, arguments: &'a Logs) -> Result<Self> {
        let client = super::reach(data_dir).await?;
        let document = super::call(&client, Describe(name.clone())).await?;
        document.run.header.id().clone_into(&mut name.text);
        let follows = arguments.follow && document.is_running;
        let watch = if follows { Some(client.watch(Describe(name.clone())).await?) } else { None };
        Ok(Self { data_dir, arguments, name, document, watch })
    }

    /// Waits for an update.
    async fn next(&mut self) -> Result<()> {
        let next = match &mut self.watch {
            Some(watch) => watch.next().await,
            None => Ok(None),
        };
        match next {
            Ok(Some(document)) => self.document = document,
            Ok(None) => self.document.is_running = false,
            // The owner has exited: the rest is in the log.
            Err(longhaul_server::Error::Gone(_)) => {
                *self = Self::begin(self.data_dir, self.name.clone(), self.arguments).await?;
            }
            Err(error) => return Err(super::explained(error)),
        }
        Ok(())
    }

    /// Shows a session; follows a running one to its end.
    async fn show(&self, index: usize) -> Result<()> {
        let session = self.document.sessions.get(index).and_then(Session::run);
        let Some(session) = session else { return Ok(()) };
        conversation::show(self.data_dir, &session, self.arguments.follow, self.arguments.raw).await
    }
}
