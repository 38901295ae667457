//! The conversation of a session: in its history, or in the output of its agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use longhaul_engine::RunId;

use super::super::{call, explained, is_gone, reach, transcript};
use super::SessionOutput;
use crate::term;
use longhaul_server::views::activity::output_file;
use longhaul_server::views::session::transcript::Transcript;
use longhaul_server::views::{Name, TranscriptDocument};
use longhaul_server::{Client, Watch};
use longhaul_workflows::settings::Driver;

/// Poll interval of a followed file.
const AGAIN: Duration = Duration::from_millis(200);

/// Prints the conversation of a session; with `follows`, until the session or its process ends.
pub(super) async fn show(data_dir: &Path, session: &RunId, follows: bool, raw: bool) -> Result<()> {
    let name = Name { text: session.to_string(), project: None, whole: true };
    let request = Transcript { name, from: 0 };
    let client = reach(data_dir).await?;
    let page = call(&client, request.clone()).await?;
    if page.driver == Driver::Api {
        return show_entries(data_dir, client, request, follows).await;
    }
    let watch = if follows && page.is_running { Some(client.watch(request).await?) } else { None };
    let output = Output { data_dir, session, raw, read: SessionOutput::default() };
    output.show(page, watch).await
}

type Update = std::result::Result<Option<TranscriptDocument>, longhaul_server::Error>;

/// The output of the agent of a session.
struct Output<'a> {
    data_dir: &'a Path,
    session: &'a RunId,
    raw: bool,
    read: SessionOutput,
}

impl Output<'_> {
    /// Prints it; with a watch, until the session or its process ends.
    async fn show(
        mut self,
        mut page: TranscriptDocument,
        mut watch: Option<Watch<Transcript>>,
    ) -> Result<()> {
        loop {
            let is_complete = page.is_over || !page.is_running;
            self.pass_on()?;
            if self.read.file().is_none() && page.is_over {
                term::say("its output is not here any more");
            }
            let Some(following) = watch.as_mut().filter(|_| !is_complete) else { return Ok(()) };
            let Some(next) = self.pass_on_until(following).await? else { return Ok(()) };
            match next {
                Ok(Some(next)) => page = next,
                Ok(None) => page.is_running = false,
                // The owner has exited: the rest is in the log.
                Err(longhaul_server::Error::Gone(_)) => {
                    let name = Name { text: self.session.to_string(), project: None, whole: true };
                    let request = Transcript { name, from: 0 };
                    let client = reach(self.data_dir).await?;
                    page = call(&client, request.clone()).await?;
                    watch = if page.is_running { Some(client.watch(request).await?) } else { None };
                }
                Err(error) => return Err(explained(error)),
            }
        }
    }

    /// Prints new output until the next update; `None` if nothing reads it any more.
    async fn pass_on_until(&mut self, watch: &mut Watch<Transcript>) -> Result<Option<Update>> {
        let mut next = std::pin::pin!(watch.next());
        while !term::is_closed() {
            tokio::select! {
                next = &mut next => return Ok(Some(next)),
                // Growth of a file causes no event, so poll.
                () = tokio::time::sleep(AGAIN) => self.pass_on()?,
            }
        }
        Ok(None)
    }

    /// Prints new output.
    fn pass_on(&mut self) -> Result<()> {
        let path: Option<PathBuf> = output_file(self.data_dir, self.session);
        self.read.open(path);
        if self.raw {
            if let Some(file) = self.read.file() {
                term::pass_on(file);
            }
            return Ok(());
        }
        while let Some(text) = self.read.read()? {
            term::pass_on(text.as_bytes());
            if term::is_closed() {
                break;
            }
        }
        Ok(())
    }
}

/// Prints the entries of a conversation.
async fn show_entries(
    data_dir: &Path,
    mut client: Client,
    mut request: Transcript,
    follows: bool,
) -> Result<()> {
    loop {
        let page = match next(&client, request.clone(), follows).await {
            Ok(page) => page,
            // The owner has exited: the rest is in the log.
            Err(error) if is_gone(&error) && follows => {
                client = reach(data_dir).await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in &page.entries {
            term::pass_on(term::clean(&transcript::line(entry)).as_bytes());
        }
        request.from += page.entries.len();
        if !follows || page.is_over || !page.is_running || term::is_closed() {
            return Ok(());
        }
    }
}

/// The next entries; with `follows`, the first that are not empty.
async fn next(client: &Client, request: Transcript, follows: bool) -> Result<TranscriptDocument> {
    if !follows {
        return call(client, request).await;
    }
    let mut watch = client.watch(request.clone()).await?;
    let mut last = None;
    while let Some(page) = watch.next().await.map_err(explained)? {
        if !page.entries.is_empty() || page.is_over || !page.is_running {
            return Ok(page);
        }
        last = Some(page);
    }
    match last {
        Some(page) => Ok(TranscriptDocument { is_running: false, ..page }),
        None => call(client, request).await,
    }
}
