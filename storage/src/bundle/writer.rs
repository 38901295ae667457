//! Writes runs to a file one by one.

use std::io::Write;

use super::{BackupField, Footer, Header, HeaderLine, PublishedLine, RunLine, SCHEMA};
use crate::file_error::FileError;
use crate::history_file::event_line;
use crate::run_record::RunRecord;
use crate::wire::json;

/// A file that is being written.
pub struct Writer<W: Write> {
    out: W,
    hasher: blake3::Hasher,
    runs: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(out: W, header: Header) -> Result<Self, FileError> {
        let backup =
            header.backup.map(|backup| BackupField { epoch: backup.epoch, at: backup.at.into() });
        let mut writer = Self { out, hasher: blake3::Hasher::new(), runs: 0 };
        writer.put(&(json::line_of(&HeaderLine { schema: SCHEMA.to_string(), backup }) + "\n"))?;
        Ok(writer)
    }

    /// Adds a run, or nothing of it if it cannot be written.
    pub fn write(&mut self, record: &RunRecord) -> Result<(), FileError> {
        let text = section(record).map_err(|error| {
            FileError::Unwritable(format!("run {} cannot be written: {error}", record.run))
        })?;
        self.runs += 1;
        self.put(&text)
    }

    /// Ends the file, and returns the underlying writer.
    pub fn finish(mut self) -> Result<W, FileError> {
        let blake3 = self.hasher.finalize().to_hex().to_string();
        let footer = json::line_of(&Footer { end: true, runs: self.runs, blake3 }) + "\n";
        self.out.write_all(footer.as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, text: &str) -> Result<(), FileError> {
        self.hasher.update(text.as_bytes());
        Ok(self.out.write_all(text.as_bytes())?)
    }
}

/// The lines of a run.
fn section(record: &RunRecord) -> Result<String, FileError> {
    let RunRecord { run, events, summary, mailbox, published } = record;
    let mut lines = Vec::new();
    for event in events {
        lines.push(event_line(event)?);
    }
    for message in mailbox {
        lines.push(json::message_line(message).map_err(FileError::Unwritable)?);
    }
    for (name, value) in published {
        let value = json::embed(value).map_err(FileError::Unwritable)?;
        lines.push(json::line_of(&PublishedLine { name: name.clone(), value }));
    }
    let text: String = lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect();
    let head = RunLine {
        run: run.clone(),
        events: events.len() as u64,
        mail: mailbox.len() as u64,
        published: published.len() as u64,
        pruned: record.is_pruned().then(|| summary.clone().into()),
        blake3: blake3::hash(text.as_bytes()).to_hex().to_string(),
    };
    Ok(json::line_of(&head) + "\n" + &text)
}
