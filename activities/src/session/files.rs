//! The folder of one session: what the agent is given, what it leaves, and the report.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use longhaul_engine::{Attempt, Payload};
use longhaul_workflows::contracts::{SessionInput, SessionReport};
use serde::{Deserialize, Serialize};

use crate::process::{make_folder_durably, readable_end, run_folder_name, write_durably};

/// How much of the agent's notes is read: the end of them, in bytes.
const NOTES: usize = 64 * 1024;

/// The files of one call, the same for each of its attempts.
#[derive(Debug)]
pub(super) struct SessionFiles {
    folder: PathBuf,
    call: String,
    input: String,
}

/// A report, and what it is the report of.
#[derive(Serialize, Deserialize)]
struct Kept {
    call: String,
    /// blake3 of the input. A run that was taken back can come to the same call with another input.
    input: String,
    report: SessionReport,
}

impl SessionFiles {
    pub(super) fn new(data_dir: &Path, attempt: &Attempt, input: &SessionInput) -> Self {
        let folder = data_dir.join("sessions").join(run_folder_name(&attempt.run)).join(attempt.slot.to_string());
        let input = blake3::hash(Payload::of(input).as_bytes()).to_hex().to_string();
        Self { folder, call: attempt.key(), input }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn prompt(&self) -> PathBuf {
        self.folder.join("prompt.md")
    }

    pub(super) fn feature(&self) -> PathBuf {
        self.folder.join("feature.json")
    }

    pub(super) fn notes_file(&self) -> PathBuf {
        self.folder.join("notes.md")
    }

    fn report_file(&self) -> PathBuf {
        self.folder.join("report.json")
    }

    /// Whether this call was tried before.
    pub(super) fn exist(&self) -> bool {
        self.folder.exists()
    }

    /// The report of this call, if it came to its end before.
    pub(super) fn report(&self) -> Option<SessionReport> {
        let kept: Kept = serde_json::from_slice(&fs::read(self.report_file()).ok()?).ok()?;
        (kept.call == self.call && kept.input == self.input).then_some(kept.report)
    }

    /// Makes the folder afresh. What an earlier attempt left is kept beside it.
    pub(super) fn prepare(&self, input: &SessionInput, prompt: &str) -> io::Result<()> {
        if self.exist() {
            fs::rename(&self.folder, self.free_name())?;
        }
        make_folder_durably(&self.folder)?;
        fs::write(self.prompt(), prompt)?;
        fs::write(self.feature(), serde_json::to_string_pretty(&input.feature)? + "\n")?;
        File::create(self.notes_file()).map(drop)
    }

    fn free_name(&self) -> PathBuf {
        let mut nth = 1;
        loop {
            let mut name = self.folder.clone().into_os_string();
            name.push(format!(".lost-{nth}"));
            let path = PathBuf::from(name);
            if !path.exists() {
                return path;
            }
            nth += 1;
        }
    }

    /// What the agent left for the next session. Whatever it made of the file, this neither fails nor waits.
    pub(super) fn notes(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let path = self.notes_file();
            if !fs::symlink_metadata(&path)?.is_file() {
                return Ok(Vec::new());
            }
            let mut file = File::open(path)?;
            let start = file.metadata()?.len().saturating_sub(NOTES as u64 + 4);
            file.seek(SeekFrom::Start(start))?;
            let mut end = Vec::new();
            file.take(NOTES as u64 + 4).read_to_end(&mut end)?;
            Ok(end)
        };
        readable_end(&read().unwrap_or_default(), NOTES)
    }

    /// Keeps the report: from here on the session is over, whatever happens to us.
    pub(super) fn keep(&self, report: &SessionReport) -> io::Result<()> {
        let kept = Kept { call: self.call.clone(), input: self.input.clone(), report: report.clone() };
        write_durably(&self.report_file(), serde_json::to_string_pretty(&kept)?.as_bytes())
    }
}
