//! Reads the output file of a session as it grows.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use longhaul_activities::session::Transcript;

use crate::term::Cleaner;

/// Read buffer size.
const PIECE: usize = 64 * 1024;

/// The output file of a session, with the position of the reader.
#[derive(Default)]
pub(in crate::command) struct SessionOutput {
    file: Option<(PathBuf, File)>,
    /// Turns the output of a known agent into text.
    transcript: Option<Transcript>,
    cleaner: Cleaner,
}

impl SessionOutput {
    /// Opens a file, unless it is open. Another attempt of the session has another file.
    pub(in crate::command) fn open(&mut self, path: Option<PathBuf>) {
        if self.file.as_ref().map(|(open, _)| open) != path.as_ref() {
            let name = path.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
            self.transcript = name.and_then(Transcript::of_log);
            self.file = path.and_then(|path| File::open(&path).ok().map(|open| (path, open)));
        }
    }

    /// The open file.
    pub(super) fn file(&mut self) -> Option<&mut File> {
        self.file.as_mut().map(|(_, open)| open)
    }

    /// The next piece without control sequences, that of a known agent as a transcript; `None` at
    /// the end.
    pub(super) fn read(&mut self) -> Result<Option<String>> {
        let Some((_, file)) = &mut self.file else { return Ok(None) };
        let mut piece = vec![0; PIECE];
        let length = file.read(&mut piece).context("cannot read the output of the session")?;
        if length == 0 {
            return Ok(None);
        }
        Ok(Some(match &mut self.transcript {
            Some(transcript) => self.cleaner.clean(transcript.take(&piece[..length]).as_bytes()),
            None => self.cleaner.clean(&piece[..length]),
        }))
    }

    /// All new output.
    pub(in crate::command) fn read_all(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(piece) = self.read()? {
            text += &piece;
        }
        Ok(text)
    }
}
