//! Performs the requests of a person, each through its own request of the service.

use std::path::{Path, PathBuf};

use anyhow::Result;
use longhaul_engine::RequestedBy;
use longhaul_server::{Fork, ListCheckpoints, Steer};
use tokio::sync::mpsc;

use super::feed::{Update, quiet, reach};
use super::screen::Action;
use crate::arguments::user;
use crate::command::steer::done;

/// Performs an action in the background and shows its result.
pub(super) fn begin(data_dir: &Path, action: Action, updates: &mpsc::Sender<Update>) {
    let data_dir: PathBuf = data_dir.to_owned();
    let updates = updates.clone();
    tokio::spawn(async move {
        let update = match perform(&data_dir, action).await {
            Ok(update) => update,
            Err(error) => Update::Message(format!("{error:#}")),
        };
        // The screen may be closed.
        let _ = updates.send(update).await;
    });
}

async fn perform(data_dir: &Path, action: Action) -> Result<Update> {
    let client = reach(data_dir, quiet).await?;
    let request = RequestedBy { by: user(), why: String::new() };
    Ok(match action {
        Action::Quit => Update::Message(String::new()),
        Action::Steer(target, order) => {
            let steer =
                Steer { target: target.clone(), order: order.clone(), request, dry_run: false };
            let delivered = super::super::call(&client, steer).await?;
            Update::Message(if delivered.waits() {
                format!("{target} will be {} when its project runs next", done(&order))
            } else {
                format!("{target} {}", done(&order))
            })
        }
        Action::ListSteps(target) => {
            let list = ListCheckpoints { target: target.clone() };
            Update::Steps(target, super::super::call(&client, list).await?)
        }
        Action::Fork(run, from) => {
            let fork = Fork { run, from, note: None, set: Vec::new(), request, dry_run: false };
            let forked = super::super::call(&client, fork).await?;
            Update::Message(format!(
                "{} continues from {}@{}; `longhaul run` continues it if no process runs it now",
                forked.run, forked.origin, forked.position
            ))
        }
    })
}
