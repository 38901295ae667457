//! Quarantine files: JSON lines with the readable events and every raw record that a repair removes
//! from the log.
//!
//! ```text
//! {"schema":"longhaul.quarantine/1","run":"shop/login/1","events":2,"records":3}
//! {"position":0,…}
//! {"position":2,…}
//! {"key":"6573…","value":"01…"}
//! ```

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::Utc;
use longhaul_engine::{Event, RunId, StoreError};

use crate::error::io;
use crate::files;
use crate::history_file;
use crate::record::Entry;

/// Writes records of a run durably into a file of their own.
pub(super) fn keep(
    directory: &Path,
    run: &RunId,
    events: &[Event],
    records: &[Entry],
) -> Result<PathBuf, StoreError> {
    let quarantine = directory.join("quarantine");
    files::create_directory(&quarantine)?;
    // `~` cannot occur in a run id, so that file names of two runs never collide.
    let name = run.as_str().replace('/', "~");
    let stem = format!("run-{name}-{}", Utc::now().format("%Y%m%dT%H%M%S%.6f"));
    let path = quarantine.join(format!("{stem}.jsonl"));
    let text = text(run, events, records);
    let write = || {
        let mut file = File::create_new(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error| io("writing", &path, &error))?;
    files::sync_directory(&quarantine)?;
    Ok(path)
}

fn text(run: &RunId, events: &[Event], records: &[Entry]) -> String {
    let lines: Vec<String> =
        events.iter().filter_map(|event| history_file::event_line(event).ok()).collect();
    let schema = "longhaul.quarantine/1";
    let count = lines.len();
    let mut text = format!(
        "{{\"schema\":\"{schema}\",\"run\":\"{run}\",\"events\":{count},\"records\":{}}}\n",
        records.len()
    );
    for line in lines {
        text += &line;
        text.push('\n');
    }
    for (key, value) in records {
        text += &format!("{{\"key\":\"{}\",\"value\":\"{}\"}}\n", hex(key), hex(value));
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
