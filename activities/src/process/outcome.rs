//! The outcome of a program, kept by its supervisor the moment the program ends: an owner that is
//! killed before it has recorded the end does not repeat the program.
//!
//! It is not synced, so it counts only until the system is started again.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::placed::{self, Links};

use super::verdict::Ending;

/// The longest file, in bytes.
const LONGEST: u64 = 4 * 1024;

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    boot: String,
    pub(super) exit_code: i32,
    pub(super) duration_ms: u64,
}

/// Keeps the end of a program that exited by itself. A signal proves no outcome: it may be part of
/// the end of the owner.
pub(super) fn keep(file: &Path, ending: &Ending, duration: Duration) {
    let Ending::Exited { code } = *ending else { return };
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let outcome = Outcome { boot: boot(), exit_code: code, duration_ms };
    // Without it, the owner still gets the verdict.
    let _ = write(file, &outcome);
}

fn write(path: &Path, outcome: &Outcome) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new("/")))?;
    file.write_all(&serde_json::to_vec(outcome)?)?;
    file.persist(path)?;
    Ok(())
}

/// The id of this boot of the system; empty if the system has none.
pub(crate) fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The outcome that was kept in a file since the system was started.
pub(super) fn read(file: &Path) -> Option<Outcome> {
    let content = placed::read(file, Links::Refused, LONGEST).ok()??;
    let outcome: Outcome = serde_json::from_slice(&content).ok()?;
    (!outcome.boot.is_empty() && outcome.boot == boot()).then_some(outcome)
}
