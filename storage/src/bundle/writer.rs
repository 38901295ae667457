//! Writing runs to a file, one after the other.

use std::io::Write;

use super::{BundleError, FAMILY, Header, VERSION, line, section, v1};
use crate::carried::Carried;
use crate::history_file;

/// A file that is being written.
pub struct Writer<W: Write> {
    out: W,
    hasher: blake3::Hasher,
    runs: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(out: W, header: Header) -> Result<Self, BundleError> {
        let backup =
            header.backup.map(|backup| v1::Backup { epoch: backup.epoch, at: history_file::time_text(backup.at) });
        let mut writer = Self { out, hasher: blake3::Hasher::new(), runs: 0 };
        writer.put(&(line::json_of(&v1::Header { schema: format!("{FAMILY}{VERSION}"), backup }) + "\n"))?;
        Ok(writer)
    }

    /// Adds a run. Nothing of one that cannot be written is.
    pub fn write(&mut self, carried: &Carried) -> Result<(), BundleError> {
        let text = section::write(carried);
        let text = text.map_err(|reason| BundleError::Unwritable { run: carried.run.to_string(), reason })?;
        self.runs += 1;
        self.put(&text)
    }

    /// Ends the file, and gives back what it was written to.
    pub fn finish(mut self) -> Result<W, BundleError> {
        let blake3 = self.hasher.finalize().to_hex().to_string();
        let footer = line::json_of(&v1::Footer { end: true, runs: self.runs, blake3 }) + "\n";
        self.out.write_all(footer.as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, text: &str) -> Result<(), BundleError> {
        self.hasher.update(text.as_bytes());
        Ok(self.out.write_all(text.as_bytes())?)
    }
}
