//! Maintenance commands: replay, export, import, backup, restore, check, prune, doctor.

mod check;
mod doctor;
mod export;
mod import;
mod prune;
mod replay;
mod restore;
mod scratch;
mod verdict;

use anyhow::Result;
use longhaul_storage::Scope;

use super::{call, named};
use longhaul_server::{Client, Perform};

use super::terminal::counted;
pub(super) use check::{CheckDocument, run as check};
pub(super) use doctor::{DoctorDocument, run as doctor};
pub(super) use export::{ExportDocument, backup, run as export};
pub(super) use import::{ImportDocument, run as import};
pub(super) use prune::{PruneDocument, run as prune};
pub(super) use replay::run as replay;
pub(super) use restore::{RestoreDocument, run as restore};
pub(super) use verdict::Report as ReplayDocument;

/// Makes a request and releases the log before the response is shown.
async fn send<R: Perform>(client: Client, request: R) -> Result<R::Response> {
    call(&client, request).await
}

/// A project with all its runs, by its directory, its id, or a prefix of the id.
async fn below(access: &Client, project: &str) -> Result<Scope> {
    Ok(Scope::Below(named::project(access, project).await?))
}
