//! Stores the output of a program: a log of bounded size, a digest of the whole, and its tail for
//! people.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The size of the tail in reports, in bytes.
const TAIL: usize = 8 * 1024;
/// The size of each half of a log, the beginning and the end of the output, in bytes.
const HALF_A_LOG: u64 = 32 * 1024 * 1024;

/// Receives the output in chunks. Memory use is bounded.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    log: File,
    half: u64,
    length: u64,
    /// The end of an output that is longer than half a log: a ring buffer in an unnamed file.
    ring: Option<File>,
    digest: blake3::Hasher,
    tail: Vec<u8>,
    broken: bool,
}

/// The result of an output when it has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputSummary {
    pub(super) digest: String,
    pub(super) tail: String,
}

impl Output {
    pub(super) fn new(path: PathBuf, log: File) -> Self {
        Self {
            path,
            log,
            half: HALF_A_LOG,
            length: 0,
            ring: None,
            digest: blake3::Hasher::new(),
            tail: Vec::new(),
            broken: false,
        }
    }

    /// Takes the next chunk. A failed write loses the rest of the log, not the program.
    pub(super) fn take(&mut self, piece: &[u8]) {
        self.digest.update(piece);
        self.tail.extend_from_slice(piece);
        if self.tail.len() > 8 * TAIL {
            // Some bytes more than the tail, for a character that is cut in two.
            self.tail.drain(..self.tail.len() - TAIL - 4);
        }
        if !self.broken {
            let written = self.write(piece);
            self.note(written);
        }
        self.length += piece.len() as u64;
    }

    /// Completes the log. Slow for long ones.
    pub(super) fn finish(mut self) -> OutputSummary {
        if !self.broken {
            let closed = self.close();
            self.note(closed);
        }
        OutputSummary {
            digest: self.digest.finalize().to_hex().to_string(),
            tail: readable_end(&self.tail, TAIL),
        }
    }

    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.broken = true;
            tracing::warn!(
                log = %self.path.display(),
                %error,
                "the rest of this log is lost: it cannot be written",
            );
        }
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let to_log = usize::try_from(self.half.saturating_sub(self.length))
            .map_or(piece.len(), |n| n.min(piece.len()));
        let (first, mut rest) = piece.split_at(to_log);
        self.log.write_all(first)?;
        let mut begun = (self.length + to_log as u64).saturating_sub(self.half);
        while !rest.is_empty() {
            let ring = match &mut self.ring {
                Some(ring) => ring,
                none => none
                    .insert(tempfile::tempfile_in(self.path.parent().unwrap_or(Path::new(".")))?),
            };
            let at = begun % self.half;
            let room = usize::try_from(self.half - at).map_or(rest.len(), |n| n.min(rest.len()));
            ring.write_all_at(&rest[..room], at)?;
            begun += room as u64;
            rest = &rest[room..];
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some(mut ring) = self.ring.take() {
            let in_ring = self.length - self.half;
            let dropped = in_ring.saturating_sub(self.half);
            if dropped > 0 {
                write!(self.log, "\n[Longhaul: {dropped} bytes of output are left out here]\n")?;
                ring.seek(SeekFrom::Start(in_ring % self.half))?;
                io::copy(&mut ring, &mut self.log)?;
            }
            ring.rewind()?;
            let newest = if dropped > 0 { in_ring % self.half } else { in_ring };
            io::copy(&mut io::Read::take(ring, newest), &mut self.log)?;
        }
        self.log.sync_data()
    }
}

/// The digest and the tail of an existing log.
pub(super) fn kept_in(log: &Path) -> io::Result<OutputSummary> {
    let mut file = File::open(log)?;
    let mut digest = blake3::Hasher::new();
    digest.update_reader(&mut file)?;
    let tail = (TAIL + 4) as u64;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(tail)))?;
    let mut end = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, tail), &mut end)?;
    Ok(OutputSummary {
        digest: digest.finalize().to_hex().to_string(),
        tail: readable_end(&end, TAIL),
    })
}

/// The last `limit` bytes or fewer as text, starting at a whole character.
pub(crate) fn readable_end(bytes: &[u8], limit: usize) -> String {
    let start = bytes.len().saturating_sub(limit);
    // At most three bytes of a character that is cut in two.
    let is_rest = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut = if start > 0 { bytes[start..].iter().take(3).take_while(is_rest).count() } else { 0 };
    let text = String::from_utf8_lossy(&bytes[start + cut..]);
    // Replacement characters are longer than the invalid bytes.
    let from = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_log(half: u64, pieces: &[&str], expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut output = Output::new(path.clone(), File::create(&path).unwrap());
        output.half = half;
        for piece in pieces {
            output.take(piece.as_bytes());
        }
        let kept = output.finish();
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
        assert_eq!(kept.digest, blake3::hash(pieces.concat().as_bytes()).to_hex().to_string());
    }

    #[test]
    fn a_log_keeps_the_beginning_and_the_end() {
        check_log(4, &["ab", "c"], "abc");
        check_log(4, &["abcd"], "abcd");
        check_log(4, &["abc", "def"], "abcdef");
        check_log(4, &["abcdefgh"], "abcdefgh");
        let left_out = |n| format!("abcd\n[Longhaul: {n} bytes of output are left out here]\n");
        check_log(4, &["abcdefgh", "i"], &format!("{}fghi", left_out(1)));
        check_log(4, &["abcdefghijklmno"], &format!("{}lmno", left_out(7)));
        check_log(4, &["abcdef", "ghij", "kl"], &format!("{}ijkl", left_out(4)));
    }

    #[test]
    fn the_end_is_text_of_bounded_length() {
        assert_eq!(readable_end(b"abc", 8), "abc");
        assert_eq!(readable_end("aéé".as_bytes(), 4), "éé");
        assert_eq!(readable_end("aéé".as_bytes(), 3), "é");
        assert_eq!(readable_end(b"\xff\xffa", 8), "\u{fffd}\u{fffd}a");
        assert_eq!(readable_end(&[0xff; 8], 8), "\u{fffd}\u{fffd}");
    }
}
