//! The conversation of a session of the built-in agent, which is in its history.

use std::path::Path;

use anyhow::Result;

use super::super::session::transcript;
use super::super::{call, explained, is_gone, reach};
use crate::term;
use longhaul_server::Client;
use longhaul_server::views::session::transcript::Transcript;
use longhaul_server::views::{Name, TranscriptDocument};

/// Prints the conversation of a session; with `follows`, until the session or its process ends.
pub(super) async fn show(data_dir: &Path, session: &str, follows: bool) -> Result<()> {
    let name = Name { text: session.to_owned(), project: None, whole: true };
    let mut client = reach(data_dir).await?;
    let mut from = 0;
    loop {
        let request = Transcript { name: name.clone(), from };
        let page = match next(&client, request, follows).await {
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
        from += page.entries.len();
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
