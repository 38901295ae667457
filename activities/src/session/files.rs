//! The files of one session: those that it shares with the agent, in its work tree; and its record,
//! in the data directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use longhaul_engine::{Attempt, Failure, Payload};
use longhaul_workflows::contracts::{AgentProgress, SessionInput, SessionReport};
use serde::{Deserialize, Serialize};

use crate::checks::SetUp;
use crate::files::placed::{self, Links};
use crate::files::{OWN_DIR, give_reading, remove_all};
use crate::git::Landings;
use crate::machine::{self, Operation};
use crate::process::{make_directory_durably, readable_end, run_directory_name, write_durably};

/// The limit of an agent's notes in bytes; of longer notes, the end is read.
const NOTES: usize = 64 * 1024;
/// The longest report, in bytes.
const LONGEST_REPORT: u64 = 16 * 1024 * 1024;
/// The directory in [`OWN_DIR`] that a session and Longhaul share. No commit has it.
const SHARED: &str = "session";
const NOTES_FILE: &str = "notes.md";

/// The files of one call, the same for each of its attempts.
#[derive(Debug)]
pub(super) struct SessionFiles {
    directory: PathBuf,
    tree: PathBuf,
    call: String,
    input: String,
}

/// A stored report, with the digest of its input.
#[derive(Serialize, Deserialize)]
struct StoredReport {
    call: String,
    /// blake3 of the input. A rewound run can reach the same call with another input.
    input: String,
    report: SessionReport,
}

/// A stored value, with the digest of the input of its call.
#[derive(Serialize, Deserialize)]
struct StoredValue<T> {
    call: String,
    input: String,
    value: T,
}

