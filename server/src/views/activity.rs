//! The current activity of feature runs: its start, and the last line of output of the agent.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use longhaul_activities::process::run_directory_name;
use longhaul_activities::session::Transcript;
use longhaul_engine::{Position, RunId, StoreError};
use longhaul_workflows::projection::{RunView, SessionState, SessionView, TranscriptContent};
use longhaul_workflows::settings::Driver;
use serde::{Deserialize, Serialize};

use crate::perform::request;
use crate::request::RequestError;
use crate::service::Service;

/// The bytes at the end of an output file in which the last line is searched.
const TAIL: u64 = 16 * 1024;
/// The most characters of a line.
const LONGEST: usize = 400;

/// The current activity of feature runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowActivity {
    /// The runs, each with the conversation that the client has seen.
    pub runs: Vec<ReadPosition>,
}

/// A feature run, and how far the client has read the conversation of its session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadPosition {
    /// The run of a feature.
    pub run: RunId,
    /// The session run of the built-in agent, and the position of its next unread event.
    pub conversation: Option<(RunId, Position)>,
}

/// The current activity of a feature run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunActivity {
    /// The run and its conversation, for the next request.
    pub seen: ReadPosition,
    /// The start of the run, or of the process that continues it.
    pub started_at: DateTime<Utc>,
    /// The start of the open session, else the time of the last event; not before the process.
    pub since: DateTime<Utc>,
    /// The last nonempty line of output since the previous request.
    pub last_line: Option<String>,
}

request!(ShowActivity, "activity" -> Vec<RunActivity>, |self, service| {
    let mut activities = Vec::new();
    for seen in self.runs {
        activities.extend(activity(&service, seen).await?);
    }
    Ok(activities)
});

async fn activity(
    service: &Arc<Service>,
    seen: ReadPosition,
) -> Result<Option<RunActivity>, RequestError> {
    let store = &service.store;
    let Some(summary) = store.summary(&seen.run).await? else { return Ok(None) };
    let view = RunView::of(&store.read(&seen.run, summary.origin).await?);
    let open = view.sessions.last().filter(|session| session.state == SessionState::Working);
    let since = open.map(|session| session.started_at).or(view.last_at);
    // The time before this process began to run the project is downtime.
    let served = service.served_since(&seen.run);
    let shown = |at: DateTime<Utc>| served.map_or(at, |served| at.max(served));
    let mut activity = RunActivity {
        seen,
        started_at: shown(summary.started_at),
        since: shown(since.unwrap_or(summary.started_at)),
        last_line: None,
    };
    let Some((session, run)) = open.and_then(|open| Some((open, open.run()?))) else {
        return Ok(Some(activity));
    };
    if session.driver == Driver::Api {
        activity.read_conversation(service, run).await?;
        return Ok(Some(activity));
    }
    let data_dir = service.log.directory().to_owned();
    let tail = tokio::task::spawn_blocking(move || last_line(&output_file(&data_dir, &run)?));
    activity.last_line = tail.await.ok().flatten();
    Ok(Some(activity))
}

impl RunActivity {
    /// Reads the unread part of a conversation.
    async fn read_conversation(
        &mut self,
        service: &Service,
        session: RunId,
    ) -> Result<(), StoreError> {
        let known = self.seen.conversation.take().filter(|(known, _)| *known == session);
        let from = known.map_or(0, |(_, position)| position);
        let events = service.store.read(&session, from).await?;
        let view = SessionView::of(&events);
        let texts = view.transcript().iter().rev().filter_map(|entry| match &entry.said {
            TranscriptContent::Text { text } | TranscriptContent::ToolResult { text, .. } => {
                last_of(text)
            }
            TranscriptContent::ToolCall { tool, arguments } => {
                Some(short(&format!("{tool}: {arguments}")))
            }
            TranscriptContent::Failed { reason, .. } => last_of(reason),
            _ => None,
        });
        self.last_line = texts.into_iter().next();
        let next = events.last().map_or(from, |event| event.position + 1);
        self.seen.conversation = Some((session, next));
        Ok(())
    }
}

/// The newest output file of the agent of a session.
pub fn output_file(data_dir: &Path, session: &RunId) -> Option<PathBuf> {
    let files = fs::read_dir(data_dir.join("logs").join(run_directory_name(session))).ok()?;
    let is_output = |file: &fs::DirEntry| file.file_name().to_string_lossy().contains("-session");
    let files = files.flatten().filter(is_output);
    let newest = files.max_by_key(|file| file.metadata().and_then(|data| data.created()).ok());
    newest.map(|file| file.path())
}

/// The last nonempty line of an output file; that of a known agent as a transcript.
fn last_line(file: &Path) -> Option<String> {
    let mut open = File::open(file).ok()?;
    let length = open.metadata().ok()?.len();
    let start = length.saturating_sub(TAIL);
    open.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    open.take(TAIL).read_to_end(&mut bytes).ok()?;
    if start > 0 {
        // The first line is incomplete.
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.drain(..end);
    }
    let name = file.file_name()?.to_str()?;
    match Transcript::of_log(name) {
        Some(mut transcript) => last_of(&transcript.take(&bytes)),
        None => last_of(&String::from_utf8_lossy(&bytes)),
    }
}

fn last_of(text: &str) -> Option<String> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(short)
}

fn short(line: &str) -> String {
    line.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_long_file_is_found() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let file = directory.path().join("1-1-session.log");
        fs::write(&file, format!("{}\nlast one\n\n", "x".repeat(3 * 16 * 1024))).expect("written");
        assert_eq!(last_line(&file).as_deref(), Some("last one"));
        fs::write(&file, "only").expect("written");
        assert_eq!(last_line(&file).as_deref(), Some("only"));
        fs::write(&file, "\n \n").expect("written");
        assert_eq!(last_line(&file), None);
    }
}
