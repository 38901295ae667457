//! `longhaul doctor`.

use std::path::Path;

use anyhow::Result;

use crate::arguments::Doctor;
use crate::exit::Exit;

#[expect(clippy::unused_async, reason = "stub")]
pub(crate) async fn run(_data_dir: &Path, _arguments: &Doctor) -> Result<Exit> {
    Ok(Exit::Ok)
}