impl SessionFiles {
    pub(super) fn new(setup: &SetUp, attempt: &Attempt, input: &SessionInput) -> Self {
        let directory = setup
            .runner
            .data_dir()
            .join("sessions")
            .join(run_directory_name(&attempt.run))
            .join(attempt.slot.to_string());
        let hash = blake3::hash(Payload::of(input).as_bytes()).to_hex().to_string();
        let tree = setup.git.feature_tree_path(&input.project, &input.feature.id);
        Self { directory, tree, call: attempt.key(), input: hash }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The failure of a write to these files.
    pub(super) fn unwritable(&self, error: &io::Error) -> Failure {
        let directory = &self.directory;
        let message =
            format!("the files of a session cannot be written in {}: {error}", directory.display());
        machine::failure(error, Operation::Files, directory, message, Failure::retryable)
    }

    /// The directory in the tree that the agent reads and writes.
    fn shared(&self) -> PathBuf {
        self.tree.join(OWN_DIR).join(SHARED)
    }

    /// The stored prompt, used as the agent's standard input.
    pub(super) fn input(&self) -> PathBuf {
        self.directory.join("prompt.md")
    }

    pub(super) fn prompt(&self) -> PathBuf {
        self.shared().join("prompt.md")
    }

    pub(super) fn feature(&self) -> PathBuf {
        self.shared().join("feature.json")
    }

    pub(super) fn notes_file(&self) -> PathBuf {
        self.shared().join(NOTES_FILE)
    }

    /// The file with which an agent reports a full context.
    pub(super) fn context_full(&self) -> PathBuf {
        self.shared().join("context-full")
    }

    fn report_file(&self) -> PathBuf {
        self.directory.join("report.json")
    }

    /// The file in which the supervisor keeps the outcome of the agent. A rewound run can reach the
    /// same call with another input.
    pub(super) fn outcome(&self) -> PathBuf {
        self.directory.join(format!("outcome-{}.json", &self.input[..16]))
    }

    /// Whether this call was tried before.
    pub(super) fn exist(&self) -> bool {
        self.directory.exists()
    }

    /// The landings that count: all, if any session of this run was tried before.
    pub(super) fn counted_landings(&self) -> Landings {
        let was_tried = self.directory.parent().is_some_and(Path::exists);
        if was_tried { Landings::All } else { Landings::OfClosedRun }
    }

    /// The report of this call, if it has ended before.
    pub(super) fn report(&self) -> Option<SessionReport> {
        let kept: StoredReport = serde_json::from_slice(
            &placed::read(&self.report_file(), Links::Refused, LONGEST_REPORT).ok()??,
        )
        .ok()?;
        (kept.call == self.call && kept.input == self.input).then_some(kept.report)
    }

    /// Creates the directories afresh. The files of an earlier attempt are kept beside the record.
    pub(super) fn prepare(&self, input: &SessionInput, prompt: &str) -> io::Result<()> {
        if self.exist() {
            let lost = self.free_name();
            fs::rename(&self.directory, &lost)?;
            fs::write(lost.join(NOTES_FILE), self.notes().unwrap_or_default())?;
        }
        make_directory_durably(&self.directory)?;
        self.empty_shared()?;
        let feature = serde_json::to_string_pretty(&input.feature)? + "\n";
        fs::write(self.directory.join("feature.json"), &feature)?;
        fs::write(self.input(), prompt)?;
        fs::write(self.feature(), feature)?;
        fs::write(self.prompt(), prompt)?;
        fs::write(self.notes_file(), "")
    }

    /// Lets Longhaul read the files of the agent in Longhaul's directory, whatever their rights.
    fn let_read(&self) {
        give_reading(&self.tree.join(OWN_DIR));
    }

    /// Creates the shared directory, empty, replacing anything that an agent put there. Git ignores
    /// it.
    fn empty_shared(&self) -> io::Result<()> {
        self.let_read();
        let own = self.tree.join(OWN_DIR);
        if !fs::symlink_metadata(&own).is_ok_and(|found| found.is_dir()) {
            remove_all(&own)?;
            fs::create_dir(&own)?;
        }
        let ignore = own.join(".gitignore");
        remove_all(&ignore)?;
        fs::write(ignore, "*\n")?;
        remove_all(&self.shared())?;
        fs::create_dir(self.shared())
    }

    fn free_name(&self) -> PathBuf {
        let mut nth = 1;
        loop {
            let mut name = self.directory.clone().into_os_string();
            name.push(format!(".lost-{nth}"));
            let path = PathBuf::from(name);
            if !path.exists() {
                return path;
            }
            nth += 1;
        }
    }

    /// The agent's notes for the next session, or why they were not read. Never blocks, whatever
    /// the file is.
    pub(super) fn notes(&self) -> Result<String, String> {
        self.let_read();
        // A few bytes more, for a character that is cut in two.
        let end = placed::read_end(&self.notes_file(), Links::Within(&self.tree), NOTES as u64 + 4);
        let end = end.map_err(|error| error.to_string())?;
        Ok(readable_end(&end.unwrap_or_default(), NOTES))
    }

    /// Replaces the agent's notes: those of an earlier attempt stay.
    pub(super) fn write_notes(&self, notes: &str) -> io::Result<()> {
        fs::write(self.notes_file(), notes)
    }

    /// Whether the agent reported a full context.
    pub(super) fn says_context_full(&self) -> bool {
        self.let_read();
        fs::symlink_metadata(self.context_full()).is_ok()
    }

    /// The file with the conversation of a known agent, beside the directory: a further attempt
    /// continues it.
    fn conversation_file(&self) -> PathBuf {
        let mut name = self.directory.clone().into_os_string();
        name.push(".conversation.json");
        name.into()
    }

    /// The conversation of an earlier attempt of this call.
    pub(super) fn conversation(&self) -> Option<KeptConversation> {
        let text = placed::read(&self.conversation_file(), Links::Refused, LONGEST_REPORT);
        let kept: StoredValue<KeptConversation> = serde_json::from_slice(&text.ok()??).ok()?;
        (kept.call == self.call && kept.input == self.input).then_some(kept.value)
    }

    /// Stores the conversation. A lost one costs only a new conversation.
    pub(super) fn keep_conversation(&self, progress: &AgentProgress, is_paused: bool) {
        let value = KeptConversation { progress: progress.clone(), is_paused };
        let kept = StoredValue { call: self.call.clone(), input: self.input.clone(), value };
        let text = serde_json::to_string(&kept).unwrap_or_default();
        if let Err(error) = write_durably(&self.conversation_file(), text.as_bytes()) {
            tracing::warn!(call = self.call, %error, "the conversation of an agent is not kept");
        }
    }

    /// Replaces the agent's standard input.
    pub(super) fn write_input(&self, text: &str) -> io::Result<()> {
        fs::write(self.input(), text)
    }

    /// Stores the report durably: from here on the session has ended, even after a crash.
    pub(super) fn keep(&self, report: &SessionReport) -> io::Result<()> {
        let kept = StoredReport {
            call: self.call.clone(),
            input: self.input.clone(),
            report: report.clone(),
        };
        write_durably(&self.report_file(), serde_json::to_string_pretty(&kept)?.as_bytes())
    }
}

/// How a conversation was left.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct KeptConversation {
    pub(super) progress: AgentProgress,
    /// Whether the agent has ended, and its tree is on stable storage as it left it.
    pub(super) is_paused: bool,
}
