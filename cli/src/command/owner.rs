//! Work that needs a process which runs the log: this process owns the log, or connects to its
//! owner.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::terminal::counted;
use crate::arguments::AtOnce;
use crate::exit;
use crate::interrupts::Interrupts;
use crate::term;
use longhaul_server::{self, Client, Limits, Listener, Service};

/// Delay before the next attempt to own the log, after its owner exited.
const AGAIN: Duration = Duration::from_millis(200);

/// How long the kill of the agents may take after a second signal.
const HURRY: Duration = Duration::from_secs(2);

/// Performs the work as the owner of the log, or through its owner; `None` if interrupted.
///
/// `work` gets the service only in the process that owns the log. If the owner exits first, the
/// work starts again here.
pub(super) async fn join_or_own<T>(
    data_dir: &Path,
    limits: Limits,
    mut work: impl AsyncFnMut(&Client, Option<&Service>) -> Result<T>,
) -> Result<Option<T>> {
    loop {
        match longhaul_server::open(data_dir, limits).await {
            Ok(service) => return own(data_dir, service, work).await,
            Err(error) if error.is_owned() => {}
            Err(error) => return Err(error.into()),
        }
        let Some(client) = Client::reach_owner(data_dir, term::notice).await? else { continue };
        tokio::select! {
            result = work(&client, None) => match result {
                Ok(done) => return Ok(Some(done)),
                Err(error) if exit::is_complaint(&error) => return Err(error),
                // The owner exited.
                Err(_) => tokio::time::sleep(AGAIN).await,
            },
            () = interrupted() => {
                term::say("the other Longhaul process continues it");
                return Ok(None);
            }
        }
    }
}

/// Applies the limits of this command to the owner of the log, if any were given.
pub(super) async fn change_limits(client: &Client, limits: &AtOnce) -> Result<()> {
    let Some(change) = limits.change() else { return Ok(()) };
    super::call(client, change).await?;
    let parts = [("agent", change.agents), ("check", change.checks)];
    let counted = |(what, most): &(&str, Option<usize>)| Some(counted((*most)? as u64, what));
    let parts = parts.iter().filter_map(counted);
    let most = parts.collect::<Vec<_>>().join(" and ");
    term::say(format!("it runs at most {most} at once from now on"));
    Ok(())
}

async fn own<T>(
    data_dir: &Path,
    service: Arc<Service>,
    mut work: impl AsyncFnMut(&Client, Option<&Service>) -> Result<T>,
) -> Result<Option<T>> {
    let listener = Listener::start(data_dir, Arc::clone(&service))?;
    let client = Client::Local(Arc::clone(&service));
    let result = tokio::select! {
        result = work(&client, Some(&service)) => result.map(Some),
        () = interrupted() => {
            stop_gracefully(data_dir, &service).await;
            // Not stopped once more: after a second signal, it may never end.
            return Ok(None);
        }
    };
    service.stop().await;
    drop(listener);
    result
}

/// Graceful shutdown; a second signal kills the agents, and ends it soon, whatever hangs.
async fn stop_gracefully(data_dir: &Path, service: &Service) {
    // Installed before the message, so that an immediate signal counts.
    let mut interrupts = Interrupts::listen();
    term::say("stopping: agents that are at work are ended; once more, and they are killed");
    let hurry = async {
        interrupts.next().await;
        term::say("killing the agents that are at work");
        longhaul_activities::process::hurry(data_dir);
        tokio::time::sleep(HURRY).await;
    };
    tokio::select! {
        () = service.stop() => {}
        () = hurry => {}
    }
}

/// Resolves when this process receives a termination signal.
async fn interrupted() {
    Interrupts::listen().next().await;
}
