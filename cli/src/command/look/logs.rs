//! `longhaul logs`: what the agent printed, from the files that its sessions leave.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use longhaul_activities::process::run_folder_name;

use super::page::counted;
use crate::arguments::look::Logs;
use crate::exit::{Exit, usage};
use crate::term;
use crate::term::Cleaner;
use longhaul_server::pruned;
use longhaul_server::views::{Describe, DescribeDocument, Name, Session};

/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// How often a file that is followed is looked at.
const AGAIN: Duration = Duration::from_millis(200);

pub(super) async fn run(data_dir: &Path, arguments: &Logs) -> Result<Exit> {
    let mut name = super::name(&arguments.one.run, &arguments.one.within.dir).await?;
    let mut last_shown = 0;
    loop {
        let document = describe(data_dir, &name).await?;
        name.text = document.run.run.to_string();
        if let Some(at) = &document.pruned_at {
            return Err(usage(pruned::refusal(&document.run.run, at)));
        }
        if let Some(index) = chosen(&document, arguments, last_shown)? {
            last_shown = index + 1;
            term::say(format!("{}: session {}", name.text, document.sessions[index].number));
            show(data_dir, &name, document, index, arguments).await?;
            if !arguments.follow || arguments.session.is_some() || term::is_over() {
                return Ok(Exit::Ok);
            }
            continue;
        }
        if document.run.ended_at.is_some() || !arguments.follow || term::is_over() {
            return Ok(Exit::Ok);
        }
        if !is_running(data_dir, &name).await? {
            term::say(format!("{} is not over, but no process runs it: `longhaul run` goes on", name.text));
            return Ok(Exit::Suspended);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Which session is to be shown now: the one that was asked for, else the latest, unless it was shown already.
fn chosen(document: &DescribeDocument, arguments: &Logs, shown: usize) -> Result<Option<usize>> {
    let sessions = &document.sessions;
    if let Some(number) = arguments.session {
        let found = sessions.iter().rposition(|session| session.number == number);
        let unknown = || {
            usage(format!(
                "{} has had {}, and no session {number}",
                document.run.run,
                counted(sessions.len() as u64, "session")
            ))
        };
        return found.map(Some).ok_or_else(unknown);
    }
    if shown > 0 {
        return Ok((shown < sessions.len()).then_some(shown));
    }
    if sessions.is_empty() && !arguments.follow {
        term::say(format!("{} has had no session yet", document.run.run));
    }
    Ok(sessions.len().checked_sub(1))
}

/// Shows a session; one that is at work and followed, until it is over.
async fn show(
    data_dir: &Path,
    name: &Name,
    mut document: DescribeDocument,
    index: usize,
    arguments: &Logs,
) -> Result<()> {
    let mut file: Option<(PathBuf, File)> = None;
    let mut cleaner = Cleaner::default();
    loop {
        let session = document.sessions.get(index).context("the history of the run has become shorter")?;
        let is_over = session.ended_at.is_some();
        let path = log(data_dir, name, session);
        // Another attempt writes another file.
        if file.as_ref().map(|(open, _)| open) != path.as_ref() {
            file = path.and_then(|path| File::open(&path).ok().map(|open| (path, open)));
        }
        match &mut file {
            Some((_, open)) if arguments.raw => term::pass_on(open),
            Some((_, open)) => pass_on(open, &mut cleaner)?,
            None if is_over => term::say("its output is not here any more"),
            None => {}
        }
        if is_over || !arguments.follow || term::is_over() || !is_running(data_dir, name).await? {
            return Ok(());
        }
        tokio::time::sleep(AGAIN).await;
        document = describe(data_dir, name).await?;
    }
}

/// Passes on what a file has more, without control sequences.
fn pass_on(file: &mut File, cleaner: &mut Cleaner) -> Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece).context("cannot read the output of the session")?;
        if length == 0 || term::is_over() {
            return Ok(());
        }
        term::pass_on(cleaner.clean(&piece[..length]).as_bytes());
    }
}

/// The file with the output of a session: as its report says, or for one without a report the newest of its call.
fn log(data_dir: &Path, name: &Name, session: &Session) -> Option<PathBuf> {
    if let Some(log) = &session.log {
        return Some(log.into());
    }
    let run = longhaul_engine::RunId::new(name.text.clone()).ok()?;
    let begins = format!("{}-", session.call);
    let files = fs::read_dir(data_dir.join("logs").join(run_folder_name(&run))).ok()?;
    let of_call = |file: &fs::DirEntry| {
        let file = file.file_name().to_string_lossy().into_owned();
        file.strip_prefix(&begins).is_some_and(|rest| rest.contains("-session"))
    };
    let files = files.flatten().filter(of_call);
    let newest = files.max_by_key(|file| file.metadata().and_then(|data| data.created()).ok());
    newest.map(|file| file.path())
}

async fn describe(data_dir: &Path, name: &Name) -> Result<DescribeDocument> {
    super::ask(data_dir, Describe(name.clone())).await
}

async fn is_running(data_dir: &Path, name: &Name) -> Result<bool> {
    let query = longhaul_server::views::history::Query { name: name.clone(), from: u64::MAX, lines: false };
    Ok(super::ask(data_dir, query).await?.is_running)
}
