//! `longhaul session transcript`.

use std::path::Path;

use anyhow::Result;
use longhaul_engine::RunId;

use super::super::transcript::{SHOWN, text};
use super::super::{ask, logs, name};
use crate::arguments::TranscriptOutput;
use crate::arguments::session::SessionTranscript;
use crate::document;
use crate::exit::Exit;
use crate::term;
use longhaul_server::views::session::transcript::Transcript;
use longhaul_workflows::settings::Driver;

pub(super) async fn run(data_dir: &Path, arguments: &SessionTranscript) -> Result<Exit> {
    let name = name(&arguments.one.id, &arguments.one.scope.dir).await?;
    let transcript = ask(data_dir, Transcript { name, from: 0 }).await?;
    if transcript.entries.is_empty() && arguments.output != TranscriptOutput::Json {
        if transcript.driver != Driver::Api {
            let session = RunId::new(transcript.session)?;
            return logs::show(data_dir, &session).await.map(|()| Exit::Ok);
        }
        term::say(format!("{} has no conversation yet", transcript.session));
    }
    match arguments.output {
        TranscriptOutput::Json => document::print(&transcript)?,
        TranscriptOutput::Jsonl => {
            for entry in &transcript.entries {
                document::print_line(entry)?;
            }
        }
        TranscriptOutput::Table => {
            let shown = if arguments.full { usize::MAX } else { SHOWN };
            for entry in &transcript.entries {
                term::print(text(entry, shown).trim_end_matches('\n'));
            }
        }
    }
    Ok(Exit::Ok)
}
