//! Owning the log, or joining the process that owns it; and the signals that end that.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::LOOK;
use crate::exit;
use crate::term;
use longhaul_server::{Client, Limits, Listener, Service};

/// Does this as the owner of the log, or joins the process that owns it; `None` if this process is told to end. The work
/// of a guest is begun again when the owner ends before it is done.
pub(in crate::command) async fn own_or_join<T>(
    data_dir: &Path,
    limits: Limits,
    mut work: impl AsyncFnMut(&Client, Option<&Service>) -> Result<T>,
) -> Result<Option<T>> {
    loop {
        match longhaul_server::open(data_dir, limits).await {
            Ok(service) => return as_owner(data_dir, service, work).await,
            Err(error) if error.is_owned() => {}
            Err(error) => return Err(error.into()),
        }
        let Some(access) = Client::reach_owner(data_dir, term::notice).await? else { continue };
        tokio::select! {
            done = work(&access, None) => match done {
                Ok(done) => return Ok(Some(done)),
                Err(error) if exit::is_complaint(&error) => return Err(error),
                // The owner ended.
                Err(_) => tokio::time::sleep(LOOK).await,
            },
            () = interrupted() => {
                term::say("the other Longhaul goes on with it");
                return Ok(None);
            }
        }
    }
}

async fn as_owner<T>(
    data_dir: &Path,
    service: Arc<Service>,
    mut work: impl AsyncFnMut(&Client, Option<&Service>) -> Result<T>,
) -> Result<Option<T>> {
    let listener = Listener::start(data_dir, Arc::clone(&service))?;
    let access = Client::Local(Arc::clone(&service));
    let done = tokio::select! {
        done = work(&access, Some(&service)) => done.map(Some),
        () = interrupted() => {
            stop_on_request(data_dir, &service).await;
            Ok(None)
        }
    };
    service.stop().await;
    drop(listener);
    done
}

/// Graceful shutdown; a second signal kills the agents.
async fn stop_on_request(data_dir: &Path, service: &Service) {
    // Before the offer is made: a second signal that comes at once counts.
    let mut interrupts = Interrupts::listen();
    term::say("stopping: agents that are at work are ended; once more, and they are killed");
    let hurry = async {
        loop {
            interrupts.next().await;
            term::say("killing the agents that are at work");
            longhaul_activities::process::hurry(data_dir);
        }
    };
    tokio::select! {
        () = service.stop() => {}
        () = hurry => {}
    }
}

/// Resolves when this process is told to end.
async fn interrupted() {
    Interrupts::listen().next().await;
}

/// The signals that tell this process to end.
struct Interrupts([std::io::Result<Signal>; 3]);

impl Interrupts {
    /// Listens from now on.
    fn listen() -> Self {
        Self([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal))
    }

    /// The next of them; none if they cannot be listened for.
    async fn next(&mut self) {
        let [Ok(interrupt), Ok(terminate), Ok(hangup)] = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
