//! The files of model calls: answers by call, and the cache of conversations.
//!
//! Both are in `sessions/<run>/model/` of the data directory, so pruning a run removes them. Until
//! then they take about as much space as the events of the run. A fork has a run of its own and
//! sends its conversation once again.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_engine::{Attempt, Payload};
use longhaul_workflows::contracts::{ModelAnswer, ModelCall};
use serde::{Deserialize, Serialize};

use crate::files::placed::{self, Links};
use crate::process::run_directory_name;

/// The longest file of an answer, in bytes.
const LONGEST: u64 = 64 * 1024 * 1024;

/// A stored answer, with the digest of its input.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    call: String,
    /// blake3 of the input. A rewound run can reach the same call with another input.
    input: String,
    answer: ModelAnswer,
}

/// The files of one call, the same for each of its attempts.
#[derive(Debug, Clone)]
pub(super) struct CallFiles {
    directory: PathBuf,
    slot: String,
    call: String,
    input: String,
}

impl CallFiles {
    pub(super) fn new(data_dir: &Path, attempt: &Attempt, call: &ModelCall) -> Self {
        let directory =
            data_dir.join("sessions").join(run_directory_name(&attempt.run)).join("model");
        let input = blake3::hash(Payload::of(call).as_bytes()).to_hex().to_string();
        Self { directory, slot: attempt.slot.to_string(), call: attempt.key(), input }
    }

    /// The directory with the conversations of the run.
    pub(super) fn conversations(&self) -> PathBuf {
        self.directory.clone()
    }

    fn name(&self) -> String {
        format!("answer-{}.json", self.slot)
    }

    /// The answer of this call, if it was received before.
    pub(super) fn answer(&self) -> Option<ModelAnswer> {
        let content =
            placed::read(&self.directory.join(self.name()), Links::Refused, LONGEST).ok()??;
        let kept: StoredAnswer = serde_json::from_slice(&content).ok()?;
        (kept.call == self.call && kept.input == self.input).then_some(kept.answer)
    }

    /// Stores the answer: from here on the request is not sent again, even if this process is
    /// killed. It is not synced: the log records it next and is durable sooner than this file, so a
    /// sync would only lengthen the time in which a power cut loses the answer.
    pub(super) fn keep(&self, answer: &ModelAnswer) -> io::Result<()> {
        let kept = StoredAnswer {
            call: self.call.clone(),
            input: self.input.clone(),
            answer: answer.clone(),
        };
        write(&self.directory, &self.name(), &serde_json::to_vec(&kept)?)
    }
}

/// Writes a file of a directory. A crash can leave a part of it, which its readers notice.
pub(super) fn write(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = directory.join(name);
    match std::fs::write(&path, content) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(directory)?;
            std::fs::write(&path, content)
        }
        done => done,
    }
}
